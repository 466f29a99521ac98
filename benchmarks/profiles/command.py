"""The commands: measure candidates, select cases, write the page, freeze the profiles."""

import argparse
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import msgspec

from benchmarks.profiles.choose import Entry, Shown, candidates, cover, entries
from benchmarks.profiles.environments import compare_environments
from benchmarks.profiles.finding import Finding, read_findings
from benchmarks.profiles.freeze import freeze_profiles
from benchmarks.profiles.measure import measure
from benchmarks.profiles.page import page
from benchmarks.profiles.plans import PLANS
from benchmarks.profiles.records import Key, admitted, read_records, real_faults, seconds_of
from harness.corpus.suites import open_suite
from harness.profiles.profile import profiles_folder

HOME = Path(__file__).parent
SELECTION = HOME / "selection.json"
PAGE = Path("docs/reference/profiles.md")
FUZZ = "fuzz:1:600"
"""The generated suite among the candidates."""

GENERATED = "fuzz-1"
"""The same suite in records."""


def main() -> int:
    """Run one subcommand."""
    arguments = _arguments()
    return int(arguments.run(arguments))


def _measure(arguments: argparse.Namespace) -> int:
    """Append what is not yet in the file, so that an interrupted measurement goes on."""
    out: Path = arguments.findings
    done = {one.key for one in read_findings(out)} if out.exists() else set()
    generated = set(open_suite(FUZZ).models())
    wanted = [
        _opened(key)
        for key in admitted(read_records(arguments.records))
        if key[0] != GENERATED or key[1] in generated
    ]
    # Generated models last: they take longest, and an interrupted measurement then lacks only some of them.
    left = sorted((key for key in wanted if key not in done), key=lambda key: (key[0] == FUZZ, key))
    print(f"{len(left)} of {len(wanted)} candidates to measure", flush=True)
    with (
        ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as processes,
        out.open("ab") as file,
    ):
        suites, models = zip(*left, strict=True) if left else ((), ())
        for finding in processes.map(measure, suites, models, chunksize=8):
            file.write(msgspec.json.encode(finding) + b"\n")
            file.flush()
    return 0


def _select(arguments: argparse.Namespace) -> int:
    findings, shown = _known(arguments)
    selection = {
        label: entries(label, cover(candidates(findings, plan, shown), shown, plan.kept))
        for label, plan in PLANS.items()
    }
    for label, chosen in selection.items():
        print(f"{label}: {len(chosen)} cases", flush=True)
    SELECTION.write_bytes(msgspec.json.format(msgspec.json.encode(selection), indent=1) + b"\n")
    return 0


def _page(arguments: argparse.Namespace) -> int:
    findings, shown = _known(arguments)
    selection = msgspec.json.decode(SELECTION.read_bytes(), type=dict[str, tuple[Entry, ...]])
    arguments.page.write_text(page(selection, findings, shown), encoding="utf-8")
    return 0


def _freeze(arguments: argparse.Namespace) -> int:
    return freeze_profiles(arguments.profiles, profiles_folder())


def _environments(arguments: argparse.Namespace) -> int:
    given = arguments.pythons, arguments.profile, arguments.out
    return compare_environments(*given, qnn=arguments.qnn)


def _known(arguments: argparse.Namespace) -> tuple[list[Finding], Shown]:
    """Return the findings, and what each case shows, real failures included."""
    records = list(read_records(arguments.records))
    real = {_opened(key): faults for key, faults in real_faults(records).items()}
    took = {_opened(key): seconds for key, seconds in seconds_of(records).items()}
    findings = sorted(
        (
            msgspec.structs.replace(one, seconds=took.get(one.key, 0.0))
            for one in read_findings(arguments.findings)
        ),
        key=lambda one: one.key,
    )
    return findings, {one.key: frozenset(one.shown) | real.get(one.key, set()) for one in findings}


def _opened(key: Key) -> Key:
    """Return the suite as ``open_suite`` takes it, with the model."""
    return (FUZZ if key[0] == GENERATED else key[0]), key[1]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiles", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    one = commands.add_parser("measure", help="plant faults in every candidate")
    one.set_defaults(run=_measure)
    one.add_argument("records", nargs="+", type=Path, help="records of runs over the candidates")
    one.add_argument("--findings", type=Path, required=True, help="JSON lines, appended to")
    one.add_argument("--jobs", type=int, default=2, help="processes at once")
    for name, run, what in (
        ("select", _select, "choose the cases of every profile"),
        ("page", _page, "write the page about them"),
    ):
        one = commands.add_parser(name, help=what)
        one.set_defaults(run=run)
        one.add_argument(
            "records", nargs="*", type=Path, help="records of the CPU EP, for times, and of real EPs"
        )
        one.add_argument("--findings", type=Path, required=True, help="what `measure` wrote")
        one.add_argument("--page", type=Path, default=PAGE, help=f"where the page goes; {PAGE} by default")
    one = commands.add_parser("freeze", help="write index and archive of the selected profiles")
    one.set_defaults(run=_freeze)
    one.add_argument("profiles", nargs="*", metavar="PROFILE", help="such as cnn@1; default: all")
    one = commands.add_parser("environments", help="compare the verdicts of several Pythons")
    one.set_defaults(run=_environments)
    one.add_argument("pythons", nargs="+", metavar="PYTHON", help="has the harness and an onnxruntime")
    one.add_argument("--profile", action="append", default=[], help="such as cnn@1; default: all")
    one.add_argument("--out", type=Path, required=True, help="a new folder for runs and caches")
    one.add_argument("--qnn", action="store_true", help="with QNN, too: the Pythons have onnxruntime-qnn")
    return parser.parse_args()

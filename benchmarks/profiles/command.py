"""The commands: measure candidates, select cases, write the page, freeze the profiles."""

import argparse
import hashlib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import msgspec

from benchmarks.profiles.choose import Entry, candidates, cover, entries
from benchmarks.profiles.environments import compare_environments
from benchmarks.profiles.finding import read_findings
from benchmarks.profiles.freeze import freeze_profiles
from benchmarks.profiles.known import FUZZ, GENERATED, opened, read_known
from benchmarks.profiles.measure import measure
from benchmarks.profiles.page import page
from benchmarks.profiles.plans import PLANS
from benchmarks.profiles.records import Key, admitted, plain, read_records
from harness.corpus.suites import open_suite
from harness.profiles.profile import profiles_folder

HOME = Path(__file__).parent
SELECTION = HOME / "selection.json"
PAGE = Path("docs/reference/profiles.md")


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
        opened(key)
        for key in admitted(plain(read_records(arguments.records)))
        if key[0] != GENERATED or key[1] in generated
    ]
    left = in_fair_order(key for key in wanted if key not in done)
    print(f"{len(left)} of {len(wanted)} candidates to measure", flush=True)
    with (
        ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as processes,
        out.open("ab") as file,
    ):
        for future in as_completed([processes.submit(measure, *key) for key in left]):
            file.write(msgspec.json.encode(future.result()) + b"\n")
            file.flush()
    return 0


def in_fair_order(keys: Iterable[Key]) -> list[Key]:
    """Return the networks that profiles keep, then one case of each suite in turn.

    An interrupted measurement then has a sample of every suite, not all of some and none of others.
    """
    kept = {key for plan in PLANS.values() for key in plan.kept}
    turn: Counter[str] = Counter()
    placed = []
    for key in sorted(keys, key=_digest):
        placed.append((key not in kept, turn[key[0]], key))
        turn[key[0]] += 1
    return [key for _, _, key in sorted(placed)]


def _digest(key: Key) -> str:
    return hashlib.sha256("/".join(key).encode()).hexdigest()


def _select(arguments: argparse.Namespace) -> int:
    known = read_known(arguments.findings, arguments.records)
    selection = {}
    for label, plan in PLANS.items():
        found = candidates(known.admissible, plan, known.shown)
        chosen = cover(found, known.shown, plan.kept)
        selection[label] = entries(label, chosen, found, known.ran)
        print(f"{label}: {len(selection[label])} cases", flush=True)
    SELECTION.write_bytes(msgspec.json.format(msgspec.json.encode(selection), indent=1) + b"\n")
    return 0


def _page(arguments: argparse.Namespace) -> int:
    known = read_known(arguments.findings, arguments.records)
    selection = msgspec.json.decode(SELECTION.read_bytes(), type=dict[str, tuple[Entry, ...]])
    arguments.page.write_text(page(selection, known), encoding="utf-8")
    return 0


def _freeze(arguments: argparse.Namespace) -> int:
    return freeze_profiles(arguments.profiles, profiles_folder())


def _environments(arguments: argparse.Namespace) -> int:
    given = arguments.pythons, arguments.profile, arguments.out
    return compare_environments(*given, qnn=arguments.qnn)


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

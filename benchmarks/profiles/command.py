"""The commands: admit and measure candidates, select cases, freeze the profiles, write the page."""

import argparse
import hashlib
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import msgspec

from benchmarks.profiles.admit import admit, read_admissions
from benchmarks.profiles.api_cases import api_cases
from benchmarks.profiles.choose import candidates, cover, entries, limits_of
from benchmarks.profiles.environments import compare_environments
from benchmarks.profiles.finding import read_findings
from benchmarks.profiles.freeze import (
    freeze_profiles,
    name_of,
    read_selection,
    write_refused,
    write_selection,
)
from benchmarks.profiles.known import Known, read_known
from benchmarks.profiles.measure import measure
from benchmarks.profiles.page import page
from benchmarks.profiles.plans import BY_FAULT, PLANS
from benchmarks.profiles.quick import write_quick
from benchmarks.profiles.records import Key, admitted, plain, read_records
from harness.annex.conformance.profiles.profile import profiles_folder
from harness.core.records.scenario import PLAIN

PAGE = Path("docs/reference/profiles.md")
FINDINGS = "findings.jsonl"
ADMISSIONS = "admissions.jsonl"

API = "api@1"
"""The profile whose cases no fault chooses."""


def main() -> int:
    """Run one subcommand."""
    arguments = _arguments()
    return int(arguments.run(arguments))


def _admit(arguments: argparse.Namespace) -> int:
    """Append what is not yet in the file, so that an interrupted admission goes on."""
    out: Path = arguments.work / ADMISSIONS
    done = {one.key for one in read_admissions(out)} if out.exists() else set()
    left = in_fair_order(key for key in _wanted(arguments) if key not in done)
    print(f"{len(left)} models to admit", flush=True)
    with out.open("ab") as file:
        for one in admit(left):
            file.write(msgspec.json.encode(one) + b"\n")
            file.flush()
    write_refused({name_of(*one.key, PLAIN): one.why_not for one in read_admissions(out) if one.why_not})
    return 0


def _measure(arguments: argparse.Namespace) -> int:
    """Append what is not yet in the file, so that an interrupted measurement goes on.

    What was not refused comes first.
    """
    out: Path = arguments.work / FINDINGS
    done = {one.key for one in read_findings(out)} if out.exists() else set()
    file: Path = arguments.work / ADMISSIONS
    refused = {one.key for one in read_admissions(file) if one.why_not} if file.exists() else set()
    wanted = _wanted(arguments)
    order = in_fair_order(key for key in wanted if key not in done)
    left = sorted(order, key=lambda key: key in refused)
    print(f"{len(left)} of {len(wanted)} models to measure", flush=True)
    with (
        ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as processes,
        out.open("ab") as lines,
    ):
        for future in as_completed([processes.submit(measure, *key) for key in left]):
            lines.write(msgspec.json.encode(future.result()) + b"\n")
            lines.flush()
    return 0


def _wanted(arguments: argparse.Namespace) -> tuple[Key, ...]:
    arguments.work.mkdir(parents=True, exist_ok=True)
    return admitted(plain(read_records(arguments.records)))


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


def _known(arguments: argparse.Namespace) -> Known:
    return read_known(arguments.records, arguments.work / FINDINGS, arguments.work / ADMISSIONS)


def _select(arguments: argparse.Namespace) -> int:
    known = _known(arguments)
    limits = limits_of(known.corpus)
    selection = {API: api_cases()}
    for label, plan in BY_FAULT.items():
        found = candidates(known.admissible, plan, known.shown)
        chosen = cover(found, known.shown, limits, plan.kept)
        selection[label] = entries(label, chosen, found, known.ran)
        nbytes, seconds = sum(one.nbytes for one in chosen), sum(one.seconds for one in chosen)
        print(f"{label}: {len(selection[label])} cases, {nbytes} bytes, {seconds:.2f} s", flush=True)
    write_selection(selection)
    return 0


def _select_api(_: argparse.Namespace) -> int:
    write_selection(read_selection() | {API: api_cases()})
    return 0


def _page(arguments: argparse.Namespace) -> int:
    arguments.page.write_text(page(read_selection(), _known(arguments)), encoding="utf-8")
    return 0


def _freeze(arguments: argparse.Namespace) -> int:
    return freeze_profiles(arguments.profiles, profiles_folder())


def _quick(_: argparse.Namespace) -> int:
    return write_quick(profiles_folder())


def _environments(arguments: argparse.Namespace) -> int:
    given = arguments.pythons, arguments.profile, arguments.out
    return compare_environments(*given, qnn=arguments.qnn)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profiles", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, run, what in (
        ("admit", _admit, "find which models of the corpus can be cases, and their bytes"),
        ("measure", _measure, "plant faults in every model of the corpus"),
        ("select", _select, "choose the cases of every profile"),
        ("page", _page, "write the page about them"),
    ):
        one = commands.add_parser(name, help=what)
        one.set_defaults(run=run)
        one.add_argument("records", nargs="+", type=Path, help="runs of corpus.toml and scenarios.toml")
        one.add_argument("--work", type=Path, required=True, help="folder of what is admitted and measured")
        if run is _measure:
            one.add_argument("--jobs", type=int, default=2, help="processes at once")
        if run is _page:
            one.add_argument("--page", type=Path, default=PAGE, help=f"where it goes; {PAGE} by default")
    one = commands.add_parser("freeze", help="write index and archive of the selected profiles")
    one.set_defaults(run=_freeze)
    one.add_argument("profiles", nargs="*", metavar="PROFILE", help="such as cnn@1; default: all")
    one = commands.add_parser("select-api", help=f"choose the cases of {API}, which needs no measurement")
    one.set_defaults(run=_select_api)
    one = commands.add_parser("quick", help="write the quick profile, of the cases of the others")
    one.set_defaults(run=_quick)
    one = commands.add_parser("environments", help="compare the verdicts of several Pythons")
    one.set_defaults(run=_environments)
    one.add_argument("pythons", nargs="+", metavar="PYTHON", help="has the harness and an onnxruntime")
    one.add_argument("--profile", action="append", default=[], help="such as cnn@1; default: all")
    one.add_argument("--out", type=Path, required=True, help="a new folder for runs and caches")
    one.add_argument("--qnn", action="store_true", help="with QNN, too: the Pythons have onnxruntime-qnn")
    return parser.parse_args()

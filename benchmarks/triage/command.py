"""What triage finds of planted faults, and what that takes; exit code 1 if a limit is missed."""

import argparse
import multiprocessing
import os
import signal
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import msgspec

from benchmarks.detection.subjects import Subject, subjects
from benchmarks.processes import verdict
from benchmarks.triage.bundles import replayed
from benchmarks.triage.deep import FAULTS, Deep, Side
from benchmarks.triage.flaky import RATE, try_all
from benchmarks.triage.planted import Choice, Row, hunt_all
from benchmarks.triage.resume import Interrupted, draws

WANTED_EXACT = 0.95
WANTED_NODES, WANTED_BYTES, WANTED_SECONDS = 3, 100_000, 60.0
LIMIT_S = 1800.0
"""After which Polygraphy is stopped."""

STOPS = 3


def main() -> int:
    """Print the figures that are asked for."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory() as temporary:
        good = arguments.measure(arguments, Path(temporary))
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    print(f"load {load} on {os.cpu_count()} processors")
    return 0 if good else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triage", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="WHAT")

    def command(name: str, measure: Callable[..., bool], text: str) -> argparse.ArgumentParser:
        found = commands.add_parser(name, help=text, description=text)
        found.set_defaults(measure=measure)
        return found

    one = command("planted", planted, "faults of the detection benchmark, located and reduced")
    one.add_argument("--full", action="store_true", help="all kinds in all models, at two nodes each")
    one.add_argument("--share", type=float, default=0.25, help="of the kinds and models otherwise; 0.25")
    one.add_argument("--model", action="append", help="this model only; may be repeated")
    one.add_argument("--kind", action="append", help="this kind only; may be repeated")
    one.add_argument("--jobs", type=int, default=2, help="processes at once; 2")
    one.add_argument("--out", type=Path, help="where the rows go, as JSON lines")
    two = command("deep", deep, "a model of 1,224 nodes, beside Polygraphy's `debug reduce`")
    two.add_argument("--fault", action="append", help=f"such as {', '.join(FAULTS)}; may be repeated")
    two.add_argument(
        "--polygraphy", type=Path, metavar="PYTHON", help="of an environment that has polygraphy"
    )
    three = command("flaky", flaky, f"faults of which {RATE:.0%} of the sessions have something")
    three.add_argument("--tries", type=int, default=20, help="20")
    four = command("resume", resume, "triages that are interrupted or killed, and continued")
    four.add_argument("--stops", type=int, default=STOPS, help=f"of each kind; {STOPS}")
    five = command("bundles", bundles, "bundles, replayed with onnxruntime and numpy alone")
    five.add_argument("--model", action="append", help="this model only; may be repeated")
    five.add_argument("--python", type=Path, help="of an environment with these two; made if left out")
    return parser.parse_args()


def planted(arguments: argparse.Namespace, folder: Path) -> bool:
    """Print a row for each outcome; whether all limits hold."""
    share, sites = (1.0, 2) if arguments.full else (arguments.share, 1)
    choice = Choice(kinds=tuple(arguments.kind or ()), sites=sites, share=share)
    rows: list[Row] = []
    with ProcessPoolExecutor(arguments.jobs, multiprocessing.get_context("spawn")) as processes:
        models = subjects(folder, arguments.model or ())
        asked = [processes.submit(_rows, model, choice) for model in models]
        for future in as_completed(asked):
            rows += future.result()
            print(f"{len(rows)} faults", flush=True)
            if arguments.out:
                arguments.out.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    return _told(rows)


def _rows(model: Subject, choice: Choice) -> list[Row]:
    return list(hunt_all(model, choice))


def _told(rows: Sequence[Row]) -> bool:
    outcomes = Counter(row.outcome for row in rows)
    found = [row.hunted for row in rows if row.hunted is not None]
    if not found:
        print("no fault is visible")
        return False
    for row in rows:
        if row.outcome in {"wrong", "passed"}:
            told = ", ".join(row.hunted.nodes) if row.hunted else ""
            print(f"{row.outcome}: {row.fault} in {row.guilty[0]} of {row.model}: {told}")
    single = [row.outcome for row in rows if row.hunted is not None and row.alone]
    exact = single.count("exact") / max(1, len(single))
    nodes = statistics.median(one.nodes_after for one in found)
    size = statistics.median(one.bytes_after for one in found)
    trials = [one.locating for one in found]
    over = [one for one in found if one.locating > one.allowed]
    changed = [one for one in found if one.signature.verdict != one.verdict_after]
    print(f"{len(rows)} visible faults, {outcomes['passed']} in cells that pass")
    print(f"| faults that show in the guilty node alone: that node exactly | {exact:.1%} of {len(single)} |")
    print(f"| all faults: the guilty node exactly | {outcomes['exact'] / len(found):.1%} of {len(found)} |")
    print(f"| a set of nodes that holds it | {outcomes['set']} |")
    print(f"| another node | {outcomes['wrong']} |")
    print(f"| nodes of the reduced model, median | {nodes:g} |")
    print(f"| bytes of the reduced model, median | {size:,.0f} |")
    print(f"| trials to locate, median and most | {statistics.median(trials):g}, {max(trials)} |")
    print(f"| faults that took more than 4 log2(nodes) + 20 | {len(over)} |")
    print(f"| changes of class | {len(changed)} |")
    met = [
        verdict("share of planted faults located exactly", exact, WANTED_EXACT, at_least=True),
        verdict("planted faults located elsewhere", outcomes["wrong"], 0),
        verdict("planted faults that took more than 4 log2(nodes) + 20 trials", len(over), 0),
        verdict("changes of class", len(changed), 0),
        verdict("nodes of the reduced models, median", nodes, WANTED_NODES),
        verdict("bytes of the reduced models, median", size, WANTED_BYTES),
    ]
    return all(met)


def deep(arguments: argparse.Namespace, folder: Path) -> bool:
    """Print what each reducer took; whether triage keeps within its limits."""
    good = True
    print("| fault | reducer | nodes before | after | trials | seconds | processor |")
    for number, fault in enumerate(arguments.fault or FAULTS):
        home = folder / str(number)
        home.mkdir()
        model = Deep(home, fault)
        side, hunted = model.by_triage()
        _print_side(model, side)
        least_s = min(side.seconds, side.processor_s)
        good &= verdict(f"seconds to find {fault} among {model.nodes:,} nodes", least_s, WANTED_SECONDS)
        good &= verdict(f"nodes left of {fault}", hunted.nodes_after, WANTED_NODES)
        good &= model.node in hunted.nodes
        if arguments.polygraphy:
            python = arguments.polygraphy.absolute()
            first = model.by_polygraphy(python, "bisect", LIMIT_S)
            _print_side(model, first)
            if first.model is not None:
                _print_side(model, model.by_polygraphy(python, "linear", LIMIT_S, first.model))
    return good


def _print_side(model: Deep, side: Side) -> None:
    nodes = side.why if side.nodes is None else side.nodes
    print(
        f"| {model.fault} | {side.name} | {model.nodes:,} | {nodes} | {side.trials} "
        f"| {side.seconds:.1f} s | {side.processor_s:.1f} s |",
        flush=True,
    )


def flaky(arguments: argparse.Namespace, folder: Path) -> bool:
    """Print each try; whether none has a wrong step."""
    right = 0
    for one in try_all(arguments.tries, folder):
        right += one.is_right
        found, confirmation = one.hunted, one.confirmation
        print(
            f"{'right' if one.is_right else 'wrong'}: {one.fault} in {one.guilty} of {one.model}: "
            f"{confirmation.failures} of {confirmation.trials} trials, {confirmation.repeats} repetitions, "
            + (f"{', '.join(found.nodes)}; {found.nodes_after} nodes" if found else "not confirmed"),
            flush=True,
        )
    print(f"| without a wrong step | {right} of {arguments.tries} |")
    wrong = arguments.tries - right
    return verdict(f"of {arguments.tries} flaky faults, those with a wrong step", wrong, 0)


def resume(arguments: argparse.Namespace, folder: Path) -> bool:
    """Print each stop; whether no trial was repeated, and the faults stayed the same."""
    interrupted = Interrupted(folder)
    whole = interrupted.whole()
    print(
        f"uninterrupted: {len(whole.trials)} trials, {whole.repeated} again for the bundle's outputs, "
        f"{', '.join(whole.faults)}"
    )
    differ = 0
    for by in (signal.SIGINT, signal.SIGKILL):
        for after in draws(len(whole.trials), arguments.stops):
            before, left = interrupted.stopped(after, by)
            # A trial that was cut off may have led to others that the whole triage did not need.
            same = left.faults == whole.faults and left.repeated == whole.repeated
            differ += not (same and whole.trials.keys() <= left.trials.keys())
            print(
                f"{by.name} after {before} trials: {sum(left.trials.values()) - before} more, "
                f"{left.repeated} repeated, {', '.join(left.faults)}",
                flush=True,
            )
    met = verdict("stopped triages that repeat a trial or find another fault", differ, 0)
    return met and bool(whole.faults)


def bundles(arguments: argparse.Namespace, folder: Path) -> bool:
    """Print each bundle; whether there is one for each fault, and all replay."""
    faults, found = replayed(folder, arguments.model or [], arguments.python)
    for one in found:
        if not one.is_right:
            print(f"{one.fault}: exit code {one.bare} where it is healthy, {one.planted} on the stand-in")
            print(one.printed)
    right = sum(one.is_right for one in found)
    print(f"| bundles that replay | {right} of {faults} |")
    return verdict(f"of {faults} bundles, those that do not replay", faults - right, 0) and faults > 0

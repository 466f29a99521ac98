"""The whole benchmark: both suites on the fake EP, and the table."""

import argparse
import tempfile
from collections import Counter
from pathlib import Path

from benchmarks.fuzzing.faults import FAULTS
from benchmarks.fuzzing.run import Result, run
from benchmarks.processes import verdict

WANTED = 0.9
SUITES = ("onnx-node", "fuzz:1:20000")


def main() -> int:
    """Exit code 1 where the fuzz suite finds less than nine in ten within its time."""
    arguments = _arguments()
    found: dict[str, Result] = {}
    for suite in arguments.suite or SUITES:
        with tempfile.TemporaryDirectory() as temporary:
            found[suite] = run(suite, Path(temporary), 60 * arguments.minutes)
        one = found[suite]
        print(
            f"{suite}: {one.models} models in {one.seconds:.0f} s, {len(one.found())} of {len(FAULTS)} found"
        )
        if one.healthy_failures:
            print(f"  without a planted fault: {', '.join(one.healthy_failures)}")
        missed = [name for name in FAULTS if name not in one.found()]
        print(
            f"  missed: {'; '.join(f'{name} ({one.befallen.get(name, 0)})' for name in missed)}", flush=True
        )
    print(table(found))
    suite, last = list(found.items())[-1]
    what = f"of {len(FAULTS)} faults in rare forms, those that {suite} finds"
    return 0 if verdict(what, len(last.found()), WANTED * len(FAULTS), at_least=True) else 1


def table(found: dict[str, Result]) -> str:
    """Return the rows of the page: kinds of faults, and how many of each a suite finds."""
    kinds = Counter(fault.kind for fault in FAULTS.values())
    head = ["| kind | faults |", *(f" {suite} |" for suite in found)]
    lines = ["".join(head), "|---|---:|" + "---:|" * len(found)]
    for kind, count in kinds.items():
        cells = (sum(FAULTS[name].kind == kind for name in one.found()) for one in found.values())
        lines.append(f"| {kind} | {count} |" + "".join(f" {cell} |" for cell in cells))
    for title, within_s in (("all, within a minute", 60.0), ("all", float("inf"))):
        cells = (len(one.found(within_s)) for one in found.values())
        lines.append(f"| {title} | {len(FAULTS)} |" + "".join(f" {cell} |" for cell in cells))
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzzing", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="of each suite, at most")
    parser.add_argument("--suite", action="append", help="this suite only; may be repeated")
    return parser.parse_args()

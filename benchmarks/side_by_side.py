"""Four execution providers in one run of the harness, against the sum of their bare loops.

The harness is one ``ep-harness run`` of four_providers.toml, the CPU, OpenVINO, QNN and WebGPU over ONNX's
operator tests, the whole process, without the report. A bare loop (bare_loop.py) is timed alone: it creates a
session, runs it and compares, model by model. Most of QNN's and WebGPU's time goes to a device that is set up
anew for each session. So every loop is run once more with a session held open meanwhile, as the harness's
agent holds one: what is then left to win is what can be done at the same time.

A round takes minutes, and a shared machine may be twice as slow by then. So the harness is timed before and
after each round of the loops, and the mean of the two held against that round. Medians are printed: of
seconds, and of these ratios, which therefore need not be the ratio of the seconds beside them.

What the loops take as whole processes, with imports and test data, is printed too, and counts for nothing.

Where one of the four cannot be used, the others are measured. What can be won beside loops that hold a
session is bounded by the longest of them, and by the processors: a provider that uses several by itself
leaves nothing for the others. So the last rows say what the longest takes on its own, and how long the
processors would take for the processes of all these loops if they were never idle. No arrangement of the same
work is faster than the greater of the two. Nor are two processors at work twice one: they share caches and
memory. What that costs shows in what these loops take when they are started at once, and none gives way.

Exit code 1: more than 0.65 x the sum of the loops.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from processes import (
    Bare,
    bare,
    bare_at_once,
    harness,
    heading,
    progress,
    row,
    targets,
    usable,
    verdict,
)

MOST_TIMES_SUM = 0.65


def main(rounds: int = 3) -> int:
    """Measure and print; 1 where the figure is not what it should be."""
    names = usable()  # which fills the caches, too
    chosen = [table for name, table in targets().items() if name in names]
    together = [_together()]
    at_once: list[float] = []
    free: list[list[Bare]] = []
    held: list[list[Bare]] = []
    for _ in range(rounds):
        at_once.append(bare_at_once(chosen, hold=True))
        progress(f"bare loops at once, held {at_once[-1]:.2f} s")
        held.append([_bare(table, hold=True) for table in chosen])
        free.append([_bare(table, hold=False) for table in chosen])
        together.append(_together())
    around = [(before + after) / 2 for before, after in pairwise(together)]

    def against(what: str, seconds: Sequence[float]) -> float:
        ratio = median(harness_s / other_s for harness_s, other_s in zip(around, seconds, strict=True))
        row(what, f"{median(seconds):.1f} s", f"{ratio:.2f} x")
        return ratio

    processors = len(os.sched_getaffinity(0))
    heading(f"{len(chosen)} providers", "median", "harness against it")
    row("harness, all in one run", f"{median(together):.1f} s", "")
    for loops, how in ((free, ""), (held, ", session held")):
        for table, its in zip(chosen, zip(*loops, strict=True), strict=True):
            row(f"bare loop, {table['name']}{how}", f"{median(loop.loop_s for loop in its):.1f} s", "")
    figure = against("sum of the bare loops", [sum(loop.loop_s for loop in four) for four in free])
    against("the same as whole processes", [sum(loop.process_s for loop in four) for four in free])
    against("sum, session held", [sum(loop.loop_s for loop in four) for four in held])
    against("longest of them, session held", [max(loop.loop_s for loop in four) for four in held])
    against("all at once, session held", at_once)
    used_s = [sum(loop.processor_s for loop in four) for four in held]
    against("processors, if never idle, session held", [seconds / processors for seconds in used_s])
    return 0 if verdict("times the sum of the bare loops", figure, MOST_TIMES_SUM) else 1


def _bare(table: Mapping[str, Any], *, hold: bool) -> Bare:
    loop = bare(table, hold=hold)
    progress(f"{table['name']}: bare{', held' * hold} {loop}")
    return loop


def _together() -> float:
    seconds = harness()
    progress(f"together {seconds:.2f} s")
    return seconds


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))

"""Four execution providers in one run of the harness, against their bare loops started all at once.

The harness is one ``ep-harness run`` of four_providers.toml, the CPU, OpenVINO, QNN and WebGPU over ONNX's
operator tests, the whole process, without the report. A bare loop (bare_loop.py) is timed alone, with a
session held open meanwhile. A plain loop that keeps each session until the next one is there is as fast; one
that lets go of it first has QNN and WebGPU set their device up for every model, see providers.py.

A round takes minutes, and a shared machine may be twice as slow by then. So the harness is timed before and
after each round of the loops, and the mean of the two held against that round. Medians are printed: of
seconds, and of these ratios, which therefore need not be the ratio of the seconds beside them.

What the loops take as whole processes, with imports and test data, is printed too, and counts for nothing.

Where one of the four cannot be used, the others are measured. What can be won is bounded by the longest of
them, and by the processors: a provider that uses several by itself leaves nothing for the others. So the rows
below the sum say what the longest takes on its own, and how long the processors would take for the processes
of all the loops if they were never idle. No arrangement of the same work is faster than the greater of these.
Nor are two processors at work twice one: they share caches and memory. What that costs shows in what the bare
loops themselves take when they are started at once. The harness arranges the same work, so this is the figure
that it is held against.

The processor time of all processes is told, too: it hardly depends on other load, and no arrangement of the
work changes it.

Exit code 1: more than 1.15 x the loops started at once.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from processes import (
    Bare,
    Timed,
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

MOST_TIMES_AT_ONCE = 1.15


def main() -> int:
    """Measure and print; 1 where the figure is not what it should be."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", type=int, nargs="?", default=3)
    rounds: int = parser.parse_args().rounds
    names = usable()  # which fills the caches, too
    chosen = [table for name, table in targets().items() if name in names]
    together = [_together()]
    at_once: list[Timed] = []
    loops: list[list[Bare]] = []
    for _ in range(rounds):
        at_once.append(bare_at_once(chosen, hold=True))
        progress(
            f"bare loops at once {at_once[-1].seconds:.2f} s, {at_once[-1].processor_s:.2f} of processors"
        )
        loops.append([])
        for table in chosen:
            loops[-1].append(bare(table, hold=True))
            progress(f"{table['name']}: bare {loops[-1][-1]}")
        together.append(_together())
    around = [(before.seconds + after.seconds) / 2 for before, after in pairwise(together)]

    def against(what: str, seconds: Sequence[float]) -> float:
        ratio = median(harness_s / other_s for harness_s, other_s in zip(around, seconds, strict=True))
        row(what, f"{median(seconds):.1f} s", f"{ratio:.2f} x")
        return ratio

    processors = len(os.sched_getaffinity(0))
    heading(f"{len(chosen)} providers", "median", "harness against it")
    row("harness, all in one run", f"{median(one.seconds for one in together):.1f} s", "")
    for table, its in zip(chosen, zip(*loops, strict=True), strict=True):
        row(f"bare loop, {table['name']}", f"{median(loop.loop_s for loop in its):.1f} s", "")
    against("sum of the bare loops", [sum(loop.loop_s for loop in four) for four in loops])
    against("the same as whole processes", [sum(loop.process_s for loop in four) for four in loops])
    against("longest of them", [max(loop.loop_s for loop in four) for four in loops])
    figure = against("bare loops, all at once", [one.seconds for one in at_once])
    used_s = [sum(loop.processor_s for loop in four) for four in loops]
    against("processors, if never idle", [seconds / processors for seconds in used_s])
    ours_s, theirs_s = (median(one.processor_s for one in runs) for runs in (together, at_once))
    row("processor time of the harness and its agents", f"{ours_s:.1f} s", "")
    row("processor time of the bare loops", f"{theirs_s:.1f} s", f"{ours_s / theirs_s:.2f} x")
    return 0 if verdict("times the bare loops at once", figure, MOST_TIMES_AT_ONCE) else 1


def _together() -> Timed:
    took = harness()
    progress(f"together {took.seconds:.2f} s, {took.processor_s:.2f} of processors")
    return took


if __name__ == "__main__":
    sys.exit(main())

"""Four execution providers in one run of the harness, against the sum of their bare loops.

The harness is one ``ep-harness run`` of side_by_side.toml, the CPU, OpenVINO, QNN and WebGPU over ONNX's
operator tests, the whole process, without the report. A bare loop (bare_loop.py) is timed alone, with a
session held open meanwhile: the faster way, see providers.py. Rounds take turns; medians are printed.

What the loops take as whole processes, with imports and test data, is printed too, and counts for nothing.

Where one of the four cannot be used, the others are measured. What can be won is bounded by the longest of
them, and by the processors: a provider that uses several by itself leaves nothing for the others. So the rows
below the sum say what the longest takes on its own, and how long the processors would take for the processes
of all the loops if they were never idle. No arrangement of the same work is faster than the greater of these.
Nor are two processors at work twice one: they share caches and memory. What that costs shows in what the bare
loops themselves take when they are started at once, where none gives way to another.

Exit code 1: more than 0.65 x the sum of the loops.
"""

import os
import sys
from statistics import median

from processes import HERE, bare, bare_at_once, harness, heading, progress, row, targets, usable, verdict

FOUR = HERE / "side_by_side.toml"
MOST_TIMES_SUM = 0.65


def main(rounds: int = 3) -> int:
    """Measure and print; 1 where the figure is not what it should be."""
    names = usable(FOUR)  # which fills the caches, too
    chosen = [table for name, table in targets(FOUR).items() if name in names]
    together: list[float] = []
    at_once: list[float] = []
    loops: dict[str, list[float]] = {table["name"]: [] for table in chosen}
    whole: dict[str, list[float]] = {table["name"]: [] for table in chosen}
    processor_s: dict[str, list[float]] = {table["name"]: [] for table in chosen}
    for _ in range(rounds):
        together.append(harness("*", FOUR))
        progress(f"together {together[-1]:.2f} s")
        at_once.append(bare_at_once(chosen, hold=True))
        progress(f"bare loops at once {at_once[-1]:.2f} s")
        for table in chosen:
            loop = bare(table, hold=True)
            loops[table["name"]].append(loop.loop_s)
            whole[table["name"]].append(loop.process_s)
            processor_s[table["name"]].append(loop.processor_s)
            progress(f"{table['name']}: bare {loop}")
    medians = {name: median(times) for name, times in loops.items()}
    total = sum(medians.values())
    whole_s = sum(map(median, whole.values()))
    least_s = sum(map(median, processor_s.values())) / len(os.sched_getaffinity(0))
    heading(f"{len(chosen)} providers", "median", "harness against it")
    row("harness, all in one run", f"{median(together):.1f} s", "")
    for name, loop_s in medians.items():
        row(f"bare loop, {name}", f"{loop_s:.1f} s", "")
    row("sum of the bare loops", f"{total:.1f} s", f"{median(together) / total:.2f} x")
    row("the same as whole processes", f"{whole_s:.1f} s", f"{median(together) / whole_s:.2f} x")
    row(
        "longest of them",
        f"{max(medians.values()):.1f} s",
        f"{median(together) / max(medians.values()):.2f} x",
    )
    row("bare loops, all at once", f"{median(at_once):.1f} s", f"{median(together) / median(at_once):.2f} x")
    row("processors, if never idle", f"{least_s:.1f} s", f"{median(together) / least_s:.2f} x")
    return 0 if verdict("times the sum of the bare loops", median(together) / total, MOST_TIMES_SUM) else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))

"""Since which night the latency of a cell has another level, and which version changed then.

Each cell is searched by itself; of many cells, false findings are held below a share, as in the comparison of
two nights.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence

from harness.core.timing.level_steps import Step, level_steps
from harness.core.timing.student import discoveries
from harness.report.changes.latency_change import FALSE_SHARE, FLOOR
from harness.report.history.trend_points import LatencyStep, RunPoint

Timed = tuple[RunPoint, float, float]
"""Run, median in milliseconds, and the standard error of its logarithm."""

_TWO_SIDED_95 = 1.96


def latency_steps(
    timed: Mapping[tuple[str, str, str], Sequence[Timed]],
    changed: Callable[[str, RunPoint, RunPoint], tuple[str, ...]],
) -> tuple[LatencyStep, ...]:
    """Return the steps of all cells, the newest first, then the largest.

    Args:
        timed: Cell, label and target -> its runs with a latency, oldest first.
        changed: Returns how the environment of a target differs between two runs.
    """
    steps = {
        names: level_steps([math.log(ms) for _, ms, _ in runs], [error for *_, error in runs])
        for names, runs in timed.items()
    }
    best = {cell: min((step.p for step in found), default=1.0) for (cell, *_), found in steps.items()}
    named = discoveries(best, FALSE_SHARE)
    found = [
        step
        for names, its in steps.items()
        if names[0] in named
        for step in _told(names, timed[names], its, changed)
    ]
    return tuple(sorted(found, key=lambda one: (one.since.first, abs(math.log(one.ratio))), reverse=True))


def _told(
    names: tuple[str, str, str],
    runs: Sequence[Timed],
    steps: Sequence[Step],
    changed: Callable[[str, RunPoint, RunPoint], tuple[str, ...]],
) -> Iterator[LatencyStep]:
    cell, label, target = names
    for step, end in zip(steps, [*(later.at for later in steps[1:]), len(runs)], strict=True):
        if abs(step.change) <= math.log1p(FLOOR):
            continue
        before, since = runs[step.at - 1][0], runs[step.at][0]
        low, high = (math.exp(step.change + side * _TWO_SIDED_95 * step.error) for side in (-1, 1))
        yield LatencyStep(
            cell=cell,
            label=label,
            since=since,
            before=before,
            ratio=math.exp(step.change),
            low=low,
            high=high,
            p=step.p,
            nights=end - step.at,
            changed=changed(target, before, since),
        )


def by_cell(
    rows: Iterator[tuple[str, str, str, int, float, float | None]], runs: Mapping[int, RunPoint]
) -> dict[tuple[str, str, str], list[Timed]]:
    """Return the latencies of each cell in the order of ``runs``; rows are of cell, label, target, run."""
    order = {number: at for at, number in enumerate(runs)}
    found: dict[tuple[str, str, str], list[tuple[int, float, float]]] = defaultdict(list)
    for cell, label, target, run, p50_ms, error in rows:
        if run in order:
            found[cell, label, target].append((run, p50_ms, error or 0.0))
    return {
        names: [(runs[run], ms, error) for run, ms, error in sorted(its, key=lambda one: order[one[0]])]
        for names, its in found.items()
    }

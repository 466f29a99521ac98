"""At which sizes of a grid a model became slower or faster between two runs, and the worst ratio."""

import math
from collections.abc import Mapping
from typing import NamedTuple

from harness.core.records.shape_times import ShapeTime
from harness.core.text.counted import plural
from harness.core.timing.student import discoveries
from harness.report.changes.latency_change import FALSE_SHARE, FLOOR, FLOOR_MS, LARGEST_P
from harness.report.changes.node_time_change import change_p
from harness.report.words.figures import brief

_DISTURBED = 0.1
_QUARTILES = 1.349
"""Standard deviations between the quartiles of a normal distribution."""

ShapeTimes = Mapping[str, ShapeTime]


class _Change(NamedTuple):
    shape: str
    before: ShapeTime
    after: ShapeTime

    @property
    def log(self) -> float:
        return math.log(self.after.p50_ms / self.before.p50_ms)

    @property
    def matters(self) -> bool:
        apart = abs(self.after.p50_ms - self.before.p50_ms)
        suspect = self.after if self.log > 0 else self.before
        calm = suspect.waiting_threads is None or suspect.waiting_threads <= _DISTURBED
        return calm and abs(self.log) > math.log(1 + FLOOR) and apart > FLOOR_MS


def shape_time_changes(cells: Mapping[str, tuple[ShapeTimes, ShapeTimes]]) -> dict[str, str]:
    """Return one sentence for each cell in which shapes became slower or faster, by more than noise."""
    changes = {
        (cell, shape): _Change(shape, before[shape], after[shape])
        for cell, (before, after) in cells.items()
        for shape in before
        if shape in after and min(before[shape].p50_ms, after[shape].p50_ms) > 0
    }
    p_values = {
        f"{cell}\n{shape}": change_p(one.log, _within(one.before) + _within(one.after), 0)
        for (cell, shape), one in changes.items()
    }
    found = {name for name in discoveries(p_values, FALSE_SHARE) if p_values[name] <= LARGEST_P}
    sentences = {}
    for cell in cells:
        its = [one for (of, _), one in changes.items() if of == cell]
        told = [one for one in its if f"{cell}\n{one.shape}" in found and one.matters]
        words = [_words(told, len(its), slower=slower) for slower in (True, False)]
        if any(words):
            sentences[cell] = "; ".join(filter(None, words))
    return sentences


def _words(changed: list[_Change], of: int, *, slower: bool) -> str:
    those = [one for one in changed if (one.log > 0) is slower]
    if not those:
        return ""
    worst = max(those, key=lambda one: abs(one.log))
    how = "slower" if slower else "faster"
    times = f"{brief(worst.before.p50_ms)} ms became {brief(worst.after.p50_ms)} ms"
    ratio = f"{math.exp(worst.log):.3g} times at {'worst' if slower else 'best'}"
    return f"{len(those)} of {plural(of, 'shape')} {how}, {ratio} ({worst.shape}: {times})"


def _within(one: ShapeTime) -> float:
    """Return the variance of the logarithm of a median: pi/2 times that of the mean of normal samples."""
    if not one.low_ms > 0:
        return 0.0
    sigma = math.log(one.high_ms / one.low_ms) / _QUARTILES
    return math.pi / 2 * sigma**2 / one.runs

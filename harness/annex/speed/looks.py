"""What pairs show, at one look after another, with a promised rate of errors over all of them.

Three answers are possible. *Slower*: the signed-rank test rejects that the builds are equal. *Not slower*: a
bound excludes a slowdown of ``FOUND_FROM``. Otherwise more pairs are needed, or the machine is too noisy. So
the time that there is decides how often there is an answer, and never how often it is wrong.

Each look may be wrong half as often as the one before. So all of them together keep to the promise, however
many there are, by the inequality of Bonferroni (a spending function as of Lan and DeMets, Biometrika 70,
1983). The cells and clocks of one look are corrected by Holm's procedure. What a look has found leaves its
part to the others (Maurer and Bretz, Statistics in Biopharmaceutical Research 5, 2013).
"""

import math
import statistics
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from harness.core.timing.latency import Latency
from harness.core.timing.signed_rank import (
    hodges_lehmann,
    holm,
    least_pairs,
    lower_bound,
    signed_rank_p,
    upper_bound,
)
from harness.core.timing.speed_change import Clock, ClockChange, SpeedChange, SpeedVerdict
from harness.report.changes.latency_change import FLOOR

FALSE_ALARMS = 0.01
"""Largest probability of any *slower*, or any *faster*, in a comparison of equal builds."""

MOST_MISSED = 0.05
"""Largest probability of a *not slower* for a cell that is slower by ``FOUND_FROM`` or more."""

FOUND_FROM = 0.10
"""The slowdown that has to be found, as a share."""

_CLOCKS = 2
"""Wall time and processor time: either can raise an alarm, and either can be wrong."""

_SPARE_PAIRS = 1
"""Pairs of the first look beyond those that the test needs if all signs agree: one disturbed pair may then
have the other sign."""


class TimedPair(msgspec.Struct, frozen=True, kw_only=True):
    """One fresh process of each build, one after the other.

    Attributes:
        base_first: Whether the base ran first: by chance.
        base: The latency with the base.
        new: The same with the new build.
    """

    base_first: bool
    base: Latency
    new: Latency


class SeenPairs(msgspec.Struct, frozen=True, kw_only=True):
    """The pairs of one cell.

    Attributes:
        computes_here: Whether all of its work is done by this machine's processors, so that processor time
            measures it.
    """

    pairs: tuple[TimedPair, ...]
    computes_here: bool

    def clocks(self) -> dict[Clock, list[tuple[float, float]]]:
        """Return clock -> milliseconds of base and new, for each pair."""
        wall = [(pair.base.p50_ms, pair.new.p50_ms) for pair in self.pairs]
        found: dict[Clock, list[tuple[float, float]]] = {"wall": wall}
        processor = [(pair.base.processor_ms or 0.0, pair.new.processor_ms or 0.0) for pair in self.pairs]
        if self.computes_here and all(min(both) > 0 for both in processor):
            found["processor"] = processor
        return found


def first_look(cells: int) -> int:
    """Return the number of pairs of each cell before the first look, for so many cells."""
    return least_pairs(_level(0) / (cells * _CLOCKS)) + _SPARE_PAIRS


def look(number: int, cells: Mapping[str, SeenPairs], others: int = 0) -> dict[str, SpeedChange]:
    """Return what the open cells of a run show at a look.

    Args:
        number: Of the look, from 0. The number of pairs does not depend on what earlier ones showed.
        cells: The cells without an answer; each has at least one pair.
        others: Number of cells that are *not slower* already: they count as hypotheses that are not rejected.
    """
    level = _level(number)
    missed = MOST_MISSED / FALSE_ALARMS * level / _CLOCKS
    changes = {
        name: {clock: _change(both, level, missed) for clock, both in seen.clocks().items()}
        for name, seen in cells.items()
    }
    settled = {f"settled {each}": 1.0 for each in range(others * _CLOCKS)}
    slower = holm(settled | _p_values(changes, "p_slower"), level)
    faster = holm(settled | _p_values(changes, "p_faster"), level)
    return {
        name: _answer(name, seen, changes[name], slower=slower, faster=faster) for name, seen in cells.items()
    }


def pairs_needed(change: SpeedChange) -> int:
    """Return about how many pairs it takes in all to tell ``FOUND_FROM`` from nothing.

    The distance of both bounds shrinks with the root of the number of pairs.
    """
    distances = [
        math.log(clock.high / clock.low) if clock.high and clock.low else math.inf
        for clock in change.changes.values()
    ]
    distance = min(distances)
    if math.isinf(distance):
        return 2 * change.pairs
    return math.ceil(change.pairs * max((distance / math.log1p(FOUND_FROM)) ** 2, 1.1))


def _level(number: int) -> float:
    return FALSE_ALARMS * 0.5 ** (number + 1)


def _p_values(changes: Mapping[str, Mapping[Clock, ClockChange]], side: str) -> dict[str, float]:
    return {
        f"{clock} {name}": float(getattr(change, side))
        for name, clocks in changes.items()
        for clock, change in clocks.items()
    }


def _change(both: Sequence[tuple[float, float]], level: float, missed: float) -> ClockChange:
    logs = [math.log(new / base) for base, new in both]
    halves = len(both) // 2
    early, late = (
        statistics.median(base for base, _ in part) for part in (both[: halves or 1], both[halves:])
    )
    low, high = lower_bound(logs, level / _CLOCKS), upper_bound(logs, missed)
    return ClockChange(
        base_ms=statistics.median(base for base, _ in both),
        new_ms=statistics.median(new for _, new in both),
        ratio=math.exp(hodges_lehmann(logs)),
        low=math.exp(low) if math.isfinite(low) else None,
        high=math.exp(high) if math.isfinite(high) else None,
        p_slower=signed_rank_p(logs),
        p_faster=signed_rank_p([-each for each in logs]),
        spread=float(np.std(logs, ddof=1)) if len(logs) > 1 else 0.0,
        drift=late / early,
    )


def _answer(
    name: str,
    seen: SeenPairs,
    changes: Mapping[Clock, ClockChange],
    *,
    slower: frozenset[str],
    faster: frozenset[str],
) -> SpeedChange:
    verdict: SpeedVerdict = "too_noisy"
    found: Clock | None = None
    for clock, change in changes.items():  # wall time first: it is what a user waits for
        if f"{clock} {name}" in slower and change.ratio > 1 + FLOOR:
            verdict, found = "slower", clock
            break
        if f"{clock} {name}" in faster and change.ratio < 1 / (1 + FLOOR):
            verdict, found = "faster", clock
            break
        if found is None and change.high is not None and change.high < 1 + FOUND_FROM:
            verdict, found = "not_slower", clock
    waiting = [
        each.waiting_threads
        for pair in seen.pairs
        for each in (pair.base, pair.new)
        if each.waiting_threads is not None
    ]
    return SpeedChange(
        cell=name,
        verdict=verdict,
        clock=found,
        pairs=len(seen.pairs),
        changes=dict(changes),
        waiting_threads=round(statistics.fmean(waiting), 3) if waiting else None,
        reason=_sentence(verdict, found, changes, len(seen.pairs)),
    )


def _sentence(
    verdict: SpeedVerdict, clock: Clock | None, changes: Mapping[Clock, ClockChange], pairs: int
) -> str:
    change = changes[clock or "wall"]
    text = f"{_told(change)} ({change.base_ms:.4g} ms -> {change.new_ms:.4g} ms of {clock or 'wall'} time"
    text += f", {pairs} pairs that differ by {change.spread:.1%})"
    if verdict == "not_slower" and clock == "processor":
        text += f"; wall time: {_told(changes['wall'])}"
    return text


def _told(change: ClockChange) -> str:
    """Return the change and its interval as percentages."""
    if change.low is None and change.high is None:
        return f"{change.ratio - 1:+.1%}, too few pairs for bounds"
    low, high = (each and f"{each - 1:+.1%}" for each in (change.low, change.high))
    return f"{change.ratio - 1:+.1%}, from {low or 'anything'} to {high or 'anything'}"

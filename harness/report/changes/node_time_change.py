"""Which operators became slower or faster between two runs, by more than their sessions differ.

As with latency (``harness.report.changes.latency_change``), two processes of one build differ by more than
the runs within each. A run has one process, so the usual spread between processes counts for each side,
beside what its sessions show. The p-values of all operators of all cells decide together which changes are
told.
"""

import math
import statistics
from collections.abc import Mapping

import msgspec

from harness.core.timing.node_times import (
    PARTS_IN_WORDS,
    NodeTimes,
    by_operator,
    middle,
    operator_words,
    time_leaves,
)
from harness.core.timing.student import discoveries, survival
from harness.report.changes.latency_change import (
    FALSE_SHARE,
    FLOOR,
    FLOOR_MS,
    LARGEST_P,
    PRIOR_RUNS,
    USUAL_SPREAD,
)
from harness.report.words.figures import brief, percentage

_RESOLUTION_MS = 0.001
"""Profiles count whole microseconds; a node's time is off by up to one."""

_SMALLEST = 0.02
"""Share of a run below which an operator is not compared."""

_DISTURBED = 0.1
_MOST_NAMED = 3
_BEYOND = 0.2
"""By how much the share of a node of a change exceeds that of the time, if the change is the node's."""

_OUTSIDE = PARTS_IN_WORDS["outside"]

Sides = tuple[NodeTimes, NodeTimes]
"""The times before and after."""


class OperatorChange(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one operator in a run, before and after, in milliseconds; ``p`` is two-sided."""

    name: str
    before_ms: float
    after_ms: float
    p: float

    @property
    def ratio(self) -> float:
        """After over before."""
        return self.after_ms / self.before_ms

    @property
    def words(self) -> str:
        """``Conv 3x3 20% slower (0.5 ms became 0.6 ms)``."""
        more = self.ratio > 1
        how = f"{self.ratio - 1:.0%} slower" if more else f"{1 - self.ratio:.0%} faster"
        return f"{self.name} {how} ({brief(self.before_ms)} ms became {brief(self.after_ms)} ms)"


def node_time_changes(cells: Mapping[str, Sides]) -> dict[str, str]:
    """Return one sentence for each cell in which operators changed; no cell without a change."""
    compared = {cell: _compared(*sides) for cell, sides in cells.items()}
    p_values = {f"{cell}\n{one.name}": one.p for cell, ones in compared.items() for one in ones}
    found = {name for name in discoveries(p_values, FALSE_SHARE) if p_values[name] <= LARGEST_P}
    sentences = {}
    for cell, ones in compared.items():
        changed = [one for one in ones if f"{cell}\n{one.name}" in found and _matters(one, *cells[cell])]
        if words := _sentence(changed, ones, *cells[cell]):
            sentences[cell] = words
    return sentences


def change_p(change: float, variance: float, degrees: float) -> float:
    """Return the two-sided p-value of a change, if processes differ by the usual spread.

    Args:
        change: Logarithm of the ratio of two times, of one process each.
        variance: Its variance within the processes.
        degrees: The degrees of freedom of that, beside those of the usual spread.
    """
    error = math.sqrt(2 * USUAL_SPREAD**2 + variance)
    return 2 * survival(abs(change) / error, PRIOR_RUNS + degrees)


def _compared(before: NodeTimes, after: NodeTimes) -> list[OperatorChange]:
    sides = [_operators(side) for side in (before, after)]
    found = []
    for name in sides[0].keys() & sides[1].keys():
        (old, count), (new, count_now) = sides[0][name], sides[1][name]
        largest = max(middle(old) / before.total_ms, middle(new) / after.total_ms)
        if min(*old, *new) <= 0 or largest < _SMALLEST:
            continue
        logs = [[math.log(ms) for ms in side] for side in (old, new)]
        change = statistics.fmean(logs[1]) - statistics.fmean(logs[0])
        degrees = sum(len(side) - 1 for side in logs)
        own = sum(statistics.variance(side) / len(side) for side in logs if len(side) > 1)
        coarse = sum(
            (_RESOLUTION_MS * nodes / middle(side)) ** 2 for side, nodes in ((old, count), (new, count_now))
        )
        p = change_p(change, own + coarse, degrees)
        found.append(OperatorChange(name=name, before_ms=middle(old), after_ms=middle(new), p=p))
    return sorted(found, key=lambda one: -max(one.before_ms, one.after_ms))


def _operators(times: NodeTimes) -> dict[str, tuple[tuple[float, ...], int]]:
    """Return operator -> its times and number of nodes, with what is outside of nodes as one of them."""
    found = by_operator(times) if times.total_ms else {}
    if outside := times.parts.get("outside"):
        found[_OUTSIDE] = outside, 1
    return found


def _matters(one: OperatorChange, before: NodeTimes, after: NodeTimes) -> bool:
    """Return whether a change is large enough, and not that of another program."""
    suspect = after if one.ratio > 1 else before
    if suspect.waiting_threads is not None and suspect.waiting_threads > _DISTURBED:
        return False
    apart = abs(math.log(one.ratio))
    return apart > math.log(1 + FLOOR) and abs(one.after_ms - one.before_ms) > FLOOR_MS


def _sentence(
    changed: list[OperatorChange], compared: list[OperatorChange], before: NodeTimes, after: NodeTimes
) -> str:
    others = len(compared) - len(changed)
    told = ""
    same_way = len({one.ratio > 1 for one in changed}) == 1
    if changed and not others and same_way and len(changed) > _MOST_NAMED - 1:
        least, most = (f(abs(one.ratio - 1) for one in changed) for f in (min, max))
        how = "slower" if changed[0].ratio > 1 else "faster"
        told = f"all {len(changed)} operators {how}, by {percentage(least)} to {percentage(most)}"
    elif changed:
        shown = [one.words + _at(one, before, after) for one in changed[:_MOST_NAMED]]
        if len(changed) > _MOST_NAMED:
            shown.append(f"{len(changed) - _MOST_NAMED} more changed")
        told = "; ".join(shown) + (", all others equal within noise" if others else "")
    return "; ".join(filter(None, (told, _others(before, after) if changed else "")))


def _at(one: OperatorChange, before: NodeTimes, after: NodeTimes) -> str:
    """Return the node that makes most of a change, where the operator has several; else nothing."""
    old, new = (
        {
            (node.node, node.inside): middle(node.ms)
            for node in time_leaves(side)
            if operator_words(node) == one.name
        }
        for side in (before, after)
    )
    total = one.after_ms - one.before_ms
    apart = {name: (new[name] - old[name]) / total for name in sorted(old.keys() & new.keys())}
    if len(apart) < 2 or old.keys() != new.keys():  # noqa: PLR2004 - one node needs no name
        return ""
    name = max(apart, key=lambda key: apart[key])
    # Where all nodes change alike, each has the share of the change that it has of the time.
    beyond = apart[name] - old[name] / one.before_ms
    return f", most of it at {name[0]}" if apart[name] > 1 / 2 and beyond > _BEYOND else ""


def _others(before: NodeTimes, after: NodeTimes) -> str:
    """Return the operators that only one side has: a fusion came or went."""
    old, new = (
        {
            name
            for name, (ms, _) in (by_operator(side) if side.total_ms else {}).items()
            if middle(ms) > _SMALLEST * side.total_ms
        }
        for side in (before, after)
    )
    every_old, every_new = (set(by_operator(side)) for side in (before, after))
    came, gone = sorted(new - every_old), sorted(old - every_new)
    parts = []
    if came:
        parts.append(f"now with {', '.join(came[:_MOST_NAMED])}")
    if gone:
        parts.append(f"no longer with {', '.join(gone[:_MOST_NAMED])}")
    return ", ".join(parts)

"""Where a series of measurements steps: from which point on it has another level, and how sure that is.

Points are weighted by their uncertainty: the variance of each by itself, and that from point to point. The
latter comes from the differences of neighbours, which a step hardly changes (von Neumann and others, Annals
of Mathematical Statistics 12, 1941); their median, so that a bad point does not either.

The search is for the part whose weighted mean differs most from that of all other points. Parts at an end of
the series (one step) and parts within it (two) are two tests. How often the same points show as much in
another order is a p-value: exact for points that are alike, whatever their distribution. So a single point
never is a step, however far away it is. Each of the parts is searched again (circular binary segmentation;
Olshen and others, Biostatistics 5, 2004). Few orders settle most cases (Besag and Clifford, Biometrika 78,
1991).
"""

import math
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.values.value import Floats

_CHI_SQUARED_MEDIAN = 0.4549
"""Median of chi-squared of one degree."""

_FEW_ORDERS, _ORDERS = 199, 1_999
_BATCH = 200
_SETTLED = 10
"""Orders that show as much, from which on a p-value is large."""

LEVEL = 0.01
"""Largest p-value of a step within a part of a series."""

FEWEST_POINTS = 4
"""Two on each side."""

MOST_SEARCHED = 60
"""The newest points that are searched: their parts in all orders take a second."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a series of logarithms.

    Attributes:
        at: Index of the first point with the new level.
        change: New level minus the one before.
        error: Standard error of it.
        p: Probability of a part that differs as much, if all points among which it was found are alike.
    """

    at: int
    change: float
    error: float
    p: float


def level_steps(values: Sequence[float] | Floats, errors: Sequence[float] | Floats) -> tuple[Step, ...]:
    """Return the steps of a series, in their order.

    Args:
        values: Logarithms; any number of them, finite. The newest ``MOST_SEARCHED`` are searched.
        errors: The standard error of each; 0 if it is unknown.
    """
    first = max(0, len(values) - MOST_SEARCHED)
    series, own = np.asarray(values[first:], np.float64), np.square(np.asarray(errors[first:], np.float64))
    if len(series) < FEWEST_POINTS:
        return ()
    weights = 1 / (_between(series, own) + own)
    found = dict(sorted(_search(series, weights, 0)))
    edges = [0, *found, len(series)]
    levels = [_level(series[one:end], weights[one:end]) for one, end in pairwise(edges)]
    return tuple(
        Step(at=first + at, change=new[0] - old[0], error=math.sqrt(old[1] + new[1]), p=p)
        for (at, p), (old, new) in zip(found.items(), pairwise(levels), strict=True)
    )


def _level(series: Floats, weights: Floats) -> tuple[float, float]:
    """Return the weighted mean of points, and its variance."""
    return float(np.average(series, weights=weights)), float(1 / weights.sum())


def _between(series: Floats, own: Floats) -> float:
    """Return the variance from point to point beyond that of the points themselves."""
    noise = float(np.median(np.square(np.diff(series)))) / _CHI_SQUARED_MEDIAN / 2
    typical = float(np.median(own))
    # Equal points are equal but for rounding.
    return max(noise - typical, typical, 1e-12)


def _search(series: Floats, weights: Floats, start: int) -> Iterator[tuple[int, float]]:
    """Yield the index and the p-value of each step."""
    count = len(series)
    if count < FEWEST_POINTS:
        return
    first, end = np.triu_indices(count + 1, 1)
    at_end, within = first == 0, (first > 0) & (end < count)  # the last points are the rest of the first ones
    tests = [_Parts(first[kind], end[kind]) for kind in (at_end & (end < count), within)]
    p, best = min(_tested(series, weights, parts) for parts in tests)
    if (p := min(1.0, len(tests) * p)) > LEVEL:
        return
    edges = sorted({0, *best, count})
    yield from ((start + at, p) for at in edges[1:-1])
    for one, after in pairwise(edges):
        yield from _search(series[one:after], weights[one:after], start + one)


class _Parts(NamedTuple):
    """First index of each part, and the one after its last."""

    first: NDArray[np.int64]
    end: NDArray[np.int64]


def _distances(series: Floats, weights: Floats, parts: _Parts) -> Floats:
    """Return how far each part is from the other points, squared, in variances; shape ``(rows, parts)``."""
    first, end = parts
    heavy, sums = (np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0))) for each in (weights, weights * series))
    inside = heavy[:, end] - heavy[:, first]
    outside = heavy[:, -1:] - inside
    within = sums[:, end] - sums[:, first]
    change = within / inside - (sums[:, -1:] - within) / outside
    found: Floats = np.square(change) / (1 / inside + 1 / outside)
    return found


def _tested(series: Floats, weights: Floats, parts: _Parts) -> tuple[float, tuple[int, int]]:
    """Return the p-value of the part that differs most, and that part."""
    distances = _distances(series[np.newaxis], weights[np.newaxis], parts)[0]
    best = int(distances.argmax())
    # The seed comes from the data, so that the answer is always the same.
    generator = np.random.default_rng(zlib.crc32(series.tobytes()))
    # Equal arrangements differ in their last bits.
    least = distances[best] * (1 - 1e-9)
    as_much = orders = 0
    for wanted in (_FEW_ORDERS, _ORDERS):
        while orders < wanted and as_much < _SETTLED:
            count = min(_BATCH, wanted - orders)
            order = generator.permuted(np.tile(np.arange(len(series)), (count, 1)), axis=1)
            found = _distances(series[order], weights[order], parts).max(axis=1)
            as_much += int(np.count_nonzero(found >= least))
            orders += count
    return (as_much + 1) / (orders + 1), (int(parts.first[best]), int(parts.end[best]))

"""Rates: how many of the faults that can be seen a policy finds, and how many healthy results it accuses."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec

from benchmarks.detection.measure import VISIBLE
from benchmarks.detection.rows import Row

BINS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1024.0)
"""Edges of the classes of effects, in multiples of the noise."""

BANDS = BINS[2:7]
"""The same, where policies differ: below, nothing can be told from rounding; above, most are found."""

SURE = 0.99
"""Share of the faults from some effect on that has to be found for these to be seen."""


class Rate(msgspec.Struct, frozen=True):
    """So many of so many."""

    count: int
    of: int

    @property
    def share(self) -> float:
        """The rate; 0 of nothing is 0."""
        return self.count / self.of if self.of else 0.0

    def __str__(self) -> str:
        return f"{self.share:.1%} ({self.count} of {self.of})" if self.of else "-"


def visible(row: Row) -> bool:
    """Whether a fault's effect is large enough that it has to be found."""
    return row.fault is not None and (row.effect is None or row.effect > VISIBLE)


def healthy(row: Row) -> bool:
    """Whether a result has to pass."""
    return row.fault is None and not row.doubtful


def found(rows: Iterable[Row], policy: str) -> Rate:
    """Which of the visible faults fail."""
    return _rate([row for row in rows if visible(row)], policy)


def accused(rows: Iterable[Row], policy: str) -> Rate:
    """Which of the healthy results fail."""
    return _rate([row for row in rows if healthy(row)], policy)


def curve(rows: Iterable[Row], policy: str) -> list[tuple[str, Rate]]:
    """How many faults fail, by the size of their effect."""
    planted = [row for row in rows if row.fault is not None]
    structural = [row for row in planted if row.effect is None]
    return [
        *bands(planted, policy, (0.0, *BINS, math.inf)),
        ("shape, integer, NaN or infinity", _rate(structural, policy)),
    ]


def bands(rows: Iterable[Row], policy: str, edges: Sequence[float]) -> list[tuple[str, Rate]]:
    """How many faults fail whose effect lies between neighbouring edges."""
    planted = [row for row in rows if row.fault is not None and row.effect is not None]
    return [
        (
            f"{low:g} or more" if high == math.inf else f"{low:g} to {high:g}",
            _rate([row for row in planted if low <= (row.effect or 0.0) < high], policy),
        )
        for low, high in pairwise(edges)
    ]


def seen_from(rows: Iterable[Row], policy: str) -> float | None:
    """The least effect from which on a policy finds nearly all faults; None where there is none."""
    planted = [row for row in rows if row.fault is not None and row.effect is not None]
    least, count = None, 0
    for total, row in enumerate(sorted(planted, key=lambda row: row.effect or 0.0, reverse=True), 1):
        count += policy in row.failed
        if count >= SURE * total:
            least = row.effect
    return least


def _rate(rows: Sequence[Row], policy: str) -> Rate:
    return Rate(sum(policy in row.failed for row in rows), len(rows))

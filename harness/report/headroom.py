"""How much of what is allowed each lane's errors take, and which right answers come closest to the limit."""

import heapq
from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.cell import ReportCell
from harness.report.drift import most_headroom
from harness.report.figures import brief
from harness.report.lane import Lane

EDGES = (0.0, 0.01, 0.1, 0.5, 0.8, 1.0)
"""Upper ends of the bands, as shares of the allowed error; the first holds exact results only, and what is
above the last one is out of tolerance."""

BANDS = ("exact", "to 1%", "to 10%", "to 50%", "to 80%", "to 100%", "out of tolerance")

SHOWN_CLOSE = 25
"""How many of the right answers that are closest to their limit are named."""

CLOSE = 0.5
"""From which share of the allowed error on a right answer is worth naming."""


class LaneHeadroom(msgspec.Struct, frozen=True, kw_only=True):
    """Error relative to the allowed error over one lane's judged cells, each with its worst output.

    Attributes:
        lane: Which.
        cells: Cells with a figure.
        counts: Cells in each of ``BANDS``.
    """

    lane: Lane
    cells: int
    counts: tuple[int, ...]

    @property
    def bar(self) -> tuple[tuple[int, int, float, float], ...]:
        """``(band, count, start, width)`` of the bands with cells, in percent of the bar."""
        found = []
        before = 0
        for band, count in enumerate(self.counts):
            if count:
                start, width = 100 * before / self.cells, 100 * count / self.cells
                found.append((band, count, round(start, 3), round(width, 3)))
                before += count
        return tuple(found)


class CloseCell(msgspec.Struct, frozen=True, kw_only=True):
    """A right answer close to the limit.

    Attributes:
        cell: Its id.
        href: Where its details stand; may be empty.
        used: Error relative to the allowed error, in at most three digits.
    """

    cell: str
    href: str
    used: str


def lane_headroom(lane: Lane, records: Iterable[Record]) -> LaneHeadroom:
    """Count one lane's judged cells by how much of the allowed error they take."""
    counts = [0] * len(BANDS)
    for record in records:
        band = _band(record)
        if band is not None:
            counts[band] += 1
    return LaneHeadroom(lane=lane, cells=sum(counts), counts=tuple(counts))


def closest(cells: Iterable[ReportCell]) -> tuple[CloseCell, ...]:
    """The right answers closest to their limit, the closest first."""
    right = (cell for cell in cells if cell.record.verdict.family is Family.PASSED)
    near = ((used, cell) for cell in right if (used := most_headroom(cell.record)) is not None)
    top = heapq.nlargest(SHOWN_CLOSE, (pair for pair in near if pair[0] >= CLOSE), key=lambda pair: pair[0])
    return tuple(CloseCell(cell=cell.record.cell, href=cell.href, used=brief(used)) for used, cell in top)


def _band(record: Record) -> int | None:
    if record.verdict is Verdict.MISMATCH:
        return len(EDGES)
    used = most_headroom(record)
    # What the CPU computed in the EP's place says nothing about the EP.
    if record.verdict.family is not Family.PASSED or used is None:
        return None
    return bisect_left(EDGES, used)

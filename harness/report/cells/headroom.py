"""The part of the allowed error that each column uses, and the right answers closest to the limit."""

import heapq
from bisect import bisect_left
from collections.abc import Iterable

import msgspec

from harness.core.records.record import Record
from harness.core.records.verdict import WRONG_NUMBERS, Family
from harness.report.cells.column import Column
from harness.report.cells.report_cell import ReportCell
from harness.report.cells.worst import most_headroom
from harness.report.words.figures import Segment, stacked

EDGES = (0.0, 0.01, 0.1, 0.5, 0.8, 1.0)
"""Upper ends of the bands, as shares of the allowed error.

The first band has only exact results; above the last edge is out of tolerance.
"""

BANDS = ("exact", "to 1%", "to 10%", "to 50%", "to 80%", "to 100%", "out of tolerance")

_SHOWN_CLOSE = 25
"""Number of right answers closest to their limit that are named."""

_CLOSE = 0.5
"""Share of the allowed error from which a right answer is named."""


class ColumnHeadroom(msgspec.Struct, frozen=True, kw_only=True):
    """Error relative to the allowed error over one column's judged cells, each with its worst output.

    Attributes:
        counts: Cells in each of ``BANDS``.
    """

    column: Column
    cells: int
    counts: tuple[int, ...]

    @property
    def bar(self) -> tuple[Segment, ...]:
        """The bands as a bar; the keys are their indices."""
        return stacked(enumerate(self.counts))


def column_headroom(column: Column, records: Iterable[Record]) -> ColumnHeadroom:
    """Count one column's judged cells by the share of the allowed error that they use."""
    counts = [0] * len(BANDS)
    for record in records:
        band = _band(record)
        if band is not None:
            counts[band] += 1
    return ColumnHeadroom(column=column, cells=sum(counts), counts=tuple(counts))


def closest(cells: Iterable[ReportCell]) -> tuple[tuple[float, ReportCell], ...]:
    """Return the right answers closest to their limit, with their share of the allowed error."""
    right = (cell for cell in cells if cell.record.verdict.family is Family.PASSED)
    near = ((used, cell) for cell in right if (used := most_headroom(cell.record)) is not None)
    close = (pair for pair in near if pair[0] >= _CLOSE)
    return tuple(heapq.nlargest(_SHOWN_CLOSE, close, key=lambda pair: pair[0]))


def _band(record: Record) -> int | None:
    if record.verdict in WRONG_NUMBERS:
        return len(EDGES)
    used = most_headroom(record)
    # A result of the CPU in the EP's place says nothing about the EP.
    if record.verdict.family is not Family.PASSED or used is None:
        return None
    return bisect_left(EDGES, used)

"""Errors of each column's results, in multiples of the rounding noise of their models."""

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import chain

import msgspec

from harness.core.comparison.output_metrics import Noise
from harness.core.records.record import Record
from harness.core.records.verdict import WRONG_NUMBERS, Family
from harness.core.text.errors import one_line
from harness.report.cells.column import Column
from harness.report.cells.report_cell import ReportCell
from harness.report.cells.worst import worst_noise
from harness.report.words.figures import FiveNumbers, Share, spread

_NEAR = 1 / 4
"""Below this multiple a result is far more precise than the precision of comparison."""

_SHOWN_FAR = 50
"""Number of cells farthest beyond the limits that are named."""

SHOWN_FAR_OF_A_COLUMN = 5
"""Largest number of them in one column: a column that computes in another precision would fill the list."""

SHOWN_REASONS = 8
"""How many reasons for unknown noise are listed."""

_REASON_CHARS = 160

_SCALE_DECADES = 2
"""Powers of ten on either side of 1 in the plot."""

_Excess = tuple[float, Noise]
"""A cell's :func:`worst_noise`."""


class ColumnNoise(msgspec.Struct, frozen=True, kw_only=True):
    """Multiples of the noise over one column's judged cells, each with its worst output.

    Attributes:
        precision: The precision whose rounding makes the noise.
        ratios: Root mean square of the error over that of the noise, of these cells.
        above: Cells beyond the default limits: rounding alone does not explain them.
        below: Cells below ``_NEAR``.
        like: ``(precision, cells)``: the precision that a cell's error resembles most, the most frequent
            first.
    """

    column: Column
    precision: str
    cells: int
    ratios: FiveNumbers
    above: int
    below: int
    like: tuple[tuple[str, int], ...]

    @property
    def above_share(self) -> Share:
        """Return the share of cells beyond the default limits, among those with a figure."""
        return Share(self.above, self.cells)

    @property
    def below_share(self) -> Share:
        """Return the share of cells that are far more precise, among those with a figure."""
        return Share(self.below, self.cells)


def column_noise(column: Column, records: Iterable[Record]) -> tuple[ColumnNoise, ...]:
    """Measure one column, once for each precision of the noise; the one with the most cells comes first.

    Results of the CPU in the provider's place do not count. Exact results have no figure.
    """
    found: dict[str, list[_Excess]] = defaultdict(list)
    for record in records:
        worst = worst_noise(record)
        if worst and _is_the_providers(record):
            found[worst[1].precision].append(worst)
    rows = [
        ColumnNoise(
            column=column,
            precision=precision,
            cells=len(its),
            ratios=ratios,
            above=sum(excess > 1 for excess, _ in its),
            below=sum(noise.rms < _NEAR for _, noise in its),
            like=tuple(Counter(noise.like for _, noise in its if noise.like).most_common()),
        )
        for precision, its in found.items()
        if (ratios := spread([noise.rms for _, noise in its]))
    ]
    return tuple(sorted(rows, key=lambda row: (-row.cells, row.precision)))


def without_noise(records: Iterable[Record]) -> tuple[tuple[str, int], ...]:
    """Return ``(reason, cells)`` of unknown noise that should have judged, the most frequent first."""
    reasons = Counter(one_line(record.no_spread, _REASON_CHARS) for record in records if record.no_spread)
    shown = reasons.most_common(SHOWN_REASONS)
    rest = reasons.total() - sum(count for _, count in shown)
    return (*shown, *([("other reasons", rest)] if rest else []))


def farthest(cells: Iterable[ReportCell]) -> tuple[tuple[Noise, ReportCell], ...]:
    """Return the cells beyond the default limits with the noise of their worst output, the farthest first."""
    by_column: dict[Column, list[tuple[_Excess, ReportCell]]] = defaultdict(list)
    for cell in cells:
        worst = worst_noise(cell.record)
        if worst and worst[0] > 1 and _is_the_providers(cell.record):
            by_column[cell.column].append((worst, cell))
    tops = (heapq.nlargest(SHOWN_FAR_OF_A_COLUMN, its, key=_by_excess) for its in by_column.values())
    top = heapq.nlargest(_SHOWN_FAR, chain.from_iterable(tops), key=_by_excess)
    return tuple((noise, cell) for (_, noise), cell in top)


def on_log_scale(ratio: float) -> float:
    """Return the position of a multiple on the plot, in percent of its width; 1 is in the middle."""
    decades = math.log10(ratio) if ratio > 0 else -math.inf
    return round(50 + 50 * min(max(decades / _SCALE_DECADES, -1.0), 1.0), 2)


def _is_the_providers(record: Record) -> bool:
    judged = record.verdict.family is Family.PASSED or record.verdict in WRONG_NUMBERS
    return judged and record.placement is not None and record.placement.ep_nodes > 0


def _by_excess(found: tuple[_Excess, ReportCell]) -> float:
    return found[0][0]

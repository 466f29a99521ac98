"""The loss by conversion to a lower precision: on each column's provider, and on the CPU EP."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from harness.core.records.record import Record
from harness.core.records.verdict import WRONG_NUMBERS, Family
from harness.report.cells.column import Column
from harness.report.cells.worst import worst_error
from harness.report.words.figures import FiveNumbers, spread


class ColumnConversion(msgspec.Struct, frozen=True, kw_only=True):
    """Errors against the goldens of the unconverted models; each cell counts with its worst output.

    Attributes:
        error: Median of the relative error on the provider.
        cpu_error: The same on the CPU EP with the same converted model; null without any.
        ratios: The provider's error over the CPU EP's, for the cells that have one.
        unknown: ``(why a number is missing, cells)``, the most frequent first; such a cell counts among
            ``cells`` if it has the other numbers.
    """

    column: Column
    cells: int
    error: float
    cpu_error: float | None
    ratios: FiveNumbers | None
    unknown: tuple[tuple[str, int], ...]


def column_conversion(column: Column, records: Iterable[Record]) -> ColumnConversion | None:
    """Measure one column; None if none of its cells has a figure."""
    worst = [
        error
        for record in records
        if (record.verdict.family is Family.PASSED or record.verdict in WRONG_NUMBERS)
        and (error := worst_error(record)) is not None
    ]
    found = [each for each in worst if each.error is not None]
    errors = spread([each.error for each in found if each.error is not None])
    if errors is None:
        return None
    cpu = spread([each.cpu_error for each in found if each.cpu_error is not None])
    return ColumnConversion(
        column=column,
        cells=len(found),
        error=errors.median,
        cpu_error=cpu.median if cpu else None,
        ratios=spread([each.ratio for each in found if each.ratio is not None]),
        unknown=tuple(Counter(each.unknown for each in worst if each.unknown).most_common()),
    )

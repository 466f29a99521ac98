"""Options that should change the computation: the number of cells of each column in which they did."""

from collections import defaultdict
from collections.abc import Iterator

import msgspec

from harness.core.text.errors import one_line
from harness.report.cells.column import Column
from harness.report.view import Report

_SHOWN_OPTIONS = 20
"""Number of options of one column that are named."""


class ColumnEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of one column's options; its cells share their options.

    Attributes:
        options: Their keys, and the precision mode as ``ep:<name>``.
        judged: Cells whose outputs can show an effect.
        seen: Cells whose outputs differ from those without the options.
    """

    column: Column
    options: tuple[str, ...]
    judged: int
    seen: int


def report_effects(report: Report) -> Iterator[ColumnEffect]:
    """Count the cells of each column by their options; yields nothing if no cell can show an effect."""
    for column in report.columns:
        counts: dict[tuple[str, ...], list[bool]] = defaultdict(list)
        for record in report.by_column[column]:
            if record.effect is not None:
                counts[record.effect.options].append(record.effect.seen)
        for options, seen in counts.items():
            shown = tuple(one_line(option, 120) for option in options[:_SHOWN_OPTIONS])
            yield ColumnEffect(column=column, options=shown, judged=len(seen), seen=sum(seen))

"""All targets at a glance: one table, coloured by the share of cells that fail."""

from collections import defaultdict
from collections.abc import Sequence
from urllib.parse import urlencode

import msgspec

from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.verdict import Family
from harness.report.cells.column import Column
from harness.report.pages.model_grid import column_filters
from harness.report.view import Report
from harness.report.words.figures import Share

CROWDED = 8
"""Number of columns from which on a table replaces the bars, which would fill the screen."""

_LIMITS = (0.0, 0.02, 0.1, 0.3)
"""Shares of failed cells up to which a square has the colour with that index."""

_ACROSS = "scenario"


class HeatCell(msgspec.Struct, frozen=True, kw_only=True):
    """One target at one point of its axes.

    Attributes:
        passed: Right answers in which the EP had a part, among the tried cells.
        unexpected: Cells whose verdict is not what the matrix expects.
        tone: ``heat-0`` if none of the tried cells failed, up to ``heat-4`` if most did; ``heat-idle`` if
            none failed and less than half of them passed.
        href: The table of models with only this column.
    """

    passed: Share
    failed: int
    unexpected: int
    tone: str
    href: str


class HeatRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target, with the axes that are not in the head of the table."""

    target: str
    setting: str
    cells: tuple[HeatCell | None, ...]


class Heat(msgspec.Struct, frozen=True, kw_only=True):
    """The table.

    Attributes:
        axis: The axis in its head; empty if the columns differ only in their targets.
        values: Its values.
    """

    axis: str
    values: tuple[str, ...]
    rows: tuple[HeatRow, ...]


def heat_of(report: Report) -> Heat | None:
    """Return the table, or None for a report with few columns."""
    if len(report.columns) <= CROWDED:
        return None
    axis = _axis(report.columns)
    unexpected = {
        column: sum(not record.expected for record in records) for column, records in report.by_column.items()
    }
    own = {filter_.name for filter_ in column_filters(report.columns)}
    rows: dict[tuple[str, str], dict[str, HeatCell]] = defaultdict(dict)
    for each in report.summary:
        column = each.column
        right = sum(record.verdict.family is Family.PASSED for record in report.by_column[column])
        rows[column.target, _others(column, axis)][_value(column, axis)] = HeatCell(
            passed=Share(right, each.tried, not report.complete),
            failed=each.failed.count,
            unexpected=unexpected[column],
            tone=_tone(each.failed, right),
            href=_href(column, own),
        )
    default = AXIS_DEFAULTS.get(axis, "not set")
    found = {_value(column, axis) for column in report.columns}
    values = tuple(sorted(found, key=lambda value: (value != default, value)))
    return Heat(
        axis=axis,
        values=values,
        rows=tuple(
            HeatRow(target=target, setting=setting, cells=tuple(map(cells.get, values)))
            for (target, setting), cells in rows.items()
        ),
    )


def _axis(columns: Sequence[Column]) -> str:
    """Return the scenario if columns differ in it, else the axis with the most values."""
    values: dict[str, set[str]] = defaultdict(set)
    for column in columns:
        for axis, value in column.axes:
            values[axis].add(value)
    if _ACROSS in values:
        return _ACROSS
    return max(sorted(values), key=lambda axis: len(values[axis]), default="")


def _value(column: Column, axis: str) -> str:
    return dict(column.axes).get(axis, AXIS_DEFAULTS.get(axis, "not set")) if axis else ""


def _others(column: Column, axis: str) -> str:
    return ", ".join(f"{name}={value}" for name, value in column.axes if name != axis)


def _tone(failed: Share, passed: int) -> str:
    if not failed.count and 2 * passed < failed.total:
        return "heat-idle"
    share = failed.count / failed.total if failed.total else 0.0
    return f"heat-{sum(share > limit for limit in _LIMITS)}"


def _href(column: Column, filters: set[str]) -> str:
    chosen = {"target": column.target, **AXIS_DEFAULTS, **dict(column.axes)}
    pairs = [(f"column.{name}", chosen.get(name, "not set")) for name in sorted(filters)]
    return f"models.html#?{urlencode(pairs)}"

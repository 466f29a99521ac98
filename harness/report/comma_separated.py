"""The report as tables for a spreadsheet: one of the targets, one of the cells."""

import csv
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from harness.core.cell import AXIS_DEFAULTS
from harness.core.errors import one_line
from harness.core.text import visible
from harness.report.rows import CellRow, TargetRow

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - what spreadsheets take for a formula
_MAX_CHARS = 2_000


class _Lines(Protocol):
    def write(self, text: str, /) -> object: ...


def write_targets(rows: Sequence[TargetRow], out: _Lines) -> None:
    """One line for each target at one point of its axes."""
    fields = [each for each in TargetRow.__struct_fields__ if each != "axes"]
    _write(map(_flat, rows), fields, (), out)


def write_cells(rows: Iterable[CellRow], axes: Sequence[str], out: _Lines) -> None:
    """One line for each cell; ``axes`` are columns of their own after the other ones."""
    fields = [each for each in CellRow.__struct_fields__ if each != "axes"]
    _write((_flat(row) for row in rows), fields, axes, out)


def axis_names(rows: Iterable[CellRow]) -> tuple[str, ...]:
    """Every axis of the rows, those that all cells have first."""
    found = {axis for row in rows for axis in row.axes}
    return (*AXIS_DEFAULTS, *sorted(found - AXIS_DEFAULTS.keys()))


def inert(text: str) -> str:
    """Text that no spreadsheet takes for a formula: an apostrophe before what could begin one.

    https://owasp.org/www-community/attacks/CSV_Injection
    """
    line = one_line(visible(text), _MAX_CHARS)
    return f"'{line}" if line.startswith(_FORMULA) else line


def _write(rows: Iterable[dict[str, Any]], fields: Sequence[str], axes: Sequence[str], out: _Lines) -> None:
    # Texts in quotes, figures without: quotes also keep a leading apostrophe and commas where they are.
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow([*fields, *map(inert, axes)])
    for row in rows:
        values = [*(row[field] for field in fields), *(row["axes"].get(axis) for axis in axes)]
        writer.writerow(map(_value, values))


def _flat(row: TargetRow | CellRow) -> dict[str, Any]:
    return msgspec.structs.asdict(row)


def _value(value: object) -> str | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, int | float) else inert(str(value))

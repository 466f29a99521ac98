"""The report as tables for a spreadsheet: targets, cells, and generated text if there is any."""

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harness.core.files.writing import aside
from harness.core.records.cell import AXIS_DEFAULTS
from harness.report.formats.cell_columns import CellRow
from harness.report.words.inert import inert_csv


def write_table(
    path: Path, kind: type[msgspec.Struct], rows: Iterable[msgspec.Struct], axes: Sequence[str] = ()
) -> None:
    """Write one line for each row; each of ``axes`` is a further column."""
    fields = [each for each in kind.__struct_fields__ if each != "axes"]
    # Spreadsheets recognize UTF-8 by a byte order mark.
    with aside(path) as fresh, fresh.open("w", encoding="utf-8-sig", newline="") as file:
        # Texts in quotes, figures without: quotes also preserve a leading apostrophe and commas.
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
        writer.writerow([*fields, *map(inert_csv, axes)])
        for row in rows:
            own = getattr(row, "axes", {})
            values = [*(getattr(row, field) for field in fields), *(own.get(axis) for axis in axes)]
            writer.writerow(map(_value, values))


def axis_names(rows: Iterable[CellRow]) -> tuple[str, ...]:
    """Return every axis of the rows, those of all cells first."""
    found = {axis for row in rows for axis in row.axes}
    return (*AXIS_DEFAULTS, *sorted(found - AXIS_DEFAULTS.keys()))


def _value(value: object) -> str | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, int | float) else inert_csv(str(value))

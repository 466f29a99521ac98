"""The report as tables for a spreadsheet: targets, cells, and generated text if there is any."""

import csv
from collections.abc import Iterable, Sequence
from typing import TextIO

import msgspec

from harness.core.cell import AXIS_DEFAULTS
from harness.report.generation_rows import SpeedRow, WayRow
from harness.report.inert import inert_csv
from harness.report.rows import CellRow, TargetRow


def write_targets(rows: Sequence[TargetRow], out: TextIO) -> None:
    """Write one line for each target at one point of its axes."""
    _write(rows, TargetRow, (), out)


def write_cells(rows: Iterable[CellRow], axes: Sequence[str], out: TextIO) -> None:
    """Write one line for each cell; each of ``axes`` is a column after the others."""
    _write(rows, CellRow, axes, out)


def write_ways(rows: Iterable[WayRow], out: TextIO) -> None:
    """Write one line for each way of generating text."""
    _write(rows, WayRow, (), out)


def write_speed(rows: Iterable[SpeedRow], out: TextIO) -> None:
    """Write one line for each figure of the speed of generated text."""
    _write(rows, SpeedRow, (), out)


def axis_names(rows: Iterable[CellRow]) -> tuple[str, ...]:
    """Return every axis of the rows, those of all cells first."""
    found = {axis for row in rows for axis in row.axes}
    return (*AXIS_DEFAULTS, *sorted(found - AXIS_DEFAULTS.keys()))


def _write(
    rows: Iterable[msgspec.Struct], kind: type[msgspec.Struct], axes: Sequence[str], out: TextIO
) -> None:
    fields = [each for each in kind.__struct_fields__ if each != "axes"]
    # Texts in quotes, figures without: quotes also preserve a leading apostrophe and commas.
    writer = csv.writer(out, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\r\n")
    writer.writerow([*fields, *map(inert_csv, axes)])
    for row in rows:
        own = getattr(row, "axes", {})
        values = [*(getattr(row, field) for field in fields), *(own.get(axis) for axis in axes)]
        writer.writerow(map(_value, values))


def _value(value: object) -> str | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, int | float) else inert_csv(str(value))

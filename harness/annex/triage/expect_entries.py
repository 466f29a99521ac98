"""Entries ``[[expect]]`` for the faults of a run, one for each fault, target and point of the axes."""

import glob
import json
from collections.abc import Collection, Iterator

from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.fault import Fault
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict

EntryAxes = tuple[tuple[str, str], ...]


def expect_entries(faults: Collection[Fault], records: Collection[Record]) -> Iterator[str]:
    """Yield entries that make unexpected cells expected, for cells that a fault of the run explains.

    Inconclusive faults explain nothing.
    """
    by_cell = {record.cell: record for record in records}
    cells: dict[str, list[str]] = {}
    first: dict[str, Fault] = {}
    for fault in faults:
        if not fault.inconclusive:
            first.setdefault(fault.id, fault)
            cells.setdefault(fault.id, []).extend(fault.cells)
    for name, fault in first.items():
        unexpected = [by_cell[cell] for cell in cells[name] if cell in by_cell and not by_cell[cell].expected]
        points: dict[tuple[str, Verdict, EntryAxes], list[str]] = {}
        for record in unexpected:
            varied = (pair for pair in sorted(record.axes.items()) if AXIS_DEFAULTS.get(pair[0]) != pair[1])
            point = (record.target, record.verdict, tuple(varied))
            points.setdefault(point, []).append(glob.escape(f"{record.suite}/{record.model}"))
        for (target, verdict, axes), models in points.items():
            yield "[[expect]]"
            yield f"target  = {_text(glob.escape(target))}"
            yield from (f"{_text(axis)} = {_text(glob.escape(value))}" for axis, value in axes)
            yield f"model   = [{', '.join(map(_text, models))}]"
            yield f"verdict = {_text(verdict)}"
            yield f"fault   = {_text(fault.id)}"
            yield f"reason  = {_text(fault.sentence)}"
            yield ""


def _text(text: str) -> str:
    """Return a text in TOML: its basic strings escape as JSON's do, and ASCII needs no further rule."""
    return json.dumps(text)

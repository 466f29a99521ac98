"""Exceptions of the harness itself: each costs one cell its verdict, never the run."""

import traceback
from pathlib import Path
from typing import NamedTuple

from harness.core.records.cell import Cell
from harness.core.records.cell_end import CellEnd
from harness.core.records.record import SCHEMA, Record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import one_line

_PACKAGE = Path(__file__).parents[2]


class OwnError(NamedTuple):
    """An unexpected exception, with its complete traceback.

    The reason has what happened, where, and a request to report it; one line of at most 300 characters.
    """

    reason: str
    traceback: str


def own_error(error: BaseException) -> OwnError:
    """Describe an exception, even one that cannot be converted to text."""
    found = traceback.TracebackException.from_exception(error)
    where = next((place for frame in reversed(found.stack) if (place := _place(frame))), "")
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - any error may come from its __str__
        text = ""
    what = ": ".join(filter(None, (type(error).__name__, one_line(text, 100))))
    reason = f"an exception of the harness itself{where}: {what}; please report it"
    return OwnError(reason, "".join(found.format()))


def lost_record(cell: Cell, provider: str, started: str, error: OwnError) -> Record:
    """Return the record of a cell that lost its verdict to an exception.

    It calls little code, because any code may be the cause.
    """
    verdict = Verdict.HARNESS_ERROR
    reason = f"{error.reason}, with traceback.txt from this cell's artifacts"
    return Record(
        schema=SCHEMA,
        cell=cell.id,
        suite=cell.suite,
        model=cell.model,
        target=cell.target,
        axes=dict(cell.axes),
        provider=provider,
        verdict=verdict,
        family=verdict.family,
        expected=False,
        reason=reason,
        ended=CellEnd(how="harness", message=reason),
        started=started,
        attempt=1,
    )


def without_verdict(record: Record, error: OwnError) -> Record:
    """Return the record of a cell whose own record could not be written."""
    cell = Cell(suite=record.suite, model=record.model, target=record.target, axes=tuple(record.axes.items()))
    return lost_record(cell, record.provider, record.started, error)


def _place(frame: traceback.FrameSummary) -> str:
    """Return `` in FILE:LINE`` for a frame of the harness; empty for another."""
    path = Path(frame.filename)
    if not path.is_relative_to(_PACKAGE):
        return ""
    return f" in {path.relative_to(_PACKAGE).as_posix()}:{frame.lineno}"

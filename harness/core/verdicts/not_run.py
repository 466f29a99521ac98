"""The record of a cell that was planned and has no result."""

from harness.core.records.cell import Cell
from harness.core.records.record import SCHEMA, Record
from harness.core.records.verdict import Verdict


def not_run(cell: Cell, provider: str, reason: str = "", *, expected: bool = True) -> Record:
    """Return the record; ``expected`` is whether a missing result is in order."""
    return Record(
        schema=SCHEMA,
        cell=cell.id,
        suite=cell.suite,
        model=cell.model,
        target=cell.target,
        axes=dict(cell.axes),
        provider=provider,
        verdict=Verdict.NOT_RUN,
        family=Verdict.NOT_RUN.family,
        expected=expected,
        reason=reason,
    )

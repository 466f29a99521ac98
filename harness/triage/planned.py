"""The records of planned cells: a run folder may hold others, which somebody else has added."""

from collections.abc import Collection, Sequence

from harness.core.record import Record
from harness.plan.tolerance_policy import cell_of


def planned_records(records: Sequence[Record], cells: Collection[str]) -> tuple[Record, ...]:
    """Return the records whose id is one of ``cells``, and whose axes are those of their id.

    Triage runs a cell by its axes, and those of a cell that nobody planned may name libraries to load.
    """
    return tuple(one for one in records if one.cell in cells and cell_of(one).id == one.cell)

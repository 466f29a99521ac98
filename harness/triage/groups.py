"""Groups of failing cells: those that look like one fault before anything is tried."""

from collections.abc import Collection, Iterable

import msgspec

from harness.core.record import Record
from harness.core.scenario import PLAIN
from harness.core.verdict import Family, Verdict
from harness.triage.signature import VALUES, plain_message

COMPARED = VALUES | {Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH}


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that failed in the same way; the first one stands for all."""

    records: tuple[Record, ...]

    @property
    def representative(self) -> Record:
        """The cell that is triaged."""
        return self.records[0]


def failing_groups(records: Iterable[Record], cells: Collection[str] = ()) -> tuple[Group, ...]:
    """Group failing cells, the largest group first.

    An error or a crash is grouped by what it says. Wrong values say nothing, so those are grouped by the
    operators of their models. The cell with the fewest nodes stands for a group; of several a plain one, and
    the quickest.

    Args:
        records: Of a run.
        cells: Ids of cells; each is a group of its own then. Without them, all failing cells.
    """
    if cells:
        return tuple(Group(records=(one,)) for one in records if one.cell in cells)
    found: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        if record.family is Family.FAILED:
            found.setdefault(_key(record), []).append(record)
    groups = (Group(records=tuple(sorted(members, key=_cost))) for members in found.values())
    return tuple(sorted(groups, key=lambda group: (-len(group.records), group.representative.cell)))


def _key(record: Record) -> tuple[object, ...]:
    how = (record.target, record.verdict, record.phase, record.cause)
    if record.verdict in COMPARED:
        # Not by operators on the EP: older runtimes only name the graphs that it compiled.
        operators = record.content.ops if record.content is not None else {}
        return (*how, tuple(sorted(operators)))
    message = "" if record.ended is None else record.ended.message
    return (*how, plain_message(message, ()))


def _cost(record: Record) -> tuple[int, bool, float, str]:
    """Return what makes a cell a costly representative; one whose model is unknown comes last.

    Of models with as many nodes, the quickest: exports of one architecture differ in the size of their
    weights alone. A scenario takes more sessions or runs than a plain cell.
    """
    nodes = sum(record.content.ops.values()) if record.content is not None else 1 << 30
    return nodes, record.axes.get("scenario", PLAIN) != PLAIN, record.took_ms, record.cell

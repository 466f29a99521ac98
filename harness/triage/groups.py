"""Groups of failing cells: those that look like one fault before anything is tried."""

from collections.abc import Collection, Iterable

import msgspec

from harness.core.fault import Condition
from harness.core.record import Record
from harness.core.scenario import PLAIN
from harness.core.verdict import Family, Verdict
from harness.corpus.variants.source import original_of
from harness.triage.signature import VALUES, plain_message

COMPARED = VALUES | {Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH}


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that failed in the same way; the first one stands for all.

    Attributes:
        conditions: What the run shows of other models: whether the representative's original fails, too, if
            it is a variant that keeps the answer of another model.
    """

    records: tuple[Record, ...]
    conditions: tuple[Condition, ...] = ()

    @property
    def representative(self) -> Record:
        """The cell that is triaged."""
        return self.records[0]


def failing_groups(records: Iterable[Record], cells: Collection[str] = ()) -> tuple[Group, ...]:
    """Group failing cells, the largest group first; if ids of cells are given, each is a group of its own.

    An error or a crash is grouped by what it says. Wrong values say nothing, so those are grouped by the
    operators of their models. The cell with the fewest nodes stands for a group; of several a plain one, and
    the quickest.
    """
    known = tuple(records)
    if cells:
        return tuple(_group([one], known) for one in known if one.cell in cells)
    found: dict[tuple[object, ...], list[Record]] = {}
    for record in known:
        if record.family is Family.FAILED:
            found.setdefault(_key(record), []).append(record)
    groups = (_group(members, known) for members in found.values())
    return tuple(sorted(groups, key=lambda group: (-len(group.records), group.representative.cell)))


def _group(members: Iterable[Record], known: Iterable[Record]) -> Group:
    ordered = tuple(sorted(members, key=_cost))
    first = ordered[0]
    original = original_of(first.model)
    where = (first.suite, original, first.target, first.axes)
    conditions = tuple(
        Condition(
            kind="original", value=one.model, fails=one.family is Family.FAILED, verdict=str(one.verdict)
        )
        for one in (known if original else ())
        if (one.suite, one.model, one.target, one.axes) == where
        and one.family in {Family.PASSED, Family.FAILED}
    )
    return Group(records=ordered, conditions=conditions)


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

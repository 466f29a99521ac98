"""Groups of failing cells: cells that look like one fault before anything is tried."""

from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from harness.annex.made.variants.source import original_of
from harness.annex.triage.signature import VALUE_VERDICTS
from harness.core.files.structure import OPTION
from harness.core.findings.cause import plain_cause
from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.fault import Condition, Varied
from harness.core.records.record import Record
from harness.core.records.scenario import PLAIN
from harness.core.records.verdict import Family, Verdict
from harness.plan.target import Target

NOT_PREFIX = "not "
"""Prefix of an option's value in a condition: any other value, or none."""

_AXES: Mapping[str, Varied] = {
    "graph_optimization": "graph_optimization",
    "precision": "precision",
    "scenario": "scenario",
}
"""Axes besides options -> kind of a condition."""

COMPARED = VALUE_VERDICTS | {Verdict.SHAPE_MISMATCH, Verdict.DTYPE_MISMATCH}


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that failed in the same way at the same point of all axes; the first one represents them all.

    Attributes:
        conditions: What the run shows about other cells. If the representative is a variant that keeps the
            answer of another model: whether this original also fails. And whether its model fails at other
            values of one axis.
        alike: A key shared with groups that differ only in axes: they may be one fault.
    """

    records: tuple[Record, ...]
    conditions: tuple[Condition, ...] = ()
    alike: tuple[object, ...] = ()

    @property
    def representative(self) -> Record:
        """The cell that is triaged."""
        return self.records[0]


def failing_groups(
    records: Iterable[Record], cells: Collection[str] = (), targets: Iterable[Target] = ()
) -> tuple[FailureGroup, ...]:
    """Group failing cells, small models first; if ids of cells are given, each cell is its own group.

    Errors and crashes are grouped by their message. Wrong values have no message, so they are grouped by the
    operators of their models. The values of all axes are part of the key: only a trial shows whether one
    option value fails like another. The cell with the fewest nodes represents a group; of several, the
    quickest. A fault of a large model is often that of a small one, which is explained sooner.
    """
    run = _Run(tuple(records), {target.name: target for target in targets})
    if cells:
        return tuple(run.group([one]) for one in run.records if one.cell in cells)
    found: dict[tuple[object, ...], list[Record]] = {}
    for record in run.records:
        if record.family is Family.FAILED:
            found.setdefault((_key(record), _point(record)), []).append(record)
    return tuple(sorted(map(run.group, found.values()), key=_turn))


class _Run:
    """The cells of a run, by their models."""

    def __init__(self, records: tuple[Record, ...], targets: Mapping[str, Target]) -> None:
        self.records = records
        self._targets = targets
        self._of_model: dict[tuple[str, str], list[Record]] = {}
        for record in records:
            if record.family in {Family.PASSED, Family.FAILED}:
                self._of_model.setdefault((record.suite, record.model), []).append(record)

    def group(self, members: Iterable[Record]) -> FailureGroup:
        """Return the group of some failing cells, with what the run shows about its representative."""
        ordered = tuple(sorted(members, key=_cost))
        first = ordered[0]
        conditions = (*self._original(first), *self._other_values(first))
        return FailureGroup(records=ordered, conditions=conditions, alike=_key(first))

    def _original(self, first: Record) -> Iterator[Condition]:
        original = original_of(first.model)
        for one in self._of_model.get((first.suite, original), ()) if original else ():
            if (one.target, one.axes) == (first.target, first.axes):
                fails = one.family is Family.FAILED
                yield Condition(kind="original", value=one.model, fails=fails, verdict=str(one.verdict))

    def _other_values(self, first: Record) -> Iterator[Condition]:
        """Yield what the run shows about one model at other values of a single option or axis."""
        own, found = self._settings(first), dict[str, dict[str, Record]]()
        for other in self._of_model[first.suite, first.model]:
            settings = self._settings(other)
            if settings[0] != own[0]:
                continue
            mine, others = own[1], settings[1]
            axes = [axis for axis in mine.keys() | others.keys() if mine.get(axis) != others.get(axis)]
            if len(axes) == 1:
                found.setdefault(axes[0], {})[others.get(axes[0], AXIS_DEFAULTS.get(axes[0], ""))] = other
        for axis, values in sorted(found.items()):
            yield from _of_axis(axis, own[1].get(axis, ""), values)

    def _settings(self, record: Record) -> tuple[Target | str, Mapping[str, str]]:
        """Return a cell's target without name and options, and these options with the cell's axes."""
        target = self._targets.get(record.target)
        if target is None:
            return record.target, dict(_point(record))
        bare = msgspec.structs.replace(target, name="", options={}, axes={}, required=False)
        return bare, {f"{OPTION}{key}": value for key, value in target.options.items()} | dict(_point(record))


def _turn(group: FailureGroup) -> tuple[int, bool, int, str]:
    nodes, in_scenario, _, cell = _cost(group.representative)
    return nodes, in_scenario, -len(group.records), cell


def _point(record: Record) -> tuple[tuple[str, str], ...]:
    """Return the axes of a cell that are not at their default, sorted."""
    return tuple(sorted(pair for pair in record.axes.items() if pair[1] != AXIS_DEFAULTS.get(pair[0])))


def _of_axis(axis: str, own: str, others: Mapping[str, Record]) -> Iterator[Condition]:
    """Yield the conditions of one axis: its value in a failing cell, and the run's results at other values.

    If all other values of an option are right, one condition states this: ``not`` the own value.
    """
    if axis.startswith(OPTION):
        kind: Varied = "option"
        name = axis.removeprefix(OPTION)
    elif axis in _AXES:
        kind, name = _AXES[axis], ""
    else:
        return
    if name and own and not any(other.family is Family.FAILED for other in others.values()):
        yield Condition(kind=kind, name=name, value=f"{NOT_PREFIX}{own}", fails=False)
        return
    for value, other in sorted(others.items()):
        fails = other.family is Family.FAILED
        yield Condition(kind=kind, name=name, value=value, fails=fails, verdict=str(other.verdict))


def _key(record: Record) -> tuple[object, ...]:
    how = (record.target, record.verdict, record.phase, record.cause)
    if record.verdict in COMPARED:
        # Not by operators on the EP: older runtimes name only the graphs that it compiled.
        operators = record.content.ops if record.content is not None else {}
        return (*how, tuple(sorted(operators)))
    message = "" if record.ended is None else record.ended.message
    return (*how, plain_cause(message))


def _cost(record: Record) -> tuple[int, bool, float, str]:
    """Return the cost of a record as a representative; one with an unknown model comes last.

    Among models with equally many nodes the quickest counts: exports of one architecture differ only in the
    size of their weights. A scenario takes more sessions or runs than a plain cell.
    """
    nodes = sum(record.content.ops.values()) if record.content is not None else 1 << 30
    return nodes, record.axes.get("scenario", PLAIN) != PLAIN, record.took_ms, record.cell

"""How targets answer to the surfaces of onnxruntime's API: one word for each target and scenario. Pure.

A model that fails in a plain run fails in every scenario. An error that a plain run of any model gives is the
EP's everywhere. Such failures are counted, and do not speak against a surface.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec

from harness.core.findings.cause import plain_cause
from harness.core.records.record import Record
from harness.core.records.scenario import NOT_IN_AGENT, NOT_IN_RUNTIME, PLAIN, SCENARIOS
from harness.core.records.verdict import Family, Verdict
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.report.cells.column import Column, column_of, columns_in_order

_SCENARIO = "scenario"
_REASON_CHARS = 160


class SurfaceAnswer(StrEnum):
    """How a target answers to a surface; the first word that applies to its cells counts."""

    WRONG = "wrong"
    OK = "ok"
    UNTESTED = "untested"
    REFUSED = "refused"
    NOT_THERE = "not there"
    NOT_TRIED = "not tried"


class SurfaceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target in one scenario.

    Attributes:
        column: The target at one point of its other axes.
        surface: The part of onnxruntime's API; the scenario's name if this version does not know it.
        models: Cells of the target in the scenario.
        told: One sentence.
    """

    column: Column
    scenario: str
    surface: str
    answer: SurfaceAnswer
    models: int
    told: str


def surface_rows(records: Iterable[Record]) -> tuple[SurfaceRow, ...]:
    """Return a row for each target and scenario; targets by first appearance, scenarios as documented."""
    cells: dict[tuple[Column, str], list[Record]] = defaultdict(list)
    for record in records:
        cells[column_of(record).without_scenario, record.axes.get(_SCENARIO, PLAIN)].append(record)
    rank = {name: index for index, name in enumerate(SCENARIOS)}
    scenarios = sorted({name for _, name in cells}, key=lambda name: (rank.get(name, len(rank)), name))
    found = []
    for column in columns_in_order((column for column, _ in cells), ()):
        plain = [record for record in cells.get((column, PLAIN), ()) if _fails(record)]
        found += [
            _row(column, name, cells[column, name], () if name == PLAIN else plain)
            for name in scenarios
            if (column, name) in cells
        ]
    return tuple(found)


def _row(column: Column, name: str, records: Sequence[Record], plain: Sequence[Record]) -> SurfaceRow:
    failed = [record for record in records if _fails(record)]
    models, errors = {_model(record) for record in plain}, {_error(record) for record in plain} - {""}
    own = [record for record in failed if _model(record) not in models and _error(record) not in errors]
    families = Counter(record.verdict.family for record in records)
    weak = sum(record.rests_on_weak_golden for record in records)
    passed, untested = families[Family.PASSED] - weak, families[Family.UNTESTED]
    unsupported = [record for record in records if record.verdict is Verdict.UNSUPPORTED]
    missing = [record for record in unsupported if record.cause in {NOT_IN_RUNTIME, NOT_IN_AGENT}]
    refused = [record for record in unsupported if record not in missing]
    declared = [record for record in records if record.verdict is Verdict.DECLARED]
    many = len(records) - len(declared)
    notes = [f"{len(failed) - len(own)} fail as in plain runs"] if len(failed) > len(own) else []
    if own:
        answer, told = SurfaceAnswer.WRONG, f"{len(own)} of {plural(many, 'model')} wrong: {_most(own)}"
    elif passed:
        answer, told = SurfaceAnswer.OK, f"{passed} of {plural(many, 'model')} right"
        notes += [f"{untested} without the EP"] if untested else []
        notes += [f"{weak} by a weak golden"] if weak else []
        notes += [f"{len(refused)} refused: {_most(refused)}"] if refused else []
    elif weak:
        answer, told = SurfaceAnswer.UNTESTED, "right, but the goldens would match most wrong answers, too"
    elif untested:
        answer, told = SurfaceAnswer.UNTESTED, f"right, but the EP computed none of {plural(many, 'model')}"
    elif refused:
        answer, told = SurfaceAnswer.REFUSED, _most(refused)
    elif missing:
        answer, told = SurfaceAnswer.NOT_THERE, _most(missing)
    elif failed:
        answer, told = SurfaceAnswer.NOT_TRIED, ""
    elif not many:
        answer, told = SurfaceAnswer.NOT_TRIED, f"it applies to no model here: {_most(declared)}"
    else:
        answer, told = SurfaceAnswer.NOT_TRIED, _most(records)
    scenario = SCENARIOS.get(name)
    return SurfaceRow(
        column=column,
        scenario=name,
        surface=name if scenario is None else scenario.surface or name,
        answer=answer,
        models=len(records),
        told="; ".join(filter(None, [told, *notes])),
    )


def _most(records: Sequence[Record]) -> str:
    """Return the verdict and reason that most records share, of the first that has it."""
    causes = [(record.verdict, plain_cause(record.reason)) for record in records]
    most, count = Counter(causes).most_common(1)[0]
    record = records[causes.index(most)]
    where = "" if count == len(records) and count > 1 else f"{record.model}: "
    word = "" if record.verdict in {Verdict.UNSUPPORTED, Verdict.DECLARED} else f"{record.verdict}, "
    reason = one_line(record.reason.partition("; ")[0], _REASON_CHARS)
    return f"{word}{where}{reason}"


def _fails(record: Record) -> bool:
    return record.verdict.family is Family.FAILED


def _error(record: Record) -> str:
    """Return the cause that an error names; empty for failures whose words tell none, such as numbers."""
    return plain_cause(record.reason) if record.verdict is Verdict.ERROR else ""


def _model(record: Record) -> str:
    return f"{record.suite}/{record.model}"

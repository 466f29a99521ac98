"""Check that the records are those of the profile: each case once, in order, for one target."""

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.annex.conformance.level import case_key, case_label
from harness.annex.conformance.profiles.profile import Profile, ProfileCase
from harness.annex.conformance.profiles.profile_suite import suite_name
from harness.annex.conformance.submission import SUBMITTED_RECORDS, Statement
from harness.annex.conformance.verify.finding import Finding, finding
from harness.core.records.cell import AXIS_DEFAULTS, Cell
from harness.core.records.record import SCHEMA, Record
from harness.core.text.errors import one_line
from harness.operators.book import rounds_by_default

_MOST_NAMED = 5


def case_findings(profile: Profile, statement: Statement, records: Sequence[Record]) -> Iterator[Finding]:
    """Yield cases that are missing, duplicate or foreign, and records of another target."""
    cases = {case.key: case for case in profile.cases}
    found = Counter(case_key(record) for record in records)
    yield from _bounded("case-missing", [case_label(case) for key, case in cases.items() if not found[key]])
    yield from _bounded("case-twice", [" ".join(key) for key, count in found.items() if count > 1])
    yield from _bounded("case-unknown", [" ".join(key) for key in found if key not in cases])
    cells = [record.cell for record in records]
    if cells != sorted(cells):
        yield finding("records-unsorted", SUBMITTED_RECORDS, "the records are not sorted by cell")
    targets = {record.target for record in records}
    if len(targets) > 1:
        yield finding(
            "other-target", SUBMITTED_RECORDS, f"records of several targets: {', '.join(sorted(targets))}"
        )
    for record in records:
        case = cases.get(case_key(record))
        if record.schema != SCHEMA:
            yield finding("other-schema", record.cell, f"schema {record.schema}, this version reads {SCHEMA}")
        for what in _foreign(record, profile, statement):
            yield finding("other-target", record.cell, what)
        if case is not None and (what := _other_model(record, case)):
            yield finding("other-model", case_label(case), what)


def _foreign(record: Record, profile: Profile, statement: Statement) -> Iterator[str]:
    if record.provider != statement.environment.provider:
        yield f"the provider is {record.provider}, the statement has {statement.environment.provider}"
    if record.suite != suite_name(profile):
        yield f"the suite is {record.suite}, not {suite_name(profile)}"
    axes = {axis: value for axis, value in record.axes.items() if axis != "scenario"}
    varied = [axis for axis, value in axes.items() if AXIS_DEFAULTS.get(axis) != value]
    if varied:
        yield f"axes that a profile does not have: {', '.join(sorted(varied))}"
    own = Cell(
        suite=record.suite, model=record.model, target=record.target, axes=tuple(sorted(record.axes.items()))
    )
    if own.id != record.cell:
        yield f"the id is not that of its fields: {own.id}"


def _other_model(record: Record, case: ProfileCase) -> str:
    content = record.content
    if content is None:
        return "" if record.ended is not None else "the content of the model is not recorded"
    if _by_type(content.ops) != _by_type(case.ops):
        return "other operators than the profile's model"
    if set(content.default_noise) != set(filter(rounds_by_default, content.ops)):
        return "other operators of unknown rounding than the profile's model"
    if content.generated is not None:
        return "its inputs were generated, the profile has its own"
    own = not record.fed or record.fed.startswith(("the profile's data: ", "nothing: "))
    return "" if own else f"it was fed {one_line(record.fed, 100)}, the profile has its own inputs"


def _by_type(ops: dict[str, int]) -> Counter[str]:
    """Return the nodes of each operator, whatever domain precedes its name."""
    counts: Counter[str] = Counter()
    for op, count in ops.items():
        counts[op.rpartition(".")[2]] += count
    return counts


def _bounded(name: str, labels: list[str]) -> Iterator[Finding]:
    for label in labels[:_MOST_NAMED]:
        yield finding(name, label, f"in {SUBMITTED_RECORDS}")
    if len(labels) > _MOST_NAMED:
        yield finding(name, SUBMITTED_RECORDS, f"and {len(labels) - _MOST_NAMED} more")

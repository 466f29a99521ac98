"""The run with other inputs, as a case of its own: its measurement, and which of its outputs are judged."""

import msgspec

from harness.agent.other_inputs import reversed_inputs
from harness.core.comparison.output_rows import with_details
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import ToleranceFor
from harness.core.comparison.weak_golden import holds_special
from harness.core.records.facts import Facts, OtherCheck
from harness.core.records.verdict import Family
from harness.core.text.errors import one_line
from harness.core.values.value import Array, NamedValues, Tensor, Value, leaves
from harness.core.verdicts.decide import verdict_of
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.derived.derived_models import digest_of
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.model.origins import DrawnBy
from harness.engine.answers.compare_sets import compare_sets, is_same
from harness.engine.answers.evidence import Evidence
from harness.engine.tasks.outcome import Ran

_OTHER = "other"
"""Name of the data set with other inputs."""

_FORMAT = 2
"""Increase it when ``harness.agent.other_inputs`` makes other values from the same inputs."""


def with_other_inputs(case: Case) -> Case | Inapplicable:
    """Return a case with the inputs that an agent runs between two runs of its only data set.

    Answers about it (noise, references) are kept under its own digest, so that a model pays only once.
    """
    if len(case.data_sets) != 1:
        return Inapplicable("other inputs are made of an only data set")
    inputs = case.data_sets[0].inputs
    # An agent has only arrays of numpy's own types.
    arrays = {
        name: value.array
        for name, value in inputs
        if isinstance(value, Tensor) and value.array.dtype.isbuiltin == 1
    }
    found = reversed_inputs(arrays)
    if found is None:
        return Inapplicable("the inputs are the same in reverse order")
    changed = tuple((name, _with(value, found.get(name))) for name, value in inputs)
    return msgspec.structs.replace(
        case,
        data_sets=(DataSet(name=_OTHER, inputs=changed),),
        digest=digest_of("other-inputs", _FORMAT, case.digest),
        recipe=None,
    )


def _with(value: Value, array: Array | None) -> Value:
    return (
        Tensor(dtype=value.dtype, array=array) if isinstance(value, Tensor) and array is not None else value
    )


def outcome_of_others(outcome: Ran) -> Ran:
    """Return the outcome of the run with other inputs alone."""
    return Ran(
        outputs=(outcome.other or (),), placement=outcome.placement, timings_ms={}, process=outcome.process
    )


def judges_others(facts: Facts, case: Case, policy: Policy) -> bool:
    """Return whether the run with other inputs is judged: the first answer is right, and may be the EP's."""
    placement = facts.placement
    if case.frozen is not None or case.facts.origins.by_chance or facts.golden != "cpu" or placement is None:
        return False
    if not (placement.ep_nodes or placement.is_unknown or facts.is_cpu):
        return False
    return verdict_of(facts, policy).family in {Family.PASSED, Family.UNTESTED}


def differs_for_others(case: Case, right: NamedValues, found: NamedValues) -> bool:
    """Return whether an output for other inputs differs from the golden in its bits, or one side lacks it.

    Random numbers do not count: they differ each time.
    """
    drawn = {name for name, origin in case.facts.origins.known.items() if isinstance(origin, DrawnBy)}
    left, given = ({name: value for name, value in one if name not in drawn} for one in (right, found))
    return left.keys() != given.keys() or not all(is_same(left[name], given[name]) for name in left)


class Goldens(msgspec.Struct, frozen=True, kw_only=True):
    """The CPU provider's outputs for the first inputs, and for the other ones; empty if it has none."""

    first: NamedValues = ()
    other: NamedValues = ()


def judging_goldens(first: Evidence, other: Evidence) -> Goldens:
    """Return the outputs that judge; those of the unconverted model, if a converted one runs."""
    return Goldens(first=_judging(first), other=_judging(other))


def _judging(evidence: Evidence) -> NamedValues:
    golden = evidence.full or evidence.golden
    return golden.outputs[0] if golden is not None and golden.status == "ok" else ()


def with_others(
    facts: Facts, others: Facts, outcome: Ran, goldens: Goldens, tolerance_for: ToleranceFor
) -> Facts:
    """Return facts of a cell with the rows of other inputs, as far as they show something about the provider.

    Left out are outputs that are right to the bit, random numbers, and outputs with a NaN or an infinity that
    the first inputs do not cause: the other inputs may lie outside an operator's domain.

    Args:
        facts: Facts of the first inputs.
        others: Facts measured for the other inputs.
        outcome: Outcome of the cell.
        goldens: The goldens that judge the two runs.
        tolerance_for: Element type of an output -> tolerance.
    """
    right = goldens.other
    if not right:
        return _unchecked(facts, others.no_golden)
    given, before = dict(outcome.other or ()), dict(goldens.first)
    special = [name for name, value in right if holds_special(value) and not holds_special(before.get(name))]
    left_out = {*special, *(name for name, value in right if name in given and _is_same(value, given[name]))}
    owner = {leaf: name for name, value in (*right, *given.items()) for leaf, _ in leaves(name, value)}
    rows = tuple(
        row
        for row in others.outputs
        if owner.get(row.name, row.name) not in left_out
        if not (row.details is not None and row.details.distribution)
    )
    what = "NaN or infinity on the CPU EP for other inputs alone"
    unchecked = f"{what}: {', '.join(special)}" if special else ""
    if not rows:
        return _unchecked(facts, unchecked)
    check = OtherCheck(
        unchecked=one_line(unchecked),
        dispute=others.dispute,
        undefined=others.undefined,
        no_spread=others.no_spread,
        reference_check=others.reference_check,
        answered=others.answered,
    )
    own_first = dict(outcome.outputs[0])
    stale = {
        name
        for name in {owner.get(row.name, row.name) for row in rows if row.mismatched}
        if name in given and name in own_first and _is_same(given[name], own_first[name])
        if _moved(before.get(name), dict(right).get(name), tolerance_for)
    }
    marked = tuple(
        with_details(row, stale=True) if owner.get(row.name, row.name) in stale else row for row in rows
    )
    return msgspec.structs.replace(facts, other=marked, other_check=check)


def with_error_of_others(facts: Facts, error: str, goldens: Goldens, excused: str) -> Facts:
    """Return facts of a cell whose provider raises an error for other inputs.

    The error is the provider's own if the CPU provider computes these inputs; ``excused`` is a reason why it
    still is not.
    """
    excused = excused if goldens.other else "by the CPU EP, too"
    if excused:
        return _unchecked(facts, f"refused, {excused}: {error}")
    return msgspec.structs.replace(facts, other_check=OtherCheck(error=error))


def _unchecked(facts: Facts, why: str) -> Facts:
    """Return facts with the reason why their output for other inputs was not judged.

    Unchanged without a reason.
    """
    return msgspec.structs.replace(facts, other_check=OtherCheck(unchecked=one_line(why))) if why else facts


def _moved(first: Value, other: Value, tolerance_for: ToleranceFor) -> bool:
    """Return whether other inputs change an output of the golden by more than the tolerance."""
    return compare_sets(((("", first),),), ((("", other),),), tolerance_for).verdict is not None


def _is_same(one: Value, other: Value) -> bool:
    return (one is None and other is None) or is_same(one, other)

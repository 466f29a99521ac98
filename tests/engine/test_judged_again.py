"""A record judged again by another tolerance is what the run would have been, references included."""

import functools
import math
from typing import Any

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison.metrics import ATOL_GRID
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.records.facts import UNREPEATABLE, Facts
from harness.core.records.record import Decision
from harness.core.values.value import NamedValues, tensor
from harness.core.verdicts.decide import decide, judged_again
from harness.core.verdicts.missing import SHIPPED_POLICIES, Need, missing
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.model.port import ValueType
from harness.engine.answers.evidence import CellRule, Evidence
from harness.engine.measuring.measure import measure
from harness.engine.tasks.outcome import Ran
from harness.engine.tasks.task import QuestionKind
from harness.golden.golden_answer import Golden
from tests.kit import bare_case, decided_record, placement_of

PLACEMENT = placement_of({"Erf": 1}, source="profile")
CASE = bare_case(
    outputs=("y", "z"),
    output_types=(ValueType(kind="tensor"),) * 2,
    data_sets=(DataSet(name="given", inputs=()),),
)
TRUTH = np.array([[1.0, -3e-3, 7e-6, 50.0], [0.5, 2.0, -1e-4, 1e-7]])
FIXED = [policy.fixed for policy in SHIPPED_POLICIES if policy.fixed is not None]


def values(error: float, seed: int, dtype: type = np.float32) -> NamedValues:
    """Two outputs, each element off by up to so much of itself."""
    signs = np.random.default_rng(seed).uniform(-1, 1, TRUTH.shape)
    with np.errstate(all="ignore"):
        rows: list[Any] = list((TRUTH * (1 + error * signs)).astype(dtype))
    return tuple((name, tensor(row)) for name, row in zip("yz", rows, strict=True))


def under(
    tolerance: Tolerance,
    outcome: Ran,
    golden: Golden,
    references: dict[QuestionKind, Golden],
    expected: NamedValues = (),
    doubts: dict[QuestionKind, str] | None = None,
) -> tuple[Facts, Decision]:
    """What a run does: references are asked where they are needed."""
    rule = CellRule(policy=Policy(fixed=tolerance, judge_by="table"))
    evidence = Evidence(golden=golden, doubts=doubts or {})
    case = msgspec.structs.replace(CASE, data_sets=(DataSet(name="given", inputs=(), expected=expected),))
    facts = measure(outcome, case, evidence, rule, "AnyExecutionProvider")
    if missing(facts, rule.policy, {Need.REFERENCES}) is not None:
        answered = msgspec.structs.replace(evidence, references=references, answered=("references",))
        facts = measure(outcome, case, answered, rule, "AnyExecutionProvider")
    return facts, decide(facts, rule.policy)


ERRORS = st.sampled_from([0.0, 1e-7, 1e-6, 2e-5, 1e-4, 2e-3, 0.3, 0.9, math.nan])
TOLERANCES = st.builds(
    Tolerance, rtol=st.sampled_from([0.0, 1e-6, 1e-4, 1e-2]), atol=st.sampled_from(ATOL_GRID)
) | st.sampled_from(FIXED)


@given(
    errors=st.lists(ERRORS, min_size=4, max_size=4),
    absent=st.sets(st.sampled_from([QuestionKind.EVALUATED, QuestionKind.UNOPTIMIZED, QuestionKind.FLOAT64])),
    policies=st.tuples(TOLERANCES, TOLERANCES),
    providers_changed=st.sampled_from(["", "", "CPU only"]),
    others=st.tuples(st.none() | ERRORS, st.none() | ERRORS),
    doubt=st.sampled_from(
        [("", {}), ("unsure", {}), (UNREPEATABLE, {}), ("", {QuestionKind.EVALUATED: "wrong"})]
    ),
)
def test_it_is_what_a_run_would_have_said(
    errors: list[float],
    absent: set[str],
    policies: tuple[Tolerance, Tolerance],
    providers_changed: str,
    others: tuple[float | None, float | None],
    doubt: tuple[str, dict[QuestionKind, str]],
) -> None:
    before, after = policies
    dispute, doubts = doubt
    second, expected = others
    golden, result, evaluated, unoptimized = (values(error, seed) for seed, error in enumerate(errors))
    known = {
        QuestionKind.EVALUATED: evaluated,
        QuestionKind.UNOPTIMIZED: unoptimized,
        QuestionKind.FLOAT64: values(0.0, 0, np.float64),
    }
    answers = {
        kind: Golden(status="refused") if kind in absent else Golden(status="ok", outputs=(outputs,))
        for kind, outputs in known.items()
    }
    outcome = Ran(
        outputs=(result,),
        second=None if second is None else values(second, 9),
        placement=PLACEMENT,
        timings_ms={},
        providers_changed=providers_changed,
    )
    run = functools.partial(
        under,
        outcome=outcome,
        golden=Golden(status="ok", outputs=(golden,), disputed=dispute),
        references=answers,
        expected=() if expected is None else values(expected, 5),
        doubts=doubts,
    )
    was, wanted = decided_record(*run(before)), decided_record(*run(after))
    policy = Policy(fixed=after, judge_by="table")
    if missing(was, policy, {Need.REFERENCES}) is not None:
        assert after not in FIXED  # what these fail is asked in every run
        return
    now = judged_again(was, policy)
    assert now.verdict is wanted.verdict
    assert now.adjudication == wanted.adjudication
    again = judged_again(now, Policy(fixed=before, judge_by="table"))
    assert again.verdict is was.verdict

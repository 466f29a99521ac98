"""From an outcome and the CPU provider's answers to a verdict, as a table."""

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest

from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance, default_tolerance
from harness.core.records.cell import Cell
from harness.core.records.facts import SIZED_BY_CHANCE, Facts, Placement
from harness.core.records.record import Decision, ModelContent
from harness.core.records.verdict import Cause, Family, Phase, Verdict
from harness.core.values.value import NamedValues, Sequence, tensor
from harness.core.verdicts.decide import decide
from harness.corpus.beside.data_sets import DataSet
from harness.corpus.case import Case
from harness.corpus.model.origins import Origins
from harness.corpus.model.port import Port, ValueType
from harness.engine.answers.evidence import CellRule, Evidence, rule_of
from harness.engine.measuring.cell_record import CellAttempt, record_of
from harness.engine.measuring.measure import measure
from harness.engine.questions.answer import golden_of
from harness.engine.tasks.outcome import (
    Died,
    Hung,
    Outcome,
    Raised,
    Ran,
    Rejected,
    Unavailable,
    Unfeedable,
)
from harness.golden.golden_answer import Golden
from harness.plan.plan import Plan
from harness.report.words.facts_in_words import evidence
from tests.kit import bare_case, model_facts, plan_of

RIGHT = [1.0, -2.0, 0.0]


def values(y: Any, name: str = "y", dtype: Any = np.float32) -> NamedValues:
    return ((name, tensor(np.array(y, dtype))),)


def case(*expected: NamedValues, by_chance: tuple[str, ...] = ()) -> Case:
    facts = model_facts(
        opsets={"ai.onnx": 17},
        nodes=2,
        op_types={"Relu": 1, "Shape": 1},
        float_types=frozenset({"float32"}),
        shape_only_ops=frozenset({"Shape"}),
        origins=Origins(by_chance=by_chance),
    )
    data_sets = [DataSet(name=f"{i}", inputs=(), expected=known) for i, known in enumerate(expected or [()])]
    return bare_case(
        outputs=("y",),
        output_types=(ValueType(kind="tensor"),),
        data_sets=tuple(data_sets),
        rtol=1e-3,
        atol=1e-7,
        digest="0",
        facts=facts,
    )


def placement(ep: dict[str, int], cpu: dict[str, int] | None = None) -> Placement:
    cpu = cpu or {}
    return Placement(
        ep_nodes=sum(ep.values()),
        cpu_nodes=sum(cpu.values()),
        ep_ops=ep,
        cpu_ops=cpu,
        partitions=len(ep),
        source="assignment",
    )


def ran(y: Any = RIGHT, **fields: Any) -> Ran:
    outputs = fields.pop("outputs", (values(y),))
    fields = {"placement": placement({"Relu": 1}), **fields}
    return Ran(outputs=outputs, timings_ms={"create": 1.0}, **fields)


OK = Golden(status="ok", outputs=(values(RIGHT),))
REFUSED = Golden(status="refused", message="not a model")
LOST = Golden(status="lost", message="the CPU EP crashed: SIGSEGV", died=True)


class Judged(NamedTuple):
    """Facts with their decision."""

    facts: Facts
    decision: Decision

    @property
    def verdict(self) -> Verdict:
        return self.decision.verdict

    @property
    def reason(self) -> str:
        return self.decision.reason


def judged(
    outcome: Outcome, model: Case | None = None, golden: Golden = OK, own: Golden | None = None, **known: Any
) -> Judged:
    evidence = Evidence(golden=golden, own_cpu=own or golden, answered=("own_cpu",), **known)
    rule = CellRule(policy=Policy(judge_by="table"))
    facts = measure(outcome, model or case(), evidence, rule, "AnyExecutionProvider")
    return Judged(facts, decide(facts, rule.policy))


def raised(message: str, phase: Phase = Phase.CREATE, kind: str = "Fail") -> Raised:
    return Raised(phase=phase, kind=kind, message=message)


@pytest.mark.parametrize(
    ("outcome", "verdict", "phase", "cause"),
    [
        (Unavailable(cause=Cause.NO_DEVICE, reason="r"), Verdict.UNAVAILABLE, Phase.REGISTER, "no_device"),
        (
            Unavailable(cause=Cause.IMPORT_FAILED, reason="r"),
            Verdict.UNAVAILABLE,
            Phase.START,
            "import_failed",
        ),
        (Rejected(option="k", reason="r"), Verdict.OPTION_REJECTED, Phase.REGISTER, ""),
        (Died(phase=Phase.RUN, cause="SIGSEGV"), Verdict.CRASH, Phase.RUN, "SIGSEGV"),
        (Died(phase=Phase.RUN, cause="0xC0000005"), Verdict.CRASH, Phase.RUN, "0xC0000005"),
        (
            Died(phase=Phase.CREATE, cause="SIGABRT", printed="terminate ... std::bad_alloc"),
            Verdict.OUT_OF_MEMORY,
            Phase.CREATE,
            "SIGABRT",
        ),
        (Hung(phase=Phase.CREATE, limit_s=2.5), Verdict.HANG, Phase.CREATE, ""),
        (Unfeedable(message="no bfloat16"), Verdict.NO_GOLDEN, Phase.RUN, ""),
        (raised("CUDA out of memory", Phase.RUN), Verdict.OUT_OF_MEMORY, Phase.RUN, ""),
        (raised("out of memory"), Verdict.OUT_OF_MEMORY, Phase.CREATE, ""),
        (raised("x", kind="NotImplemented"), Verdict.UNSUPPORTED, Phase.CREATE, ""),
        (raised("Op is not supported yet"), Verdict.UNSUPPORTED, Phase.CREATE, ""),
        (raised("not implemented", Phase.RUN), Verdict.ERROR, Phase.RUN, ""),
        (raised("bad"), Verdict.ERROR, Phase.CREATE, ""),
        (ran(), Verdict.PASS, Phase.COMPARE, ""),
        (ran([1.0, -2.0, 0.1]), Verdict.MISMATCH, Phase.COMPARE, ""),
        (ran([1.0, np.nan, 0.0]), Verdict.NAN_MISMATCH, Phase.COMPARE, ""),
        (ran([[1.0, -2.0, 0.0]]), Verdict.SHAPE_MISMATCH, Phase.COMPARE, ""),
        (ran(outputs=(values(RIGHT, dtype=np.float64),)), Verdict.DTYPE_MISMATCH, Phase.COMPARE, ""),
        (ran(outputs=(values(RIGHT, "other"),)), Verdict.SHAPE_MISMATCH, Phase.COMPARE, ""),
        (ran(outputs=((("y", Sequence(items=())),),)), Verdict.SHAPE_MISMATCH, Phase.COMPARE, ""),
        (ran(second=values([1.0, -2.0, 0.1])), Verdict.NONDETERMINISTIC, Phase.COMPARE, ""),
        (ran(second=values([1.0, -2.0, 1e-9])), Verdict.PASS, Phase.COMPARE, ""),
        (ran(providers_changed="A became B"), Verdict.FALLBACK_AT_RUN, Phase.COMPARE, ""),
        (ran(placement=placement({}, {"Relu": 1})), Verdict.FALLBACK, Phase.COMPARE, ""),
        (ran(placement=placement({}, {"Shape": 1})), Verdict.FALLBACK, Phase.COMPARE, ""),
        (ran(placement=placement({})), Verdict.FOLDED, Phase.COMPARE, ""),
        (ran(placement=placement({"A": 1}, {"Relu": 2})), Verdict.PASS_PARTIAL, Phase.COMPARE, ""),
        (ran(placement=placement({"A": 1}, {"Shape": 2})), Verdict.PASS, Phase.COMPARE, ""),
    ],
)
def test_an_outcome_becomes_a_verdict(outcome: Outcome, verdict: Verdict, phase: Phase, cause: str) -> None:
    judgement = judged(outcome)
    assert (judgement.verdict, judgement.facts.phase, judgement.facts.cause) == (verdict, phase, cause)
    assert bool(judgement.reason) is (verdict is not Verdict.PASS)


def test_an_error_is_nobodys_fault_where_the_cpu_provider_itself_crashes() -> None:
    judgement = judged(raised("bad"), golden=LOST)
    assert judgement.verdict is Verdict.NO_GOLDEN
    assert judgement.reason == "the CPU EP crashed: SIGSEGV; and here: Fail: bad"
    # To refuse it cleanly, or to die of it, is what it is.
    assert judged(raised("x", kind="NotImplemented"), golden=LOST).verdict is Verdict.UNSUPPORTED


@pytest.mark.parametrize("outcome", [Died(phase=Phase.RUN, cause="SIGFPE"), Hung(phase=Phase.RUN, limit_s=1)])
def test_a_crash_is_no_fault_of_the_ep_where_its_own_cpu_provider_dies_too(outcome: Outcome) -> None:
    found = judged(outcome, own=LOST)
    assert found.verdict is Verdict.NO_GOLDEN
    assert found.reason.startswith("the CPU EP crashed: SIGSEGV; and here: ")
    for own in (OK, REFUSED, Golden(status="lost", message="the CPU EP is not there")):
        assert judged(outcome, own=own).verdict in {Verdict.CRASH, Verdict.HANG}


def test_a_wrong_answer_without_a_node_on_the_ep_is_not_the_eps() -> None:
    on_cpu = placement({}, {"Relu": 1})
    for outcome in (ran([9.0, 9.0, 9.0], placement=on_cpu), ran(second=values([9.0] * 3), placement=on_cpu)):
        found = judged(outcome)
        assert found.verdict is Verdict.REFERENCE_DISPUTED
        assert found.reason.startswith("no node ran on the EP, so the EP is not to blame")


def test_a_change_of_providers_wins_over_wrong_values() -> None:
    assert judged(ran([9.0, 9.0, 9.0], providers_changed="x")).verdict is Verdict.FALLBACK_AT_RUN


@pytest.mark.parametrize("message", ["bad", "out of memory", "not supported"])
def test_what_the_cpu_of_the_same_runtime_refuses_is_no_fault_of_the_ep(message: str) -> None:
    judgement = judged(raised(message), golden=OK, own=REFUSED)
    assert (judgement.verdict, judgement.reason) == (Verdict.INVALID_MODEL, "not a model")
    # The harness's own runtime has no say in it.
    assert judged(raised("bad"), golden=REFUSED, own=OK).verdict is Verdict.ERROR


def test_memory_that_the_cpu_of_the_same_runtime_lacks_too_is_no_fault_of_the_model() -> None:
    own = Golden(status="refused", message="Error: std::bad_alloc")
    assert judged(raised("std::bad_alloc"), golden=OK, own=own).verdict is Verdict.OUT_OF_MEMORY
    assert judged(raised("bad"), golden=OK, own=own).verdict is Verdict.INVALID_MODEL


def test_a_disputed_golden_judges_no_values() -> None:
    disputed = msgspec.structs.replace(OK, disputed="they disagree")
    for result in (ran(), ran([9.0, 9.0, 9.0]), ran([np.nan] * 3), ran(placement=placement({}))):
        judgement = judged(result, case(values([7.0, -2.0, 0.0])), disputed)
        assert (judgement.verdict, judgement.reason) == (Verdict.REFERENCE_DISPUTED, "they disagree")


def test_a_disputed_golden_judges_the_form_where_the_expected_data_agree() -> None:
    disputed = msgspec.structs.replace(OK, disputed="they disagree")
    flat, double = ran([9.0]), ran(outputs=(values(RIGHT, dtype=np.float64),))
    for model in (case(values([7.0, -2.0, 0.0])), case()):
        assert judged(flat, model, disputed, references={}).verdict is Verdict.SHAPE_MISMATCH
        assert judged(double, model, disputed, references={}).verdict is Verdict.DTYPE_MISMATCH
    # As the expected data has it, so that the golden may be the one that is wrong.
    assert judged(flat, case(values([8.0])), disputed, references={}).verdict is Verdict.REFERENCE_DISPUTED
    assert judged(flat, case(values([9.0])), disputed, references={}).verdict is Verdict.PASS


def test_what_speaks_against_a_golden() -> None:
    assert golden_of(ran(), case()).disputed == ""
    assert golden_of(ran(), case(values([7.0, -2.0, 0.0]))).disputed.startswith("golden and expected data")
    assert "another result each time" in golden_of(ran(second=values([1.0, -2.0, 0.1])), case()).disputed
    random = golden_of(ran(), case(by_chance=("RandomNormal",)))
    assert random.disputed.startswith("RandomNormal draws numbers")
    assert not random.disputed.endswith(SIZED_BY_CHANCE)
    longer = golden_of(ran(second=values([1.0, -2.0, 0.0, 7.0])), case(by_chance=("RandomNormal",)))
    assert longer.disputed == f"RandomNormal {SIZED_BY_CHANCE}"
    # Expected data of a random operator judge nobody either.
    assert golden_of(raised("bad"), case(by_chance=("Bernoulli",))).disputed


def test_a_dispute_is_beyond_the_wider_of_both_tolerances() -> None:
    # 2e-4 is beyond ours, but within the suite's own rtol of 1e-3.
    assert golden_of(ran(), case(values([1.0002, -2.0, 0.0]))).disputed == ""


def test_expected_data_judge_where_the_cpu_has_no_kernel() -> None:
    for golden in (REFUSED, LOST):
        judgement = judged(ran(), case(values(RIGHT)), golden)
        assert (judgement.verdict, judgement.facts.golden) == (Verdict.PASS, "expected")
        judgement = judged(ran([1.0, -2.0, 0.5]), case(values(RIGHT)), golden)
        assert (judgement.verdict, judgement.facts.golden) == (Verdict.MISMATCH, "expected")
        judgement = judged(ran(), case(), golden)
        assert (judgement.verdict, judgement.facts.golden) == (Verdict.NO_GOLDEN, "")
        assert golden.message in judgement.reason


def test_expected_data_that_leave_an_output_open_prove_nothing() -> None:
    model = msgspec.structs.replace(case(values(RIGHT)), outputs=("y", "z"))
    outcome = ran(outputs=(values(RIGHT) + values(RIGHT, "z"),))
    assert judged(outcome, model, REFUSED).verdict is Verdict.NO_GOLDEN


def test_every_data_set_counts() -> None:
    golden = msgspec.structs.replace(OK, outputs=(values(RIGHT), values([4.0])))
    good = ran(outputs=(values(RIGHT), values([4.0])))
    bad = ran(outputs=(values(RIGHT), values([5.0])))
    assert judged(good, case((), ()), golden).verdict is Verdict.PASS
    judgement = judged(bad, case((), ()), golden)
    assert judgement.verdict is Verdict.MISMATCH
    assert [output.name for output in judgement.decision.outputs] == ["y", "1/y"]


def test_a_death_after_the_result_is_a_note() -> None:
    judgement = judged(ran(teardown="the process died in teardown"))
    assert (judgement.verdict, judgement.reason) == (Verdict.PASS, "the process died in teardown")
    judgement = judged(ran([9.0, 9.0, 9.0], teardown="the process died in teardown"))
    assert judgement.verdict is Verdict.MISMATCH
    assert judgement.reason.endswith("; the process died in teardown")


# --- the record: what the matrix has to say ---

MATRIX = """
schema = 1
[models]
suites = ["onnx-node"]
[[target]]
name = "t"
provider = "CPUExecutionProvider"
[[tolerance]]
model = "loose"
rtol = 0.5
atol = 0.25
[[expect]]
model = "known"
verdict = "crash"
reason = "bug 1"
"""


@pytest.fixture
def plan() -> Plan:
    models = {"onnx-node": ["any", "known", "loose"]}
    return plan_of(MATRIX, models)


def cell(plan: Plan, model: str) -> Cell:
    return next(cell for cell in plan.cells if cell.model == model)


@pytest.mark.parametrize(
    ("model", "verdict", "expected"),
    [
        *(("any", verdict, verdict.family not in {Family.FAILED, Family.MISSING}) for verdict in Verdict),
        # An expectation is strict both ways; only what was not tried says nothing about it.
        *(
            ("known", verdict, verdict in (Verdict.CRASH, Verdict.UNAVAILABLE, Verdict.DECLARED))
            for verdict in Verdict
        ),
    ],
)
def test_what_is_expected(plan: Plan, model: str, verdict: Verdict, expected: bool) -> None:  # noqa: FBT001
    decision = Decision(verdict=verdict, reason="why")
    own = cell(plan, model)
    record = record_of(plan, own, decision, CellAttempt(2, "now", expectation=plan.expectation(own)))
    assert record.expected is expected
    assert record.family is verdict.family
    assert (record.started, record.attempt, record.provider) == ("now", 2, "CPUExecutionProvider")
    missed = model == "known" and not expected
    assert record.reason == ("expected crash (bug 1); got: why" if missed else "why")


def test_a_record_tells_what_its_model_is_made_of(plan: Plan) -> None:
    floats = ValueType(kind="tensor", dtype="float32")
    types = (floats, ValueType(kind="sequence", item=ValueType(kind="optional", item=floats)))
    words = ValueType(kind="map", dtype="string", item=ValueType(kind="tensor", dtype="int64"))
    ports = tuple(Port(name=f"x{i}", type=declared) for i, declared in enumerate((*types, words)))
    model = msgspec.structs.replace(case(), ports=ports)
    passed = Decision(verdict=Verdict.PASS)
    record = record_of(plan, cell(plan, "any"), passed, CellAttempt(1, ""), case=model)
    assert record.content == ModelContent(
        opsets={"ai.onnx": 17}, ops={"Relu": 1, "Shape": 1}, types=("float32", "int64", "string")
    )
    unread = record_of(plan, cell(plan, "any"), passed, CellAttempt(1, ""))
    assert unread.content is None


def test_a_record_tells_the_operators_that_are_judged_by_the_default_noise(plan: Plan) -> None:
    of = case()
    used = {"Relu": (14,), "com.microsoft.Gelu": (0,), "vendor.Gelu": (0,), "vendor.Melt": (0,)}
    model = msgspec.structs.replace(of, facts=msgspec.structs.replace(of.facts, operators=used))
    record = record_of(
        plan, cell(plan, "any"), Decision(verdict=Verdict.PASS), CellAttempt(1, ""), case=model
    )
    assert record.content is not None
    assert record.content.default_noise == ("vendor.Melt",)
    assert ("Noise by default", "nothing is known about the rounding of vendor.Melt") in evidence(record)


def test_a_tolerance_of_the_matrix_is_about_rounding_only(plan: Plan) -> None:
    loose = rule_of(plan, cell(plan, "loose"), case()).policy.tolerance_for
    assert loose("float32") == Tolerance(rtol=0.5, atol=0.25)
    assert loose("int32") == Tolerance(rtol=0.0, atol=0.0)
    assert rule_of(plan, cell(plan, "any"), case()).policy.tolerance_for("float32") == default_tolerance(
        "float32", "float32"
    )


def test_the_coarsest_type_of_the_model_sets_the_default(plan: Plan) -> None:
    half = msgspec.structs.replace(
        case(), facts=msgspec.structs.replace(case().facts, float_types=frozenset({"float32", "float16"}))
    )
    assert rule_of(plan, cell(plan, "any"), half).policy.tolerance_for("float32") == default_tolerance(
        "float32", "float16"
    )

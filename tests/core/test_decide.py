"""The rules of a verdict, and that the facts of a record are enough to decide again."""

import math
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.comparison.output_metrics import Noise, OutputDetails, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.records.cell_end import CellEnd, OwnCpu
from harness.core.records.device_proof import DeviceProof
from harness.core.records.facts import SIZED_BY_CHANCE, UNREPEATABLE, Facts, OtherCheck, Repeats
from harness.core.records.reference_answer import (
    AS_USED,
    EXPECTED,
    REFERENCE,
    Adjudication,
    Reference,
    ReferenceCheck,
    ReferenceDistance,
)
from harness.core.records.verdict import Phase, Verdict
from harness.core.verdicts.decide import decide
from harness.core.verdicts.judging import judging_of
from harness.core.verdicts.missing import SHIPPED_POLICIES, Need, missing
from harness.core.verdicts.rules import RULE_WORDS, RULES
from harness.core.verdicts.run_rules import FOR_OTHER_INPUTS
from tests.kit import decided_record, placement_of

ON_EP = placement_of({"Relu": 2})
ON_CPU = placement_of({}, {"Relu": 2})
UNKNOWN = placement_of({}, source="unknown")
GOOD = OutputMetrics(
    name="y", dtype="float32", shape=(2,), elements=2, max_abs=0.0, max_rel=0.0, frontier=((0.0, 0.0),)
)
BAD = msgspec.structs.replace(
    GOOD,
    max_abs=0.5,
    max_rel=0.5,
    mismatched=2,
    delivered_bits=2.0,
    frontier=((0.0, 0.5), (1.0, 0.0)),
    rtol=1e-4,
    atol=1e-5,
    details=OutputDetails(message="output 'y': 2 of 2 elements (100.0%) differ"),
)
COARSE = msgspec.structs.replace(
    BAD,
    delivered_bits=10.0,
    frontier=((0.0, 1e-3), (1.0, 0.0)),
    noise=Noise(
        precision="float32",
        rms=8000.0,
        max=16000.0,
        like="float16",
        wider=(Noise(precision="float16", rms=1.0, max=2.0, delivers="float16"),),
    ),
)
LOSSY = msgspec.structs.replace(COARSE, delivered_bits=2.0)
TAKEN = msgspec.structs.replace(BAD, noise=Noise(precision="float32", rms=0.0, max=0.0, size=1.5))
SHAPED = msgspec.structs.replace(BAD, frontier=(), details=OutputDetails(differs="shape", message="(3,)"))
STALE = msgspec.structs.replace(BAD, details=OutputDetails(stale=True))
RAN = Facts(
    phase=Phase.COMPARE, placement=ON_EP, outputs=(GOOD,), golden="cpu", provider="AnyExecutionProvider"
)


def ended(how: Any, **fields: Any) -> Facts:
    own, converted = fields.pop("own", None), fields.pop("converted", False)
    phase, provider = fields.pop("phase", Phase.RUN), fields.pop("provider", "")
    beyond = fields.pop("beyond", "")
    end = CellEnd(how=how, message="what happened", **fields)
    return Facts(phase=phase, ended=end, own_cpu=own, converted=converted, provider=provider, beyond=beyond)


def ran(**fields: Any) -> Facts:
    return msgspec.structs.replace(RAN, **fields)


def others(row: OutputMetrics, **known: Any) -> Facts:
    """Facts whose first answer is right, and whose answer for other inputs has this row."""
    return ran(other=(row,), other_check=OtherCheck(**known))


RETYPED = msgspec.structs.replace(BAD, details=OutputDetails(differs="dtype", message="got float64"))
NOT_A_NUMBER = msgspec.structs.replace(BAD, details=OutputDetails(special=1, message="NaN"))
POSITIONS = msgspec.structs.replace(BAD, dtype="int64", rtol=0.0, atol=0.0, frontier=())
TIED = msgspec.structs.replace(
    POSITIONS, details=OutputDetails(ties=1, ties_of="float32", tie_frontier=((0.0, 0.0),))
)
WITHIN_NOISE = msgspec.structs.replace(
    COARSE, noise=Noise(precision="float32", rms=1.0, max=3.0, like="float32")
)

NO_MEMORY = OwnCpu(status="refused", message="std::bad_alloc", out_of_memory=True)
OK, REFUSED, NO_KERNEL, DIED = (
    OwnCpu(status="ok"),
    OwnCpu(status="refused", message="no"),
    OwnCpu(status="refused", message="NotImplemented: no kernel"),
    OwnCpu(status="died", message="died"),
)
CPU = "CPUExecutionProvider"
VALID = OwnCpu(status="refused", message="Fail: some contrib operator is picky", rule="")
BROKEN = OwnCpu(
    status="refused", message="InvalidGraph: no", rule="Field 'type' of 'x' is required but missing."
)
NO_OP = OwnCpu(status="refused", message="Fail: Fatal error: a:B(1) is not a registered function/op", rule="")
UNFIT = OwnCpu(status="refused", message="InvalidArgument: Invalid rank for input: z Got: 2", rule="")
TOO_NEW = OwnCpu(
    status="refused",
    message="Fail: ONNX Runtime only *guarantees* support for models stamped with official released onnx "
    "opset versions. Opset 27 is under development and support for this is limited.",
)
TOO_NEW_IR = OwnCpu(status="refused", message="Fail: Unsupported model IR version: 14, max supported: 13")


def selected(chosen: str, best: str, facts: Facts = RAN, **further: Any) -> Facts:
    """Facts of a package whose first of two variants the rules reject."""
    scenario = {"variants": ("a", "b"), "answers": ("EP_UNSUPPORTED", "EP_SUPPORTED_OPTIMAL")}
    return msgspec.structs.replace(
        facts, scenario={**scenario, "chosen": chosen, "by_rules": best, **further}
    )


CASES: list[tuple[Facts, Verdict]] = [
    (selected("b", "b"), Verdict.PASS),
    (selected("", "", ended("raised", own=REFUSED)), Verdict.NO_VARIANT),
    (selected("a", "b"), Verdict.WRONG_VARIANT),
    (selected("a", ""), Verdict.WRONG_VARIANT),
    (selected("", "b", ended("raised", own=REFUSED)), Verdict.WRONG_VARIANT),
    (selected("b", "b", ended("raised", phase=Phase.CREATE, own=OK), score=100), Verdict.STALE_VARIANT),
    (selected("b", "b", ended("raised", phase=Phase.CREATE, own=OK), score=0), Verdict.ERROR),
    (selected("b", "b", ended("died", phase=Phase.CREATE, own=OK), score=100), Verdict.CRASH),
    (selected("b", "b", stale=("b",)), Verdict.STALE_VARIANT),
    (selected("b", "b", stale=("a",)), Verdict.PASS),
    (ended("harness"), Verdict.HARNESS_ERROR),
    (ended("unavailable"), Verdict.UNAVAILABLE),
    (ended("declared"), Verdict.DECLARED),
    (ended("rejected"), Verdict.OPTION_REJECTED),
    (ended("broken_model"), Verdict.INVALID_MODEL),
    (ended("no_input"), Verdict.NO_INPUT),
    (ended("raised", own=REFUSED), Verdict.INVALID_MODEL),
    (ended("raised", own=REFUSED, converted=True), Verdict.INVALID_MODEL),
    (ended("raised", own=BROKEN), Verdict.INVALID_MODEL),
    (ended("raised", own=VALID), Verdict.NO_GOLDEN),
    (ended("raised", own=VALID, provider=CPU, phase=Phase.CREATE), Verdict.NO_GOLDEN),
    (ended("raised", own=NO_OP), Verdict.NO_GOLDEN),
    (ended("raised", own=UNFIT, provider=CPU), Verdict.NO_INPUT),
    (ended("raised", own=UNFIT), Verdict.NO_INPUT),
    (ended("raised", own=NO_OP, provider=CPU, phase=Phase.CREATE), Verdict.UNSUPPORTED),
    (ended("raised", own=NO_KERNEL, phase=Phase.CREATE), Verdict.NO_GOLDEN),
    (ended("raised", own=NO_KERNEL, provider=CPU, phase=Phase.CREATE), Verdict.UNSUPPORTED),
    (ended("raised", own=TOO_NEW, phase=Phase.CREATE), Verdict.NO_GOLDEN),
    (ended("raised", own=TOO_NEW, provider=CPU, phase=Phase.CREATE), Verdict.UNSUPPORTED),
    (ended("raised", own=TOO_NEW_IR, phase=Phase.CREATE), Verdict.NO_GOLDEN),
    (ended("raised", own=TOO_NEW_IR, provider=CPU, phase=Phase.CREATE), Verdict.UNSUPPORTED),
    (ended("raised", own=NO_KERNEL, phase=Phase.CREATE, converted=True), Verdict.UNSUPPORTED),
    (ended("raised", own=NO_KERNEL, converted=True), Verdict.ERROR),
    (ended("raised", converted=True), Verdict.ERROR),
    (ended("raised", own=DIED), Verdict.NO_GOLDEN),
    (ended("raised", own=OK), Verdict.ERROR),
    (ended("raised", own=OK, beyond="MaxPool has a window of 3 over 2"), Verdict.NO_INPUT),
    (ended("died", own=OK, beyond="MaxPool has a window of 3 over 2"), Verdict.CRASH),
    (ended("raised", own=OK, kind="NotImplemented", phase=Phase.CREATE), Verdict.UNSUPPORTED),
    (ended("raised", own=OK, out_of_memory=True), Verdict.OUT_OF_MEMORY),
    (ended("raised", own=REFUSED, out_of_memory=True), Verdict.INVALID_MODEL),
    (ended("raised", own=NO_MEMORY, out_of_memory=True), Verdict.OUT_OF_MEMORY),
    (ended("raised", own=NO_MEMORY), Verdict.INVALID_MODEL),
    (ended("changed"), Verdict.NOT_RUN),
    (ended("died", own=OK), Verdict.CRASH),
    (ended("died", own=REFUSED), Verdict.CRASH),
    (ended("died", own=DIED), Verdict.NO_GOLDEN),
    (ended("died", own=OK, out_of_memory=True), Verdict.OUT_OF_MEMORY),
    (ended("hung", own=OK), Verdict.HANG),
    (ended("hung", own=DIED), Verdict.NO_GOLDEN),
    (ended("timed_out"), Verdict.TIMEOUT),
    (ended("timed_out", own=DIED), Verdict.TIMEOUT),
    (ended("unsupported"), Verdict.UNSUPPORTED),
    (ended("unfeedable"), Verdict.NO_GOLDEN),
    (ran(golden="", no_golden="the CPU EP has no kernel"), Verdict.NO_GOLDEN),
    (ran(dispute="they disagree"), Verdict.REFERENCE_DISPUTED),
    (ran(dispute="they disagree", outputs=(BAD,)), Verdict.REFERENCE_DISPUTED),
    (ran(dispute="they disagree", outputs=(SHAPED,)), Verdict.SHAPE_MISMATCH),
    (ran(dispute=f"it {SIZED_BY_CHANCE}", outputs=(SHAPED,)), Verdict.REFERENCE_DISPUTED),
    (ran(providers_changed="A became B", outputs=(BAD,)), Verdict.FALLBACK_AT_RUN),
    (ran(outputs=(BAD,), undefined={"y": "negative float to uint8"}), Verdict.UNDEFINED_INPUT),
    (ran(outputs=(BAD,), undefined={"z": "negative float to uint8"}), Verdict.MISMATCH),
    (ran(outputs=(BAD,), placement=ON_CPU), Verdict.REFERENCE_DISPUTED),
    (ran(outputs=(BAD,)), Verdict.MISMATCH),
    (ran(outputs=(BAD,), beyond="MaxPool has a window of 3 over 2"), Verdict.NO_INPUT),
    (ran(again=(BAD,)), Verdict.NONDETERMINISTIC),
    (ran(again=(BAD,), undefined={"x": "NaN cast to int64"}), Verdict.NONDETERMINISTIC),
    (ran(again=(BAD,), undefined={"y": "NaN cast to int64"}), Verdict.PASS),
    (ran(repeats=Repeats(runs=2, sessions=1, distinct=2, bit_equal=True)), Verdict.NONDETERMINISTIC),
    (ran(outputs=(COARSE,), answered=("noise",)), Verdict.MISMATCH),
    (ran(outputs=(COARSE,), answered=("noise",), delivers=("float16",)), Verdict.PASS),
    (ran(outputs=(LOSSY,), answered=("noise",), delivers=("float16",)), Verdict.PRECISION_LOSS),
    (ran(outputs=(TAKEN,), answered=("noise",)), Verdict.ILL_CONDITIONED),
    (ran(outputs=(TAKEN, msgspec.structs.replace(BAD, name="z"))), Verdict.MISMATCH),
    (ran(other=(STALE,)), Verdict.MISMATCH),
    (ran(other=(BAD,)), Verdict.PASS),  # a record of before, off by no more than other inputs might be
    (ran(other=(msgspec.structs.replace(BAD, delivered_bits=0.5),)), Verdict.MISMATCH),
    (ran(other=(STALE,), placement=ON_CPU), Verdict.FALLBACK),
    # With what judges them, they are judged like the first ones.
    (others(BAD), Verdict.MISMATCH),
    (others(STALE), Verdict.MISMATCH),
    (others(SHAPED), Verdict.SHAPE_MISMATCH),
    (others(RETYPED), Verdict.DTYPE_MISMATCH),
    (others(NOT_A_NUMBER), Verdict.NAN_MISMATCH),
    (others(POSITIONS), Verdict.MISMATCH),
    (others(TIED), Verdict.PASS),
    (others(WITHIN_NOISE), Verdict.PASS),
    (others(COARSE), Verdict.MISMATCH),
    (others(BAD, dispute="they disagree"), Verdict.PASS),
    (others(BAD, undefined={"y": "negative float to uint8"}), Verdict.PASS),
    (others(BAD, undefined={"z": "negative float to uint8"}), Verdict.MISMATCH),
    (msgspec.structs.replace(others(BAD), placement=ON_CPU), Verdict.FALLBACK),
    (msgspec.structs.replace(others(BAD), placement=UNKNOWN), Verdict.MISMATCH),
    (ran(other_check=OtherCheck(unchecked="the CPU EP refuses them")), Verdict.PASS),
    (ran(), Verdict.PASS),
    (ran(placement=ON_CPU), Verdict.FALLBACK),
    (ran(placement=UNKNOWN), Verdict.FALLBACK),
    (ran(outputs=(BAD,), placement=UNKNOWN), Verdict.MISMATCH),
    (
        Facts(
            golden="cpu", placement=ON_EP, outputs=(GOOD,), device=DeviceProof(asked="NPU", wrong="x lies")
        ),
        Verdict.WRONG_DEVICE,
    ),
]


@pytest.mark.parametrize(("facts", "verdict"), CASES)
def test_the_first_rule_that_applies_decides(facts: Facts, verdict: Verdict) -> None:
    decision = decide(facts, Policy())
    assert decision.verdict is verdict
    assert bool(decision.reason) is (verdict is not Verdict.PASS or bool(facts.delivers))


def test_every_rule_decides_one_of_the_cases() -> None:
    deciding = set()
    for facts, _ in CASES:
        names = [each.__name__ for each in RULES]
        for at in range(1, len(RULES) + 1):
            if _decides(facts, at):
                deciding.add(names[at - 1])
                break
    assert deciding == {each.__name__ for each in RULES}


def _decides(facts: Facts, count: int) -> bool:
    return RULES[count - 1](judging_of(facts, Policy())) is not None


def apart(error: float, **fields: Any) -> ReferenceDistance:
    """How far an answer whose errors are all alike lies from a reference."""
    bad = {"mismatched": 2, "delivered_bits": -math.log2(error), "max_abs": error} if error else {}
    frontier = ((0.0, error), (1e-5, error), (10.0, 0.0)) if error else ((0.0, 0.0),)
    given: dict[str, Any] = {"rtol": 1e-4, "atol": 1e-5, "frontier": frontier} | bad | fields
    return ReferenceDistance(name="y", dtype="float32", elements=2, **given)


def reference(golden: float, ep: float, name: str = EXPECTED, **fields: Any) -> Reference:
    return Reference(name=name, golden=(apart(golden),), ep=(apart(ep),), **fields)


def float64(golden: float, ep: float, doubt: str = "") -> Adjudication:
    nearer: Literal["golden", "ep", "equal"] = "equal"
    if 2 * ep <= golden or 2 * golden <= ep:
        nearer = "ep" if ep < golden else "golden"
    return Adjudication(output="y", by="float64", golden=golden, ep=ep, nearer=nearer, doubt=doubt)


def checked(*references: Reference, by: Adjudication | None = None) -> ReferenceCheck:
    return ReferenceCheck(references=references, adjudication=(by,) if by is not None else ())


SIDES = reference(0.5, 0.0, REFERENCE)
LEVELS = reference(0.0, 0.5, "the CPU EP without optimizations", is_golden_again=True)
OPTIMIZED = reference(0.5, 0.0, "the CPU EP without optimizations", is_golden_again=True)


@pytest.mark.parametrize(
    ("left", "used", "verdict"),
    [
        ({"MatMulInteger": 1}, reference(0.5, 0.0, AS_USED), Verdict.REFERENCE_DISPUTED),
        ({"MatMulInteger": 1}, reference(0.6, 0.4, AS_USED), Verdict.REFERENCE_DISPUTED),
        ({"MatMulInteger": 1}, reference(0.1, 0.4, AS_USED), Verdict.MISMATCH),
        ({"MatMulInteger": 1}, reference(0.0, 0.5, AS_USED), Verdict.MISMATCH),
        ({"Relu": 1}, reference(0.5, 0.0, AS_USED), Verdict.MISMATCH),
        ({}, reference(0.5, 0.0, AS_USED), Verdict.MISMATCH),
    ],
)
def test_an_answer_of_nodes_left_to_the_cpu_provider_accuses_nobody(
    left: dict[str, int], used: Reference, verdict: Verdict
) -> None:
    placed = placement_of({"Relu": 2}, left)
    decision = decide(ran(outputs=(BAD,), placement=placed, reference_check=checked(used)), Policy())
    assert decision.verdict is verdict
    assert ("MatMulInteger was left to it" in decision.reason) is (verdict is Verdict.REFERENCE_DISPUTED)


def test_wrong_sums_of_bytes_of_the_cpu_provider_come_with_a_way_out() -> None:
    placed = placement_of({"MatMulInteger": 1})
    facts = ran(outputs=(BAD,), placement=placed, provider="CPUExecutionProvider")
    assert "session.x64quantprecision = 1" in decide(facts, Policy()).reason
    other = ran(outputs=(BAD,), placement=placed)
    assert "x64quantprecision" not in decide(other, Policy()).reason


HEARINGS: list[tuple[str, ReferenceCheck, Verdict]] = [
    # The golden holds until a reference disputes it.
    ("", checked(), Verdict.MISMATCH),
    ("", checked(SIDES), Verdict.REFERENCE_DISPUTED),
    ("", checked(SIDES, OPTIMIZED), Verdict.REFERENCE_DISPUTED),
    ("", checked(SIDES, LEVELS), Verdict.MISMATCH),
    ("", checked(reference(0.5, 0.0, REFERENCE, doubt="wrong for LRN-13")), Verdict.MISMATCH),
    ("", checked(by=float64(0.5, 0.1)), Verdict.REFERENCE_DISPUTED),
    ("", checked(by=float64(0.5, 0.1, doubt="wrong for LRN-13")), Verdict.MISMATCH),
    ("", checked(reference(0.5, 0.0)), Verdict.PASS),
    # A disputed golden: expected data and float64 judge where they can.
    ("unsure", checked(), Verdict.REFERENCE_DISPUTED),
    ("unsure", checked(SIDES), Verdict.REFERENCE_DISPUTED),
    ("unsure", checked(reference(0.01, 0.5)), Verdict.MISMATCH),
    ("unsure", checked(reference(0.0, 0.5)), Verdict.MISMATCH),
    ("unsure", checked(reference(0.3, 0.5)), Verdict.REFERENCE_DISPUTED),
    ("unsure", checked(reference(0.5, 0.0)), Verdict.PASS),
    ("unsure", checked(by=float64(0.01, 0.5)), Verdict.MISMATCH),
    ("unsure", checked(by=float64(0.3, 0.5)), Verdict.REFERENCE_DISPUTED),
    ("unsure", checked(by=float64(0.5, 0.0)), Verdict.REFERENCE_DISPUTED),
    ("unsure", checked(by=float64(0.01, 0.5, doubt="wrong for LRN-13")), Verdict.REFERENCE_DISPUTED),
    ("unsure", checked(reference(0.01, 0.5), by=float64(0.5, 0.0)), Verdict.REFERENCE_DISPUTED),
    # The error of a golden that varies is unknown.
    (UNREPEATABLE, checked(reference(0.0, 0.4), by=float64(0.0, 0.4)), Verdict.REFERENCE_DISPUTED),
    (UNREPEATABLE, checked(reference(0.0, 0.6)), Verdict.MISMATCH),
    (UNREPEATABLE, checked(by=float64(0.1, 0.6)), Verdict.MISMATCH),
    (UNREPEATABLE, checked(reference(0.5, 0.0)), Verdict.PASS),
]


@pytest.mark.parametrize(("dispute", "reference_check", "verdict"), HEARINGS)
def test_what_the_references_make_of_a_failing_output(
    dispute: str, reference_check: ReferenceCheck, verdict: Verdict
) -> None:
    facts = ran(outputs=(BAD,), dispute=dispute, reference_check=reference_check)
    decision = decide(facts, Policy())
    assert decision.verdict is verdict
    if dispute:
        assert dispute in decision.reason
    record = decided_record(facts, decision)
    assert decide(record, Policy()) == decision


@pytest.mark.parametrize(("dispute", "reference_check", "verdict"), HEARINGS)
def test_references_judge_other_inputs_like_the_first_ones(
    dispute: str, reference_check: ReferenceCheck, verdict: Verdict
) -> None:
    decision = decide(others(BAD, dispute=dispute, reference_check=reference_check), Policy())
    assert decision.verdict is (verdict if verdict is Verdict.MISMATCH else Verdict.PASS)
    if verdict is Verdict.MISMATCH:
        assert decision.reason.startswith(FOR_OTHER_INPUTS)


def test_a_precision_that_the_ep_delivers_explains_other_inputs_too() -> None:
    assert decide(others(COARSE), Policy()).verdict is Verdict.MISMATCH
    delivered = msgspec.structs.replace(others(COARSE), delivers=("float16",))
    assert decide(delivered, Policy()).verdict is Verdict.PASS


def test_other_inputs_are_judged_by_the_policy_that_is_asked_for() -> None:
    facts = others(WITHIN_NOISE)
    assert decide(facts, Policy(judge_by="noise")).verdict is Verdict.PASS
    table = decide(facts, Policy(judge_by="table"))
    assert table.verdict is Verdict.MISMATCH
    assert table.other[0].mismatched
    assert (
        decide(facts, Policy(fixed=Tolerance(rtol=1e-2, atol=0.0), judge_by="table")).verdict is Verdict.PASS
    )


def test_the_output_for_the_inputs_before_is_called_so() -> None:
    reason = decide(others(STALE), Policy()).reason
    assert (
        reason
        == "for other inputs in the same session output 'y' is the output for the inputs before, bit for bit"
    )


def test_expected_data_judge_under_the_policy_that_is_asked_for() -> None:
    facts = ran(outputs=(BAD,), dispute="unsure", reference_check=checked(reference(0.5, 1e-3)))
    assert decide(facts, Policy()).verdict is Verdict.REFERENCE_DISPUTED
    loose = Policy(fixed=Tolerance(rtol=1e-2, atol=1e-5), judge_by="table")
    assert decide(facts, loose).verdict is Verdict.PASS


def test_what_comes_before_wrong_values_comes_before_a_dispute_that_is_settled() -> None:
    wrong = checked(reference(0.01, 0.5))
    facts = ran(outputs=(BAD,), dispute="unsure", reference_check=wrong)
    change = msgspec.structs.replace
    assert decide(change(facts, undefined={"y": "why"}), Policy()).verdict is Verdict.UNDEFINED_INPUT
    assert decide(change(facts, placement=ON_CPU), Policy()).verdict is Verdict.REFERENCE_DISPUTED
    assert decide(change(facts, converted=True), Policy()).verdict is Verdict.REFERENCE_DISPUTED
    right = change(facts, reference_check=checked(reference(0.5, 0.0)))
    assert decide(change(right, placement=ON_CPU), Policy()).verdict is Verdict.FALLBACK
    assert decide(change(right, providers_changed="gone"), Policy()).verdict is Verdict.FALLBACK_AT_RUN
    assert decide(change(right, again=(BAD,)), Policy()).verdict is Verdict.REFERENCE_DISPUTED


def test_random_numbers_in_one_output_excuse_no_other_one() -> None:
    drawn = msgspec.structs.replace(BAD, name="sample")
    facts = ran(outputs=(drawn, GOOD), dispute="RandomNormal draws numbers", drawn=("sample",))
    change = msgspec.structs.replace
    assert decide(facts, Policy()).verdict is Verdict.REFERENCE_DISPUTED
    found = decide(change(facts, outputs=(drawn, BAD)), Policy())
    assert found.verdict is Verdict.MISMATCH
    assert "'y'" in found.reason
    assert decide(change(facts, again=(drawn, GOOD)), Policy()).verdict is Verdict.REFERENCE_DISPUTED
    shaped = change(SHAPED, name="sample")
    assert decide(change(facts, outputs=(shaped, GOOD)), Policy()).verdict is Verdict.SHAPE_MISMATCH
    sized = change(facts, outputs=(shaped, GOOD), dispute=f"RandomNormal {SIZED_BY_CHANCE}")
    assert decide(sized, Policy()).verdict is Verdict.REFERENCE_DISPUTED


def test_a_draw_that_is_wrong_in_a_second_run_is_wrong_and_not_merely_different() -> None:
    misfit = OutputMetrics(
        name="y",
        dtype="float32",
        shape=(9,),
        elements=9,
        mismatched=9,
        details=OutputDetails(distribution="normal"),
    )
    decision = decide(ran(again=(misfit,)), Policy())
    assert decision.verdict is Verdict.MISMATCH
    assert decision.reason.startswith("in another run ")


def test_every_rule_has_its_words() -> None:
    assert all(words.endswith(".") for words in RULE_WORDS.values())


ROWS = st.builds(
    OutputMetrics,
    name=st.sampled_from(["y", "1/y", "z"]),
    dtype=st.sampled_from(["float32", "float16", "int64", "string", "sequence", "bool"]),
    shape=st.just((2,)),
    max_abs=st.none() | st.floats(0, 10),
    max_rel=st.none() | st.floats(0, 10),
    delivered_bits=st.none() | st.floats(-3, 30),
    mismatched=st.integers(0, 2),
    elements=st.integers(0, 2),
    rtol=st.sampled_from([0.0, 1e-4]),
    atol=st.sampled_from([0.0, 1e-5]),
    frontier=st.sampled_from([(), ((0.0, 0.0),), ((0.0, 0.5), (1e-5, 1e-3), (1.0, 0.0))]),
    details=st.none()
    | st.builds(
        OutputDetails,
        differs=st.sampled_from(["", "", "shape", "dtype"]),
        special=st.integers(0, 1),
        own=st.sampled_from(["", "equal", "lost"]),
        steps=st.none() | st.sampled_from([1.0, 2.0]),
        ties=st.integers(0, 1),
        ties_of=st.sampled_from(["", "float32"]),
        distribution=st.sampled_from(["", "normal"]),
    ),
)
FACTS = st.builds(
    Facts,
    provider=st.sampled_from(["AnyExecutionProvider", "CPUExecutionProvider"]),
    phase=st.sampled_from([None, *Phase]),
    ended=st.none()
    | st.builds(
        CellEnd,
        how=st.sampled_from(
            ["unavailable", "declared", "rejected", "raised", "died", "hung", "timed_out", "harness"]
        ),
        message=st.text(max_size=9),
        kind=st.sampled_from(["Fail", "NotImplemented"]),
        out_of_memory=st.booleans(),
    ),
    own_cpu=st.sampled_from([None, OK, REFUSED, DIED]),
    precision=st.sampled_from(["float32", "float16"]),
    converted=st.booleans(),
    placement=st.sampled_from([None, ON_EP, ON_CPU, UNKNOWN]),
    outputs=st.lists(ROWS, max_size=2).map(tuple),
    again=st.lists(ROWS, max_size=1).map(tuple),
    other=st.lists(ROWS, max_size=1).map(tuple),
    other_check=st.sampled_from([None, OtherCheck(), OtherCheck(dispute="they disagree")]),
    golden=st.sampled_from(["", "cpu", "expected"]),
    dispute=st.sampled_from(["", "they disagree"]),
    undefined=st.sampled_from([{}, {"y": "why"}]),
    providers_changed=st.sampled_from(["", "A became B"]),
    reference_check=st.sampled_from([None, *(reference_check for _, reference_check, _ in HEARINGS)]),
)
POLICIES = st.sampled_from(
    [*SHIPPED_POLICIES, Policy(), Policy(steps=1.0), Policy(precision="float16"), Policy(judge_by="table")]
)


@settings(max_examples=300)
@given(facts=FACTS, policy=POLICIES)
def test_any_facts_have_a_verdict_and_the_same_after_a_trip_through_json(
    facts: Facts, policy: Policy
) -> None:
    first = decide(facts, policy)
    record = decided_record(facts, first)
    assert decide(record, policy) == first
    assert missing(facts, policy, frozenset(Need)) in {None, *Need}


def test_noise_is_asked_for_only_where_an_error_exceeds_what_any_model_allows() -> None:
    within = msgspec.structs.replace(GOOD, max_abs=1e-7, max_rel=1e-7, frontier=((0.0, 1e-7), (1e-7, 0.0)))
    every = frozenset(Need) - {Need.WIDER}
    assert (
        missing(ran(outputs=(within,)), Policy(), every) is Need.ZEROED
    )  # a right answer, as far as it goes
    assert missing(ran(outputs=(within,), answered=(Need.ZEROED,)), Policy(), every) is None
    beyond = msgspec.structs.replace(within, max_abs=1e-6, max_rel=1e-6, frontier=((0.0, 1e-6),))
    assert missing(ran(outputs=(beyond,)), Policy(), every) is Need.NOISE
    assert missing(ran(outputs=(BAD,)), Policy(), every - {Need.NOISE}) is Need.PLAYED
    with_wider = (every - {Need.NOISE, Need.PLAYED, Need.REVEALED}) | {Need.WIDER}
    assert missing(ran(outputs=(BAD,)), Policy(), with_wider) is Need.WIDER
    assert missing(ran(outputs=(SHAPED,)), Policy(), with_wider) is not Need.WIDER
    # That a coarse precision takes the digits is asked about only where the matrix chose it.
    lossy = ran(outputs=(LOSSY,), delivers=("float16",), own_precision="float32")
    assert missing(lossy, Policy(), with_wider) is not Need.WIDER
    chosen = msgspec.structs.replace(
        LOSSY, noise=Noise(precision="bfloat16", rms=1.0, max=2.0), frontier=((0.0, 0.9),)
    )
    asked = ran(outputs=(chosen,), precision="bfloat16", own_precision="float32")
    assert decide(asked, Policy()).verdict is Verdict.PRECISION_LOSS
    assert missing(asked, Policy(), with_wider) is Need.WIDER
    assert missing(ran(outputs=(BAD,)), Policy(), every - {Need.NOISE, Need.PLAYED}) is Need.REVEALED
    assert missing(ran(outputs=(BAD,), answered=tuple(every)), Policy(), every) is None
    # ONNX may contradict the expected data of a suite; nothing else is asked about them.
    assert missing(ran(outputs=(BAD,), golden="expected"), Policy(), every) is Need.UNDEFINED
    assert missing(ran(outputs=(BAD,), golden="expected"), Policy(), every - {Need.UNDEFINED}) is None
    assert missing(ran(outputs=(GOOD,), golden="expected"), Policy(), every) is None
    # What only a usual policy would fail is asked about, unless the caller has enough of it.
    strict = msgspec.structs.replace(within, max_abs=5e-5, frontier=((0.0, 5e-5), (1e-5, 5e-5)))
    passing = ran(outputs=(strict,), answered=(Need.NOISE, Need.ZEROED))
    assert missing(passing, Policy(), every) is Need.UNDEFINED
    assert missing(passing, Policy(), every, by_usual=False) is None
    assert missing(ended("died"), Policy(), every) is Need.OWN_CPU
    assert missing(ended("unavailable"), Policy(), every) is None


def test_what_may_tie_or_be_undefined_is_asked_of_a_second_run_too() -> None:
    facts = ran(again=(BAD,), answered=(Need.NOISE,))
    assert missing(facts, Policy(), {Need.REVEALED, Need.UNDEFINED}) is Need.REVEALED
    assert missing(facts, Policy(), {Need.UNDEFINED}) is Need.UNDEFINED
    assert missing(ran(answered=(Need.NOISE,)), Policy(), {Need.REVEALED, Need.UNDEFINED}) is None


def test_a_right_answer_on_another_device_is_a_failure_of_its_own() -> None:
    elsewhere = DeviceProof(asked="NPU 1 of Acme", judged=1, wrong="input 'x' lies in the memory of GPU 2")
    facts = Facts(golden="cpu", placement=ON_EP, outputs=(GOOD,), device=elsewhere)
    decision = decide(facts, Policy())
    assert (decision.verdict, decision.verdict.family) == ("wrong_device", "failed")
    assert decision.reason == "input 'x' lies in the memory of GPU 2; asked for: NPU 1 of Acme"
    wrong = msgspec.structs.replace(facts, outputs=(BAD,))
    assert decide(wrong, Policy()).verdict == "mismatch"  # which is worse
    unproven = DeviceProof(asked="NPU 1 of Acme", judged=1, not_proven="nothing tells")
    assert decide(msgspec.structs.replace(facts, device=unproven), Policy()).verdict == "pass"

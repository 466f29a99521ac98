"""Which candidates become cases of a profile, with which golden, and why others do not."""

import contextlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import onnx.parser
import pytest

from harness.annex.conformance.case_admission import NotAdmittedError, check_case_golden, golden_of_candidate
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.noise.spread import Spread
from harness.core.values.value import Tensor
from harness.corpus.case import Case
from harness.corpus.load_case import load_case
from harness.corpus.model.port import ValueType
from harness.corpus.model.protos import encode
from harness.corpus.suites.suite import open_file
from harness.engine.tasks.task import QuestionKind
from harness.golden.golden_answer import Golden

POLICY = Policy(precision="float32", fixed=Tolerance(rtol=1e-4, atol=1e-5))
QUIET = Spread(precision="float32", outputs=({},))
NUMBERS = np.array([0.3, -1.7, 2.9, 5.2], np.float32)

Make = Callable[..., Case]


@pytest.fixture
def candidate(tmp_path: Path, own_cache: Path) -> Make:
    """Write a model with the inputs of one data set."""
    assert own_cache

    def make(graph: str, *inputs: np.ndarray[Any, Any], opset: int = 21) -> Case:
        model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {graph}')
        path = tmp_path / "case" / "model.onnx"
        (path.parent / "test_data_set_0").mkdir(parents=True)
        path.write_bytes(model.SerializeToString())
        for index, array in enumerate(inputs):
            content = encode(tensor(array), ValueType(kind="tensor"), model.graph.input[index].name)
            (path.parent / "test_data_set_0" / f"input_{index}.pb").write_bytes(content)
        return load_case(open_file(path), path.name, {})

    return make


def tensor(array: np.ndarray[Any, Any]) -> Tensor:
    return Tensor(dtype=str(array.dtype), array=array)


def gives(*arrays: np.ndarray[Any, Any], names: str = "y") -> Golden:
    return Golden(status="ok", outputs=(tuple(zip(names, map(tensor, arrays), strict=True)),))


def admitted(case: Case, answers: dict[QuestionKind, Golden]) -> np.ndarray[Any, Any]:
    """The golden of the only output, once all checks have passed."""
    golden = golden_of_candidate(case, answers)
    check_case_golden(case, golden, answers, QUIET, POLICY)
    ((_, value),) = golden[0]
    assert isinstance(value, Tensor)
    return value.array


def test_the_golden_is_the_float64_answer_in_the_declared_type(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = Exp(x) }", NUMBERS)
    exact = np.exp(NUMBERS.astype(np.float64))
    off = np.nextafter(exact.astype(np.float32), np.float32(0))  # the CPU provider's last bit is no golden
    golden = admitted(case, {QuestionKind.ANSWER: gives(off), QuestionKind.FLOAT64: gives(exact)})
    assert golden.dtype == np.float32
    np.testing.assert_array_equal(golden, exact.astype(np.float32))


def test_onnx_reference_answers_where_the_provider_has_no_doubles(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = Exp(x) }", NUMBERS)
    exact = np.exp(NUMBERS.astype(np.float64))
    refused = Golden(status="refused", message="no kernel")
    found = {
        QuestionKind.ANSWER: gives(exact.astype(np.float32)),
        QuestionKind.FLOAT64: refused,
        QuestionKind.FLOAT64_EVALUATED: gives(exact),
    }
    assert admitted(case, found).size == 4
    with pytest.raises(NotAdmittedError, match="no answer in float64: no kernel"):
        golden_of_candidate(
            case, {QuestionKind.ANSWER: found[QuestionKind.ANSWER], QuestionKind.FLOAT64: refused}
        )


def nearest_bfloat16(number: float) -> float:
    """Round to 8 bits by exact fractions, ties to even."""
    exact = Fraction(number)
    exponent = int(np.frexp(number)[1])
    unit = Fraction(2) ** (max(exponent, -125) - 8)
    return float(round(exact / unit) * unit)


def test_float64_is_rounded_to_bfloat16_once(candidate: Make) -> None:
    case = candidate(
        "g (bfloat16[8] x) => (bfloat16[8] y) { y = Neg(x) }", np.ones(8, dtype=ml_dtypes.bfloat16)
    )
    rng = np.random.default_rng(1)
    # The first is above the middle of two neighbours by less than float32 can tell: rounding twice is wrong.
    traps = [1 + 2**-8 + 2**-30, 1 + 3 * 2**-8 - 2**-30, -(1 + 2**-8 + 2**-40), 2**-127 + 2**-134 + 2**-160]
    exact = np.array([*traps, *rng.normal(size=4)])
    assert np.float32(exact[0]).astype(ml_dtypes.bfloat16) != nearest_bfloat16(exact[0])
    ((_, value),) = golden_of_candidate(case, {QuestionKind.FLOAT64: gives(exact)})[0]
    assert isinstance(value, Tensor)
    assert value.dtype == "bfloat16"
    assert [float(one) for one in value.array] == [nearest_bfloat16(float(one)) for one in exact]


def test_what_draws_numbers_is_no_case(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = RandomNormalLike(x) }", NUMBERS)
    with pytest.raises(NotAdmittedError, match="draws numbers: RandomNormalLike"):
        golden_of_candidate(case, {QuestionKind.ANSWER: gives(NUMBERS)})


def test_a_provider_that_differs_disputes_the_golden(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = Exp(x) }", NUMBERS)
    exact = np.exp(NUMBERS.astype(np.float64))
    other = gives((exact * 1.01).astype(np.float32))
    with pytest.raises(NotAdmittedError, match="disputed: the CPU provider differs"):
        admitted(case, {QuestionKind.ANSWER: other, QuestionKind.FLOAT64: gives(exact)})


def test_onnx_reference_disputes_the_golden(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = Exp(x) }", NUMBERS)
    exact = np.exp(NUMBERS.astype(np.float64))
    found = {
        QuestionKind.ANSWER: gives(exact.astype(np.float32)),
        QuestionKind.FLOAT64: gives(exact),
        QuestionKind.EVALUATED: gives((exact * 1.5).astype(np.float32)),
    }
    with pytest.raises(NotAdmittedError, match=r"disputed: onnx\.reference differs"):
        admitted(case, found)


def test_an_answer_that_nothing_confirms_is_no_golden(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = Exp(x) }", NUMBERS)
    with pytest.raises(NotAdmittedError, match="nothing confirms"):
        admitted(case, {QuestionKind.FLOAT64: gives(np.exp(NUMBERS.astype(np.float64)))})


def test_two_answers_in_float64_may_round_otherwise(candidate: Make) -> None:
    case = candidate("g (double[4] x) => (double[4] y) { y = Sin (x) }", NUMBERS.astype(np.float64))
    exact = np.sin(NUMBERS.astype(np.float64))
    near = np.nextafter(exact, 2.0)
    found = admitted(case, {QuestionKind.ANSWER: gives(near), QuestionKind.EVALUATED: gives(exact)})
    np.testing.assert_array_equal(found, near)
    for wrong in (exact * (1 + 1e-9), np.where(exact > 0, np.nan, exact), exact.astype(np.float32)):
        with pytest.raises(NotAdmittedError, match="bit by bit"):
            admitted(case, {QuestionKind.ANSWER: gives(wrong), QuestionKind.EVALUATED: gives(exact)})


def test_a_choice_that_float64_makes_otherwise_is_near_a_discontinuity(candidate: Make) -> None:
    graph = "g (float[4] x) => (int64[4] y) { z = Exp(x) y = Cast<to: int = 7>(z) }"
    case = candidate(graph, NUMBERS)
    own = np.array([1, 0, 18, 181])
    found = {QuestionKind.ANSWER: gives(own), QuestionKind.FLOAT64: gives(own + np.array([0, 0, 0, 1]))}
    with pytest.raises(NotAdmittedError, match="near a discontinuity"):
        golden_of_candidate(case, found)
    found[QuestionKind.FLOAT64] = gives(own)
    with pytest.raises(NotAdmittedError, match="not known whether ONNX defines"):
        golden_of_candidate(case, found)  # a number beyond int64 would have no defined result
    found[QuestionKind.UNDEFINED] = gives(np.exp(NUMBERS), names="z")
    assert admitted(case, found).tolist() == own.tolist()
    found[QuestionKind.UNDEFINED] = gives(np.array([1, 0, 18, 1e30], np.float32), names="z")
    with pytest.raises(NotAdmittedError, match="undefined: Cast"):
        golden_of_candidate(case, found)


def test_noise_that_moves_an_output_far_is_near_a_discontinuity(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = Exp(x) }", NUMBERS)
    exact = np.exp(NUMBERS.astype(np.float64))
    found = {QuestionKind.ANSWER: gives(exact.astype(np.float32)), QuestionKind.FLOAT64: gives(exact)}
    golden = golden_of_candidate(case, found)
    jump = Spread(precision="float32", outputs=({"y": np.array([1e-6, 1e-6, 1e-6, 150.0])},))
    with pytest.raises(NotAdmittedError, match="rounding moves y far"):
        check_case_golden(case, golden, found, jump, POLICY)


def test_noise_that_hides_zeros_makes_a_golden_weak(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = Exp(x) }", NUMBERS / 5)
    exact = np.exp((NUMBERS / 5).astype(np.float64))
    found = {QuestionKind.ANSWER: gives(exact.astype(np.float32)), QuestionKind.FLOAT64: gives(exact)}
    golden = golden_of_candidate(case, found)
    policy = msgspec.structs.replace(POLICY, fixed=None)
    for noise, weak in ((1e-6, False), (0.24, True)):
        spread = Spread(precision="float32", outputs=({"y": np.full(4, noise)},))
        with pytest.raises(NotAdmittedError, match="zeros in half of") if weak else contextlib.nullcontext():
            check_case_golden(case, golden, found, spread, policy)


def test_integers_need_another_source_with_the_same_bits(candidate: Make) -> None:
    numbers = np.array([3, -4, 5, 70])
    case = candidate("g (int64[4] x) => (int64[4] y) { y = Mul(x, x) }", numbers)
    right = gives(numbers**2)
    assert admitted(case, {QuestionKind.ANSWER: right, QuestionKind.EVALUATED: right}).tolist() == [
        9,
        16,
        25,
        4900,
    ]
    with pytest.raises(NotAdmittedError, match="bit by bit"):
        golden_of_candidate(case, {QuestionKind.ANSWER: right, QuestionKind.EVALUATED: gives(numbers**2 + 1)})
    with pytest.raises(NotAdmittedError, match="bit by bit"):
        golden_of_candidate(case, {QuestionKind.ANSWER: right})


@pytest.mark.parametrize(("second", "why"), [(2.9, "tied"), (2.8999999, "tied"), (2.5, "weak")])
def test_equal_values_to_choose_from_are_a_tie(candidate: Make, second: float, why: str) -> None:
    values = np.array([0.3, second, 2.9, -5.2], np.float32)
    graph = "g (float[4] x) => (int64[1] y) { y = ArgMax<axis: int = 0>(x) }"
    case = candidate(graph, values)
    chosen = gives(np.array([2]))
    found = {QuestionKind.ANSWER: chosen, QuestionKind.EVALUATED: chosen, QuestionKind.FLOAT64: chosen}
    with pytest.raises(NotAdmittedError, match=why):
        golden_of_candidate(case, found)


def test_a_result_that_onnx_does_not_define_is_no_golden(candidate: Make) -> None:
    base, power = np.array([1.5, -2.5], np.float32), np.array([2.0, 0.5], np.float32)
    case = candidate("g (float[2] x, float[2] e) => (float[2] y) { y = Pow(x, e) }", base, power)
    exact = np.array([2.25, np.nan])
    found = {QuestionKind.ANSWER: gives(exact.astype(np.float32)), QuestionKind.FLOAT64: gives(exact)}
    with pytest.raises(NotAdmittedError, match="undefined: Pow"):
        golden_of_candidate(case, found)


def test_a_golden_that_everything_passes_is_weak(candidate: Make) -> None:
    case = candidate("g (float[4] x) => (float[4] y) { y = Sub(x, x) }", NUMBERS)
    zeros = np.zeros(4)
    with pytest.raises(NotAdmittedError, match="weak"):
        golden_of_candidate(
            case, {QuestionKind.ANSWER: gives(zeros.astype(np.float32)), QuestionKind.FLOAT64: gives(zeros)}
        )

"""Results of converted models: right, wrong, and what the precision leaves undecided."""

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from harness.core.comparison.output_metrics import PrecisionError
from harness.core.comparison.tolerance import FLOORS, default_tolerance
from harness.core.records.precision import AS_IS, CONVERSIONS, IN_MODEL, made_for
from harness.core.records.verdict import Verdict
from harness.core.values.value import Sequence, Value, tensor
from harness.core.verdicts.compare import OutputComparison
from harness.core.verdicts.judge_output import explains
from harness.core.verdicts.precise import judge_precision

Floats = NDArray[np.float32]
RNG = np.random.default_rng(7)
GOLDEN: Floats = RNG.standard_normal(1000).astype(np.float32)


def judged(
    golden: Value | NDArray[np.generic],
    own: Value | NDArray[np.generic],
    actual: Value | NDArray[np.generic],
    precision: str = "float16",
    most_apart: float = math.inf,
) -> OutputComparison:
    """``own`` None: the CPU EP has no kernels."""
    values = [tensor(one) if isinstance(one, np.ndarray) else one for one in (golden, own, actual)]
    return judge_precision(
        [("y", values[0])],
        None if own is None else [("y", values[1])],
        [("y", values[2])],
        lambda dtype: default_tolerance(dtype, precision),
        precision,
        most_apart=most_apart,
    )


def rounded(values: Floats) -> Floats:
    return values.astype(np.float16).astype(np.float32)


def noisy(size: float) -> Floats:
    """The golden with an error of a relative size."""
    error = size * np.linalg.norm(GOLDEN) / 1000**0.5 * RNG.standard_normal(1000)
    spoilt: Floats = GOLDEN + error.astype(np.float32)
    return spoilt


def error_of(comparison: OutputComparison) -> PrecisionError:
    (row,) = comparison.outputs
    assert row.precision_error is not None
    return row.precision_error


def test_every_conversion_computes_in_something_known() -> None:
    assert set(IN_MODEL.values()) <= set(FLOORS)
    assert [made_for(name) for name in (*CONVERSIONS, AS_IS, "ep:f16")] == [*CONVERSIONS, AS_IS, AS_IS]


def test_the_three_numbers() -> None:
    found = judged(GOLDEN, rounded(GOLDEN), rounded(GOLDEN) * np.float32(1 + 2**-12))
    error = error_of(found)
    assert found.verdict is None
    assert error.cpu_error == pytest.approx(
        np.linalg.norm(rounded(GOLDEN) - GOLDEN) / np.linalg.norm(GOLDEN), rel=1e-6
    )
    assert error.ratio == pytest.approx((error.error or 0) / (error.cpu_error or 0))


def test_a_better_answer_than_the_cpus_is_right() -> None:
    found = judged(GOLDEN, rounded(GOLDEN), GOLDEN)
    assert (found.verdict, error_of(found).error, error_of(found).ratio) == (None, 0.0, 0.0)


def test_no_error_equals_that_of_a_cpu_ep_without_error() -> None:
    error = error_of(judged(GOLDEN, GOLDEN, GOLDEN))
    assert (error.error, error.cpu_error, error.ratio, error.unknown) == (0.0, 0.0, 1.0, "")
    error = error_of(judged(GOLDEN, GOLDEN, rounded(GOLDEN)))
    assert error.error
    assert (error.cpu_error, error.ratio, error.unknown) == (0.0, None, "the CPU EP loses nothing")


def test_as_far_off_as_the_cpu_on_its_side_is_right_where_no_tolerance_passes() -> None:
    own = noisy(0.05)
    actual = own + (noisy(0.03) - GOLDEN)
    found = judged(GOLDEN, own, actual, "bfloat16")
    assert (found.verdict, error_of(found).within, found.outputs[0].mismatched) == (None, True, 0)


@pytest.mark.parametrize("factor", [1.01, 0.5, -1.0, 0.0])
def test_a_fault_is_found_at_float16(factor: float) -> None:
    found = judged(GOLDEN, rounded(GOLDEN), GOLDEN * np.float32(factor))
    assert found.verdict is Verdict.MISMATCH
    assert found.outputs[0].mismatched > 0
    assert "relative error" in found.message
    assert not error_of(found).within


def test_one_wild_element_is_no_rounding() -> None:
    own = noisy(0.05)
    actual = own.copy()
    actual[3] += 2.0
    assert judged(GOLDEN, own, own, "bfloat16").verdict is None
    assert judged(GOLDEN, own, actual, "bfloat16").verdict is Verdict.MISMATCH


def test_nothing_passes_for_being_small() -> None:
    """Beside values of a thousandth, the absolute tolerance of float16 lets everything pass."""
    small = GOLDEN * np.float32(1e-4)
    assert judged(small, rounded(small), rounded(small)).verdict is None
    zero = judged(small, rounded(small), small * 0)
    assert (zero.verdict, zero.outputs[0].mismatched) == (Verdict.MISMATCH, 1000)
    assert "the tolerance is wider than the values" in zero.message
    without_cpu = judged(small, None, small * 0)
    assert (without_cpu.verdict, error_of(without_cpu).cpu_error) == (Verdict.MISMATCH, None)


def test_garbage_at_ratio_one_does_not_pass() -> None:
    found = judged(GOLDEN, noisy(0.9), noisy(0.9), "bfloat16")
    assert found.verdict is Verdict.NO_GOLDEN
    assert error_of(found).ratio == pytest.approx(1.0, abs=0.2)
    assert "the CPU EP itself is off by" in found.message


def test_what_is_lost_on_the_cpu_is_right_where_the_result_is() -> None:
    own = noisy(0.9)
    for actual in (GOLDEN, own, own * np.float32(1.001)):
        assert judged(GOLDEN, own, actual, "bfloat16").verdict is None
    assert judged(GOLDEN, own, own * np.float32(1.1), "bfloat16").verdict is Verdict.NO_GOLDEN
    # The CPU EP's zeros confirm nothing.
    assert judged(GOLDEN, GOLDEN * 0, GOLDEN * 0, "bfloat16").verdict is Verdict.NO_GOLDEN


def test_an_answer_of_zeros_has_no_relative_error() -> None:
    zero = GOLDEN * 0
    nothing = PrecisionError(error=0.0, cpu_error=0.0, ratio=1.0, measured=True, within=True, in_limits=True)
    found = judged(zero, zero, zero)
    assert (found.verdict, error_of(found)) == (None, nothing)
    small = error_of(judged(zero, zero, GOLDEN * np.float32(1e-9)))
    assert small == PrecisionError(cpu_error=0.0, measured=True, unknown="the golden is all 0")
    both = error_of(judged(zero, GOLDEN, GOLDEN * 2))
    assert (both.error, both.cpu_error, both.unknown) == (None, None, "the golden is all 0")
    assert both.ratio == pytest.approx(2.0)
    assert judged(zero, zero, GOLDEN).verdict is Verdict.MISMATCH
    assert judged(zero, GOLDEN, GOLDEN * 2).verdict is Verdict.NO_GOLDEN


def test_without_kernels_the_tolerance_of_the_precision_judges() -> None:
    bfloat16 = (GOLDEN.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    found = judged(GOLDEN, None, bfloat16, "bfloat16")
    assert (found.verdict, error_of(found).cpu_error, error_of(found).ratio) == (None, None, None)
    assert error_of(found).unknown == "the CPU EP has no answer of its own"
    assert judged(GOLDEN, None, GOLDEN * np.float32(1.2), "bfloat16").verdict is Verdict.MISMATCH


def test_infinity_by_overflow() -> None:
    large = GOLDEN.copy()
    large[:2] = 1e5
    with np.errstate(over="ignore"):
        overflown = rounded(large)
    assert judged(large, overflown, overflown).verdict is None
    assert judged(large, overflown, large).verdict is None  # computed in more than float16
    nan = overflown.copy()
    nan[7] = np.nan
    lost = judged(large, overflown, nan)
    assert (lost.verdict, "NaN or infinity" in lost.message) == (Verdict.NO_GOLDEN, True)
    assert judged(large, large, overflown).verdict is Verdict.NAN_MISMATCH
    assert judged(large, None, overflown).verdict is Verdict.NAN_MISMATCH


def test_numbers_beside_other_infinities_tell_nothing() -> None:
    large = GOLDEN.copy()
    large[:2] = 1e5
    with np.errstate(over="ignore"):
        overflown = rounded(large)
    here = error_of(judged(large, large, overflown))
    assert here == PrecisionError(
        cpu_error=0.0, measured=True, unknown="it has NaN or infinity in other places than the golden"
    )
    there = error_of(judged(large, overflown, large))
    assert (there.error, there.cpu_error, there.ratio) == (0.0, None, None)
    assert there.unknown.startswith("the CPU EP itself has NaN or infinity")
    same = error_of(judged(overflown, overflown, overflown))
    assert (same.error, same.cpu_error, same.ratio, same.unknown) == (0.0, 0.0, 1.0, "")


@pytest.mark.parametrize("actual", [GOLDEN[:5], GOLDEN.astype(np.float64), GOLDEN[:, None]])
def test_what_is_not_compared_has_a_reason(actual: NDArray[np.generic]) -> None:
    for own in (None, GOLDEN):
        error = error_of(judged(GOLDEN, own, actual))
        assert error == PrecisionError(unknown="it has another shape or type than the golden")


def test_exact_floats_have_the_three_numbers_too() -> None:
    golden = np.array([1, 2, 3], ml_dtypes.float8_e5m2)
    off = np.array([1, 2, 4], ml_dtypes.float8_e5m2)
    assert error_of(judged(golden, golden, golden)).ratio == 1.0
    wrong = judged(golden, off, off)
    assert error_of(wrong).ratio == 1.0
    assert error_of(wrong).error == pytest.approx(1 / np.sqrt(14))


def test_integers_are_those_of_the_golden_or_of_the_cpu() -> None:
    golden, own = np.array([1, 2, 3, 4]), np.array([1, 9, 3, 7])
    assert judged(golden, own, golden).outputs[0].precision_error is None
    for right in (golden, own, np.array([1, 9, 3, 4])):
        assert judged(golden, own, right).verdict is None
    assert judged(golden, own, np.array([1, 2, 3, 5])).verdict is Verdict.NO_GOLDEN
    assert judged(golden, golden, np.array([1, 2, 3, 5])).verdict is Verdict.MISMATCH
    assert judged(golden, None, np.array([1, 2, 3, 5])).verdict is Verdict.MISMATCH


def test_how_many_elements_there_are_may_hang_on_the_precision() -> None:
    golden, own = np.array([1, 2, 3]), np.array([1, 2])
    assert judged(golden, own, own).verdict is None
    assert judged(golden, own, golden).verdict is None
    assert judged(golden, own, np.array([1])).verdict is Verdict.NO_GOLDEN
    assert judged(golden, golden, own).verdict is Verdict.SHAPE_MISMATCH
    assert judged(golden, None, own).verdict is Verdict.SHAPE_MISMATCH
    assert judged(GOLDEN, rounded(GOLDEN), GOLDEN.astype(np.float64)).verdict is Verdict.DTYPE_MISMATCH


def test_parts_of_a_sequence_and_empty_tensors() -> None:
    def of(*arrays: Floats) -> Value:
        return Sequence(items=tuple(map(tensor, arrays)))

    right = of(GOLDEN, GOLDEN[:0])
    assert judged(right, of(rounded(GOLDEN), GOLDEN[:0]), right).verdict is None
    wrong = judged(right, of(rounded(GOLDEN), GOLDEN[:0]), of(GOLDEN * 2, GOLDEN[:0]))
    assert [row.name for row in wrong.outputs] == ["y[0]", "y[1]"]
    assert wrong.outputs[1].precision_error == PrecisionError(unknown="it has no elements")
    assert (wrong.verdict, wrong.outputs[1].mismatched) == (Verdict.MISMATCH, 0)
    assert judged(right, None, of(GOLDEN)).verdict is Verdict.SHAPE_MISMATCH


def test_a_wrong_output_goes_before_one_that_cannot_judge() -> None:
    good, lost = tensor(GOLDEN), tensor(noisy(0.9))
    found = judge_precision(
        [("a", good), ("b", good)],
        [("a", lost), ("b", good)],
        [("a", tensor(noisy(0.9))), ("b", tensor(GOLDEN * 2))],
        lambda dtype: default_tolerance(dtype, "bfloat16"),
        "bfloat16",
    )
    assert found.verdict is Verdict.MISMATCH
    assert found.message.startswith("output 'b'")
    missing = judge_precision([("a", good)], None, [("b", good)], lambda _: FLOAT16, "float16")
    assert missing.verdict is Verdict.SHAPE_MISMATCH
    why = {row.precision_error and row.precision_error.unknown for row in missing.outputs}
    assert why == {"it has other outputs than asked for"}


def test_the_numbers_of_a_record_tell_whether_the_precision_explains_an_error() -> None:
    assert explains(PrecisionError(error=0.007, cpu_error=3e-4), "float16")
    assert not explains(PrecisionError(error=0.01, cpu_error=3e-4), "float16")
    assert not explains(PrecisionError(error=0.6, cpu_error=0.4), "bfloat16")
    assert not explains(PrecisionError(error=0.2, cpu_error=0.9), "bfloat16")


FLOAT16 = default_tolerance("float32", "float16")


def nearest_half_zero(values: Floats) -> Floats:
    """The smaller half of the elements as zeros."""
    spoilt = values.copy()
    spoilt[np.argsort(np.abs(values))[: values.size // 2]] = 0
    return spoilt


def one_sign(values: Floats) -> Floats:
    """A typical element with the other sign."""
    spoilt = values.copy()
    spoilt[np.argsort(np.abs(values))[values.size // 2]] *= -1
    return spoilt


@pytest.mark.parametrize("spoil", [nearest_half_zero, one_sign])
def test_what_weights_of_few_bits_cost_excuses_no_other_error(spoil: Callable[[Floats], Floats]) -> None:
    golden = RNG.standard_normal(1000).astype(np.float32)
    own = (golden + 0.2 * RNG.standard_normal(1000)).astype(np.float32)
    most_apart = CONVERSIONS["int4-weights"].most_apart
    excused = judged(golden, own, spoil(own), "float8")
    assert excused.verdict is None
    found = judged(golden, own, spoil(own), "float8", most_apart)
    assert found.verdict is Verdict.MISMATCH
    assert error_of(found).far


def test_another_way_to_compute_the_same_weights_is_right() -> None:
    golden = RNG.standard_normal(1000).astype(np.float32)
    own = (golden + 0.2 * RNG.standard_normal(1000)).astype(np.float32)
    most_apart = CONVERSIONS["int4-weights"].most_apart
    in_int8 = (own + 0.02 * RNG.standard_normal(1000)).astype(np.float32)
    for actual in (own, rounded(own), in_int8):
        found = judged(golden, own, actual, "float8", most_apart)
        assert found.verdict is None
        assert not error_of(found).far
    exact = judged(own, own, rounded(own), "float8", most_apart)  # the precision happens to cost nothing
    assert exact.verdict is None


@pytest.mark.parametrize(("wrong", "verdict"), [(8, Verdict.NO_GOLDEN), (100, Verdict.MISMATCH)])
def test_one_class_that_changes_on_the_cpu_excuses_few_others(wrong: int, verdict: Verdict) -> None:
    golden = np.arange(1000) % 7
    own, actual = golden.copy(), golden.copy()
    own[0] += 1
    actual[1 : 1 + wrong] += 1
    assert judged(golden, own, actual).verdict is verdict


@pytest.mark.parametrize(
    ("actual", "verdict"),
    [
        (np.zeros_like(GOLDEN), Verdict.MISMATCH),
        (-GOLDEN, Verdict.MISMATCH),
        (noisy(0.1), Verdict.NO_GOLDEN),
    ],
)
def test_one_infinity_of_the_cpu_excuses_no_lost_answer(actual: Floats, verdict: Verdict) -> None:
    own = rounded(GOLDEN)
    own[0] = np.inf
    assert judged(GOLDEN, own, actual).verdict is verdict


def test_an_overflow_may_saturate() -> None:
    golden, own, actual = GOLDEN.copy(), rounded(GOLDEN), rounded(GOLDEN)
    golden[0], own[0], actual[0] = 1e6, np.inf, 65504
    assert judged(golden, own, actual).verdict is Verdict.NO_GOLDEN

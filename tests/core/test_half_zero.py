"""Answers that pass as zeros in half of the golden would."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from harness.core.comparison.output_kind import Quantized
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.noise.noise import NoiseRule
from harness.core.values.value import Tensor, tensor
from harness.core.verdicts.compare import compare_outputs
from harness.core.verdicts.half_zero import half_zero, passes_for_half, passes_for_half_of_own
from harness.core.verdicts.judge_output import judge_row
from harness.core.verdicts.precise import precision_row

RNG = np.random.default_rng(5)
GOLDEN = RNG.standard_normal(2000)
FLOAT16 = Policy(precision="float16")


def off_by(part: float, of: NDArray[np.float64] = GOLDEN) -> Tensor:
    return tensor((of + part * RNG.standard_normal(of.shape)).astype(np.float32))


def floats(values: NDArray[np.float64]) -> Tensor:
    return tensor(values.astype(np.float32))


def noise_of(spread: float | NDArray[np.float64]) -> NoiseRule:
    return NoiseRule(precision="float16", spreads={"y": np.broadcast_to(spread, GOLDEN.shape).astype(float)})


def row_of(*compared: Any) -> OutputMetrics:
    return compare_outputs(*compared).outputs[0]


def is_undecided(actual: Tensor, noise: NoiseRule | None) -> bool:
    golden = floats(GOLDEN)
    row = row_of("y", golden, actual, FLOAT16.tolerance_for, None, noise)
    return passes_for_half(row, golden, FLOAT16, None, noise)


def test_the_lesser_half_of_what_is_not_zero_becomes_zero() -> None:
    found = half_zero(tensor(np.array([0, 0, -3, 4, 1, np.inf, 2], ml_dtypes.bfloat16)))
    assert found is not None
    assert found.dtype == "bfloat16"
    assert found.array.tolist() == [0, 0, -3, 4, 0, np.inf, 0]


@pytest.mark.parametrize(
    "values",
    [
        np.array([0.97, 0.02, 0.001, 0.001], np.float32),
        np.zeros(4, np.float32),
        np.array([], np.float32),
        np.array([1, 2, 3]),
    ],
)
def test_where_half_hardly_matters_nothing_is_made(values: NDArray[np.generic]) -> None:
    assert half_zero(tensor(values)) is None


def test_an_answer_that_is_as_far_off_as_half_and_passes_is_undecided() -> None:
    assert is_undecided(off_by(0.2), noise_of(0.14))
    wrong = half_zero(floats(GOLDEN))
    assert wrong is not None
    assert is_undecided(wrong, noise_of(0.14))


def test_an_answer_near_its_golden_is_decided_whatever_the_noise() -> None:
    assert not is_undecided(off_by(0.02), noise_of(0.14))
    assert not is_undecided(floats(GOLDEN), noise_of(0.14))


def test_an_answer_that_fails_is_no_matter() -> None:
    assert not is_undecided(off_by(0.9), noise_of(0.14))


def test_what_finds_zeros_decides() -> None:
    assert not is_undecided(off_by(0.07), noise_of(0.03))
    few = np.arange(GOLDEN.size) < 40
    moved, noise = floats(GOLDEN + 1.5 * few), noise_of(np.where(few, 2.0, 1e-3))
    row = row_of("y", floats(GOLDEN), moved, FLOAT16.tolerance_for, None, noise)
    assert judge_row(row, FLOAT16).fault is None
    assert not is_undecided(moved, noise)
    assert not is_undecided(off_by(0.2), None)


def test_a_coarse_step_of_a_quantization_excuses_zeros() -> None:
    kind, golden = Quantized(scale=np.array(1.0)), floats(np.round(GOLDEN * 0.8))
    actual = floats(golden.array + np.where(np.arange(golden.array.size) % 3, 0, 1))
    rule = Policy()
    row = row_of("y", golden, actual, rule.tolerance_for, kind)
    assert passes_for_half(row, golden, rule, kind)
    fine = floats(np.round(GOLDEN * 8))
    row = row_of("y", fine, floats(fine.array + 1), rule.tolerance_for, kind)
    assert not passes_for_half(row, fine, rule, kind)


@pytest.mark.parametrize(
    ("cost", "apart", "undecided"),
    [(0.2, 0.2, True), (0.2, 0.02, False), (0.05, 0.1, False), (0.01, 0.0, False)],
)
def test_a_conversion_that_costs_a_fifth_excuses_zeros(cost: float, apart: float, *, undecided: bool) -> None:
    golden, rule = floats(GOLDEN), Policy(precision="bfloat16", converted=True)
    own = off_by(cost)
    actual = off_by(apart, own.array.astype(np.float64))
    row = precision_row("y", golden, own, actual, rule, np.inf)
    assert passes_for_half_of_own(row, golden, own, actual, rule, np.inf) is undecided

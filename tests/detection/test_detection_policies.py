"""Policies pass and fail where their own definitions say so."""

import numpy as np
import pytest

from benchmarks.detection.policies import CALIBRATED, POLICIES, TABLE, Pair, Spread
from harness.core.values.value import Array, tensor

FAILS = {policy.name: policy.fails for policy in POLICIES}
EVERY = sorted(FAILS)


def pair(golden: Array, result: Array, noise: float | None = None) -> Pair:
    spread: Spread | None = None if noise is None else {"y": np.full(golden.shape, noise)}
    outputs = ((("y", tensor(array)),) for array in (golden, result))
    return Pair(golden=next(outputs), result=next(outputs), precision="float32", spread=spread)


def numbers(*values: float) -> Array:
    return np.array(values, np.float32)


@pytest.mark.parametrize("name", EVERY)
def test_equal_results_pass_everywhere(name: str) -> None:
    assert not FAILS[name](pair(numbers(1, 2), numbers(1, 2), noise=1e-7))


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize(
    "result", [numbers(1, 2, 3), numbers(1, 3), numbers(1, np.nan), np.array([1, 2], np.float64)]
)
def test_gross_differences_fail_everywhere(name: str, result: Array) -> None:
    assert FAILS[name](pair(numbers(1, 2), result, noise=1e-7))


@pytest.mark.parametrize("name", EVERY)
def test_a_missing_output_fails_everywhere(name: str) -> None:
    one = pair(numbers(1), numbers(1), noise=1e-7)
    assert FAILS[name](Pair(golden=one.golden, result=(), precision="float32", spread=one.spread))


@pytest.mark.parametrize("name", EVERY)
def test_integers_that_are_off_by_one_fail_everywhere(name: str) -> None:
    assert FAILS[name](pair(np.array([1, 2]), np.array([1, 3])))


@pytest.mark.parametrize(
    ("name", "error", "fails"),
    [
        # At 100: rtol * 100 + atol, but for Polygraphy the larger one of the two.
        ("Polygraphy", 0.9e-3, False),
        ("Polygraphy", 1.1e-3, True),
        ("PyTorch assert_close", 1.3e-4, False),
        ("PyTorch assert_close", 1.6e-4, True),
        (TABLE, 0.9e-2, False),
        (TABLE, 1.1e-2, True),
        ("onnxruntime Python backend tests", 0.09, False),
        ("onnxruntime Python backend tests", 0.11, True),
        ("ONNX backend tests", 0.09, False),
        ("ONNX backend tests", 0.11, True),
    ],
)
def test_fixed_tolerances(name: str, error: float, *, fails: bool) -> None:
    assert FAILS[name](pair(numbers(100), numbers(100 + error))) is fails


def test_nan_for_nan_passes_but_where_the_default_is_another() -> None:
    nan = numbers(1, np.nan)
    failing = {name for name in EVERY if FAILS[name](pair(nan, nan, noise=1e-7))}
    assert failing == {"Polygraphy", "PyTorch assert_close"}


@pytest.mark.parametrize(
    ("multiple", "fails"), [(2.9, False), (3.1, True)], ids=["below the limit", "above the limit"]
)
def test_calibrated_goes_by_the_rms(multiple: float, *, fails: bool) -> None:
    noise = 2.0**-10
    golden = np.ones(10_000, np.float32)
    result = golden + np.float32(multiple * noise)
    assert FAILS[CALIBRATED](pair(golden, result, noise=noise)) is fails


@pytest.mark.parametrize(("multiple", "fails"), [(31, False), (33, True)])
def test_calibrated_goes_by_the_largest_element(multiple: float, *, fails: bool) -> None:
    golden, noise = np.ones(1000, np.float32), 2.0**-10
    result = golden.copy()
    result[7] += np.float32(multiple * noise)
    assert FAILS[CALIBRATED](pair(golden, result, noise=noise)) is fails


def test_calibrated_without_noise_is_the_table() -> None:
    for error in (0.9e-2, 1.1e-2):
        one = pair(numbers(100), numbers(100 + error))
        assert FAILS[CALIBRATED](one) is FAILS[TABLE](one)

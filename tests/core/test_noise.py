"""Comparisons that know the noise of the model."""

import numpy as np
import pytest

from harness.core.comparison import wording
from harness.core.comparison.noise_limits import NoiseLimits
from harness.core.comparison.policy import JudgeBy, Policy
from harness.core.comparison.tolerance import DEFAULTS, Tolerance
from harness.core.noise.noise import NoiseRule
from harness.core.records.verdict import Verdict
from harness.core.values.value import Array, tensor
from harness.core.verdicts.compare import OutputComparison, compare_all

GOLDEN = np.ones(100, np.float32)
SPREAD = np.full(100, 1e-6)
LIMITS = NoiseLimits(rms=4.0, max=32.0)


def compared(
    actual: Array, judge_by: JudgeBy = "noise", tolerance: Tolerance = DEFAULTS["float32"]
) -> OutputComparison:
    rule = NoiseRule(precision="float32", spreads={"y": SPREAD})
    golden = (("y", tensor(GOLDEN)),)
    policy = Policy(judge_by=judge_by, limits=LIMITS, fixed=tolerance)
    return compare_all(golden, (("y", tensor(actual)),), policy.tolerance_for, noise=rule, policy=policy)


def test_noise_is_recorded_where_a_tolerance_judges() -> None:
    found = compared(GOLDEN + np.float32(1e-3), judge_by="table")
    assert found.verdict is Verdict.MISMATCH
    (row,) = found.outputs
    assert row.noise is not None
    assert row.noise.rms == pytest.approx(1e3, rel=1e-3)
    assert row.noise.rms_limit is None
    assert row.mismatched == 100


def test_limits_judge_in_place_of_a_tolerance() -> None:
    found = compared(GOLDEN + np.float32(2e-6), tolerance=Tolerance(rtol=0.0, atol=0.0))
    assert found.verdict is None
    (row,) = found.outputs
    assert row.noise is not None
    assert row.noise.rms_limit == pytest.approx(4.4)
    assert row.noise.max_limit == 32.0
    assert row.mismatched == 0
    assert row.headroom is not None
    assert 0 < row.headroom < 1


def test_one_element_far_off_fails() -> None:
    actual = GOLDEN.copy()
    actual[42] += np.float32(35e-6)
    found = compared(actual)
    assert found.verdict is Verdict.MISMATCH
    assert "at (42,)" in found.message
    assert "(limits 4.4 and 32)" in found.message
    (row,) = found.outputs
    assert row.mismatched == 1
    assert row.headroom == pytest.approx(35 / 32, rel=0.02)


def test_all_elements_somewhat_off_fail() -> None:
    found = compared(GOLDEN + np.float32(6e-6))
    assert found.verdict is Verdict.MISMATCH
    (row,) = found.outputs
    assert row.mismatched == 1
    assert row.headroom is not None
    assert row.headroom > 1


def test_equal_bits_have_no_noise() -> None:
    (row,) = compared(GOLDEN.copy()).outputs
    assert row.noise is None
    assert row.headroom == 0.0


def test_nan_fails_before_noise_is_looked_at() -> None:
    actual = GOLDEN.copy()
    actual[0] = np.nan
    found = compared(actual)
    assert found.verdict is Verdict.NAN_MISMATCH
    assert found.outputs[0].noise is None


def test_an_output_without_a_spread_is_left_to_the_tolerance() -> None:
    rule = NoiseRule(precision="float32", spreads={})
    golden, actual = (("y", tensor(GOLDEN)),), (("y", tensor(GOLDEN + np.float32(1e-3))),)
    found = compare_all(golden, actual, lambda _: DEFAULTS["float32"], noise=rule)
    assert found.verdict is Verdict.MISMATCH
    assert found.outputs[0].noise is None


def test_both_have_to_fail_where_a_profile_says_so() -> None:
    within = compared(GOLDEN + np.float32(3e-6), "both", Tolerance(rtol=0.0, atol=1e-6))
    assert within.verdict is None
    assert within.outputs[0].mismatched == 0
    assert within.outputs[0].noise is not None
    assert within.outputs[0].noise.rms_limit == pytest.approx(4.4)
    beyond = compared(GOLDEN + np.float32(1e-3), "both")
    assert beyond.verdict is Verdict.MISMATCH
    assert "x the model's rounding noise" in beyond.message
    assert compared(GOLDEN + np.float32(5e-5), "both").verdict is None  # within the table


def test_a_message_has_the_digits_that_tell_an_error_from_its_limit() -> None:
    message = compared(GOLDEN + np.float32(4.4024e-6)).message
    assert "the error is 4.41 x" in message
    assert "(limits 4.4 and 32)" in message


def test_small_elements_count_like_large_ones() -> None:
    golden = np.concatenate([np.ones(50, np.float32), np.full(50, 1e-6, np.float32)])
    rule = NoiseRule(precision="float32", spreads={"y": 1e-7 * golden.astype(np.float64)})
    actual = golden * np.where(np.arange(100) < 50, 1, 1 + 2e-6).astype(np.float32)
    found = compare_all(
        (("y", tensor(golden)),), (("y", tensor(actual)),), lambda _: DEFAULTS["float32"], noise=rule
    )
    noise = found.outputs[0].noise
    assert noise is not None
    assert noise.rms < 1e-3
    assert noise.max == pytest.approx(20, rel=0.05)
    assert noise.each == pytest.approx(20 / np.sqrt(2), rel=0.05)
    message = wording.beyond_noise("y", noise, 3.3, 32.0)
    assert "14.5 x if all elements count alike" in message

"""Quantized outputs: differences in steps of their scale."""

from typing import Any

import numpy as np
import pytest

from harness.core.comparison.output_kind import Quantized
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance, default_tolerance
from harness.core.noise.noise import NoiseRule
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from harness.core.verdicts.compare import OutputComparison, compare_outputs


def tolerance_for(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def judge(golden: Any, actual: Any, scale: Any, granted: float = 0.0) -> OutputComparison:
    output_kind = Quantized(scale=np.asarray(scale, np.float64))
    sides = (tensor(np.asarray(golden)), tensor(np.asarray(actual)))
    return compare_outputs(
        "y", *sides, tolerance_for, output_kind, policy=Policy(steps=granted, judge_by="table")
    )


@pytest.mark.parametrize(("granted", "verdict"), [(0, Verdict.MISMATCH), (1, Verdict.MISMATCH), (2, None)])
def test_integers_are_a_step_apart(granted: int, verdict: Verdict | None) -> None:
    found = judge(np.array([1, -128, 127], np.int8), np.array([2, -126, 127], np.int8), 1.0, granted)
    (row,) = found.outputs
    assert found.verdict is verdict
    assert row.details is not None
    assert row.details.steps == 2
    assert row.mismatched == {0: 2, 1: 2, 2: 0}[granted]
    assert row.headroom == {0: None, 1: None, 2: 1.0}[granted]
    if verdict:
        assert "up to 2 steps of its quantization" in found.message
        assert ("1 granted" in found.message) is (granted == 1)


def test_floats_are_counted_in_their_scale() -> None:
    golden = (np.arange(-4, 4) * 0.05).astype(np.float32)
    off = golden + np.float32(0.05)
    assert judge(golden, off, 0.05).verdict is Verdict.MISMATCH
    found = judge(golden, off, 0.05, 1)
    assert found.verdict is None  # a rounding more than a step is what the tolerance is for
    assert found.outputs[0].details is not None
    assert found.outputs[0].details.steps == pytest.approx(1.0, abs=1e-3)
    assert judge(golden, golden + np.float32(0.06), 0.05, 1).verdict is Verdict.MISMATCH


def test_each_channel_has_its_scale() -> None:
    golden = np.zeros((1, 2, 2), np.float32)
    off = np.array([0.1, 10.0], np.float32).reshape(1, 2, 1) + golden
    assert judge(golden, off, [[[0.1], [10.0]]], 1).verdict is None
    assert judge(golden, off, [[[0.1], [1.0]]], 1).verdict is Verdict.MISMATCH


def test_no_step_excuses_nan() -> None:
    golden, actual = np.array([1.0, 2.0], np.float32), np.array([1.0, np.nan], np.float32)
    found = judge(golden, actual, 0.5, 4)
    assert found.verdict is Verdict.NAN_MISMATCH
    assert found.outputs[0].mismatched == 1


def test_a_scale_that_does_not_fit_is_ignored() -> None:
    found = judge(np.zeros(3, np.float32), np.ones(3, np.float32), [1.0, 2.0], 1)
    assert found.verdict is Verdict.MISMATCH
    assert found.outputs[0].details is not None
    assert found.outputs[0].details.steps is None


def test_equal_bits_are_no_step_apart() -> None:
    assert judge(np.zeros(3, np.int8), np.zeros(3, np.int8), 1.0).outputs[0].details is None


def test_a_granted_step_goes_before_limits_of_noise() -> None:
    golden = (np.arange(-4, 4) * 0.05).astype(np.float32)
    off = golden + np.float32(0.05)
    noise = NoiseRule(precision="float32", spreads={"y": np.full(8, 1e-7)})
    output_kind = Quantized(scale=np.array(0.05))
    for granted, verdict in ((0.0, Verdict.MISMATCH), (1.0, None)):
        policy = Policy(judge_by="noise", steps=granted)
        found = compare_outputs("y", tensor(golden), tensor(off), tolerance_for, output_kind, noise, policy)
        assert found.verdict is verdict
        assert found.outputs[0].noise is not None

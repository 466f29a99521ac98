"""The laws between figures and goldens hold for any answer, and find an invented figure."""

from typing import Any

import ml_dtypes
import msgspec
import numpy as np
import pytest

from harness.annex.conformance.verify.against import leaf_faults
from harness.annex.conformance.verify.figures_check import figure_faults
from harness.annex.conformance.verify.frozen_cases import FrozenLeaf, frozen_leaf
from harness.core.comparison.output_kind import Quantized
from harness.core.comparison.output_metrics import OutputDetails, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.noise.noise import NoiseRule
from harness.core.values.value import Tensor
from harness.core.verdicts.compare import compare_outputs

POLICY = Policy(fixed=Tolerance(rtol=1e-4, atol=1e-5))
TYPES: dict[str, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
    "int64": np.int64,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.bool_,
}


def row_and_leaf(
    golden: Tensor, actual: Tensor, scale: np.ndarray[Any, Any] | None = None, *, noisy: bool = False
) -> tuple[OutputMetrics, FrozenLeaf]:
    """Return the row of an answer, and what is frozen with its golden."""
    kind = None if scale is None else Quantized(scale=scale)
    spread = np.abs(golden.array.astype(np.float64)) * 1e-7 + 1e-9 if noisy else None
    rule = None if spread is None else NoiseRule(precision="float32", spreads={"y": spread})
    row, right = (
        compare_outputs("y", golden, each, POLICY.tolerance_for, kind, noise=rule, policy=POLICY).outputs[0]
        for each in (actual, golden)
    )
    return row, frozen_leaf(right, golden, spread, kind)


def faults(row: OutputMetrics, leaf: FrozenLeaf) -> list[str]:
    return [*figure_faults(row, POLICY), *leaf_faults(row, leaf, POLICY)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("seed", range(12))
def test_any_measured_answer_keeps_the_laws(dtype: str, seed: int) -> None:
    numbers = np.random.default_rng(seed)
    shape = [(), (1,), (3, 5), (1000,), (0,), (2, 3, 4)][seed % 6]
    golden = (numbers.normal(size=shape) * 10.0 ** numbers.integers(-3, 3)).astype(TYPES[dtype])
    error = numbers.normal(size=shape) * 10.0 ** numbers.integers(-9, 1)
    actual = (golden.astype(np.float64) * (1 + error) + (seed % 3) * 1e-3 * error).astype(TYPES[dtype])
    if golden.size > 4 and dtype == "float32":
        golden.flat[0] = actual.flat[0] = np.nan
        golden.flat[1] = 0
    is_float = "float" in dtype
    quantized = np.ones(()) if "int" in dtype and dtype != "int64" else None
    row, leaf = row_and_leaf(
        Tensor(dtype=dtype, array=golden),
        Tensor(dtype=dtype, array=actual),
        quantized,
        noisy=is_float and seed % 2 == 0,
    )
    assert faults(row, leaf) == []


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e200, 1e308])
def test_values_at_the_ends_of_float64_keep_the_laws(size: float) -> None:
    golden = np.array([size, -size / 2, 0, np.inf, size / 3])
    actual = golden * np.array([1 + 1e-9, 1, 1, 1, 1 - 1e-6])
    actual[2] = 0.0
    row, leaf = row_and_leaf(Tensor(dtype="float64", array=golden), Tensor(dtype="float64", array=actual))
    assert faults(row, leaf) == []


@pytest.mark.parametrize("scale", [np.ones(()), np.array([[1.0], [1.5]])])
def test_invented_steps_are_found(scale: np.ndarray[Any, Any]) -> None:
    golden = Tensor(dtype="uint8", array=np.arange(200, dtype=np.uint8).reshape(2, 100))
    actual = Tensor(dtype="uint8", array=golden.array + np.uint8(40))
    row, leaf = row_and_leaf(golden, actual, scale)
    assert faults(row, leaf) == []
    for steps in (1.0, 1.001, 0.5, 20.0, 41.0):
        invented = _with_steps(row, steps)
        assert any("steps" in what for what in faults(invented, leaf))


def test_steps_of_a_dequantized_output() -> None:
    golden = Tensor(dtype="float32", array=(np.arange(64) * 0.05).astype(np.float32))
    actual = Tensor(dtype="float32", array=golden.array + np.float32(0.05))
    row, leaf = row_and_leaf(golden, actual, np.array(0.05))
    assert faults(row, leaf) == []
    assert faults(_with_steps(row, 0.2), leaf) != []
    far = Tensor(dtype="float32", array=golden.array + np.float32(0.2))
    row, leaf = row_and_leaf(golden, far, np.array(0.05))
    assert faults(row, leaf) == []
    assert faults(_with_steps(row, 1.0), leaf) != []


def test_a_granted_step_is_that_of_the_profile() -> None:
    golden = Tensor(dtype="uint8", array=np.arange(50, dtype=np.uint8))
    row, leaf = row_and_leaf(golden, Tensor(dtype="uint8", array=golden.array + np.uint8(1)), np.ones(()))
    assert row.details is not None
    assert row.details.granted == POLICY.steps
    assert faults(row, leaf) == []
    details = OutputDetails(steps=row.details.steps, granted=2.0)
    assert faults(_replaced(row, details=details), leaf) != []


def _with_steps(row: OutputMetrics, steps: float) -> OutputMetrics:
    return _replaced(row, details=OutputDetails(steps=steps))


def _replaced(row: OutputMetrics, details: OutputDetails) -> OutputMetrics:
    return msgspec.structs.replace(row, details=details)

"""Subnormal numbers that became zero."""

import numpy as np
import pytest

from harness.core.comparison.policy import Policy
from harness.core.comparison.subnormals import flushed
from harness.core.comparison.tolerance import DEFAULTS
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from harness.core.verdicts.compare import compare_all
from harness.core.verdicts.judge_output import judge_row


@pytest.mark.parametrize(
    ("golden", "actual", "dtype", "found"),
    [
        (1e-40, 0.0, "float32", True),
        (0.0, -1e-40, "float32", True),
        (1e-37, 0.0, "float32", False),
        (1e-40, 2e-40, "float32", False),
        (0.0, 0.0, "float32", False),
        (2e-5, 0.0, "float16", True),
        (7e-5, 0.0, "float16", False),
        (1e-40, 0.0, "bfloat16", True),
        (1e-40, 0.0, "complex64", False),
        (np.nan, 0.0, "float32", False),
    ],
)
def test_only_what_is_subnormal_is_flushed(golden: float, actual: float, dtype: str, *, found: bool) -> None:
    assert flushed(np.array([golden]), np.array([actual]), dtype).tolist() == [found]


def test_an_output_of_flushed_numbers_is_right_and_says_so() -> None:
    golden = np.full(10, 1e-40, np.float32)
    found = compare_all(
        (("y", tensor(golden)),), (("y", tensor(np.zeros_like(golden))),), lambda _: DEFAULTS["float32"]
    )
    assert found.verdict is None
    (row,) = found.outputs
    assert row.details is not None
    assert row.details.flushed == 10
    assert not row.is_lost
    assert judge_row(row, Policy()).fault is None


@pytest.mark.parametrize(("zeros", "right"), [(1000, False), (900, False), (20, True)])
def test_probabilities_of_float16_that_are_flushed_are_no_answer(*, zeros: int, right: bool) -> None:
    """Those of 50,000 words are below the smallest normal number, 6e-5."""
    golden = np.full(1000, 2e-5, np.float16)
    actual = golden.copy()
    actual[:zeros] = 0
    found = compare_all((("y", tensor(golden)),), (("y", tensor(actual)),), lambda _: DEFAULTS["float16"])
    (row,) = found.outputs
    assert row.details is not None
    assert row.details.flushed == zeros
    if right:
        assert found.verdict is None
    else:
        assert found.verdict is Verdict.MISMATCH
        assert "subnormal numbers that are" in found.message
        assert judge_row(row, Policy()).fault is Verdict.MISMATCH

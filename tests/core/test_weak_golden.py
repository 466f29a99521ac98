"""Which goldens cannot tell a right answer from a wrong one."""

import numpy as np
import pytest

from harness.core.comparison.tolerance import default_tolerance
from harness.core.comparison.weak_golden import holds_nan, is_faint, why_weak
from harness.core.values.value import Sequence, Tensor, Value, tensor


def floats(*values: float) -> Tensor:
    return tensor(np.array(values, np.float32))


def why(*outputs: Value, data_sets: int = 1) -> str:
    named = tuple((f"y{number}", value) for number, value in enumerate(outputs))
    return why_weak((named,) * data_sets, lambda dtype: default_tolerance(dtype, "float32"))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (floats(), "empty"),
        (floats(3), "a single element"),
        (floats(0, 0, -0.0), "zero"),
        (floats(np.nan, np.nan), "NaN or infinite"),
        (floats(np.nan, np.inf), "NaN or infinite"),
        (floats(0.5, 0.5), "constant"),
        (floats(1e-6, -9e-6), "below the absolute tolerance of 1e-05"),
        (tensor(np.array([2, 2])), "constant"),
        (tensor(np.array([True, True])), "constant"),
        (tensor(np.array(["a", "a"])), "constant"),
        (None, "empty"),
        (Sequence(items=(floats(1, 1), floats(2, 2))), "constant"),
    ],
)
def test_outputs_that_most_wrong_answers_look_like(value: Value, reason: str) -> None:
    assert why(value).endswith(reason)
    assert why(value, data_sets=2).endswith(reason)
    assert why(value, floats(1, 2)) == ""


@pytest.mark.parametrize(
    "value",
    [floats(1, 2), floats(0, np.nan, 1), tensor(np.array([0, 1])), tensor(np.array(["a", "b"]))],
)
def test_outputs_that_tell(value: Value) -> None:
    assert why(value) == ""


def test_the_reasons_of_several_outputs_are_counted() -> None:
    assert why(floats(0, 0), floats(0, 0)) == "all outputs of the golden are zero"
    assert why(floats(0, 0), floats(7)) == "of the golden's outputs, 1 a single element, 1 zero"
    assert why() == "the golden has no outputs"


@pytest.mark.parametrize(
    ("outputs", "faint"),
    [
        ([floats(9e-3, 1e-9)], True),
        ([floats(9e-3), floats(np.nan, -1e-3), floats()], True),
        ([floats(9e-3), floats(-0.02, 1e-9)], False),
        ([floats(9e-3, np.inf)], False),
        ([floats(9e-3), tensor(np.array([1, 2]))], True),
        ([tensor(np.array([1, 2]))], False),
        ([floats(1, 0, 1 - 1e-6, 1e-7)], True),
        ([floats(1, 0, 0.999)], False),
        ([floats(1, 0, -1)], False),
        ([], False),
    ],
)
def test_floats_that_are_all_small_or_all_zero_or_one_are_faint(outputs: list[Value], *, faint: bool) -> None:
    assert is_faint([tuple((f"y{number}", value) for number, value in enumerate(outputs))]) is faint


def test_a_single_nan_is_found() -> None:
    assert holds_nan([(("y", floats(1, np.nan)),)])
    assert not holds_nan([(("y", floats(1, np.inf)), ("z", tensor(np.array(["nan"]))))])

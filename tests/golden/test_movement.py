"""What counts as another value, and its message."""

import numpy as np
import pytest

from harness.core.values.value import Sequence, Tensor, Value, tensor
from harness.corpus.model.port import ValueType
from harness.golden.movement import movements
from tests.golden.typed_cases import ONE_CASE, case_of_types

TENSOR = ValueType(kind="tensor")
FLOATS = np.array([1.0, -0.0, np.nan, np.inf], np.float32)


def floats(*numbers: float) -> Tensor:
    return tensor(np.array(numbers, np.float32))


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (tensor(FLOATS), tensor(FLOATS.copy())),
        (floats(0.0), floats(-0.0)),
        (floats(np.nan), floats(-np.nan)),
        (tensor(np.zeros((0, 2))), tensor(np.zeros((0, 2)))),
        (tensor(np.array(["a", ""])), tensor(np.array(["a", ""]))),
        (None, None),
        (Sequence(items=()), Sequence(items=())),
    ],
)
def test_the_same_values_have_not_moved(before: Value, now: Value) -> None:
    assert list(movements(ONE_CASE, [(("out/0", before),)], [(("out/0", now),)])) == []


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        (floats(1.0), floats(np.nextafter(np.float32(1), np.float32(2))), ""),
        (floats(1e-30), floats(2e-30), "the tolerance is wider than the values"),
        (floats(1.0), floats(1.1), "allowed"),
        (floats(np.nan), floats(1.0), "NaN"),
        (floats(np.inf), floats(-np.inf), "infinit"),
        (floats(1.0), tensor(np.array([1.0])), "got float64, golden is float32"),
        (floats(1.0), floats(1.0, 1.0), "got float32[2], golden is float32[1]"),
        (tensor(np.array([5])), tensor(np.array([6])), "have to be equal"),
        (tensor(np.array(["a"])), tensor(np.array(["b"])), "differ"),
        (None, floats(1.0), "golden is"),
    ],
)
def test_another_value_has_moved(before: Value, now: Value, says: str) -> None:
    (found,) = movements(ONE_CASE, [(("out/0", before),)], [(("out/0", now),)])
    assert found.data_set == "test_data_set_0"
    assert found.metrics.name == "out/0"
    assert says in found.message
    assert bool(says) == bool(found.message)


def test_only_what_moved_is_named() -> None:
    case = case_of_types((TENSOR, ValueType(kind="sequence", item=TENSOR)), inputs=((), ()))
    same = (("out/0", floats(1.0)), ("out/1", Sequence(items=(floats(1.0), floats(2.0)))))
    other = (("out/0", floats(1.0)), ("out/1", Sequence(items=(floats(1.0), floats(2.5)))))
    (found,) = movements(case, [same, same], [same, other])
    assert (found.data_set, found.metrics.name, found.metrics.max_abs) == ("test_data_set_1", "out/1[1]", 0.5)


@pytest.mark.parametrize("is_new", [False, True])
def test_an_output_of_one_side_alone_has_moved(*, is_new: bool) -> None:
    sides = [(("out/0", floats(1.0)),), ()]
    if is_new:
        sides.reverse()
    (found,) = movements(ONE_CASE, sides[:1], sides[1:])
    assert "out/0" in found.message

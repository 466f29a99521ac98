"""Which whole numbers and flags rounding noise moves."""

import numpy as np

from harness.core.moved import moved_of
from harness.core.value import Array, NamedValues, tensor


def named(**arrays: Array) -> NamedValues:
    return tuple((name, tensor(array)) for name, array in arrays.items())


def test_what_any_draw_has_otherwise_is_moved() -> None:
    golden = named(i=np.array([1, 2, 3]), b=np.array([True, False]))
    other = named(i=np.array([1, 5, 3]), b=np.array([True, False]))
    found = moved_of(golden, [golden, golden, other])
    assert found["i"].tolist() == [False, True, False]
    assert found["b"].tolist() == [False, False]


def test_floats_strings_and_what_changes_its_shape_have_no_answer() -> None:
    golden = named(f=np.ones(2), s=np.array(["a"], dtype=object), i=np.array([1, 2]))
    shorter = named(f=np.ones(2), s=np.array(["a"], dtype=object), i=np.array([1]))
    assert moved_of(golden, [golden, shorter]) == {}
    assert list(moved_of(golden, [golden])) == ["i"]

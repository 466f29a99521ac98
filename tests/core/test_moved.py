"""Which whole numbers and flags rounding noise moves."""

import numpy as np

from harness.core.moved import moved_of, not_by_noise
from harness.core.value import Array, NamedValues, tensor


def named(**arrays: Array) -> NamedValues:
    return tuple((name, tensor(array)) for name, array in arrays.items())


def test_the_farthest_draw_says_how_far_noise_moves_an_element() -> None:
    golden = named(i=np.array([1, 2, 3]), b=np.array([True, False]))
    other = named(i=np.array([1, 5, 3]), b=np.array([True, False]))
    found = moved_of(golden, [golden, golden, other])
    assert found["i"].tolist() == [0.0, 3.0, 0.0]
    assert found["b"].tolist() == [0.0, 0.0]


def test_floats_strings_and_what_changes_its_shape_have_no_answer() -> None:
    golden = named(f=np.ones(2), s=np.array(["a"], dtype=object), i=np.array([1, 2]))
    shorter = named(f=np.ones(2), s=np.array(["a"], dtype=object), i=np.array([1]))
    assert moved_of(golden, [golden, shorter]) == {}
    assert list(moved_of(golden, [golden])) == ["i"]


def test_noise_explains_what_it_moves_as_far_as_it_does() -> None:
    golden, moved = tensor(np.array([1, 2, 3, 4])), np.array([0.0, 1.0, 1.0, 0.0])
    assert not_by_noise(golden, tensor(np.array([1, 3, 5, 4])), moved).tolist() == [False, False, True, False]
    assert not_by_noise(golden, tensor(np.array([2, 2, 3, 4])), moved).tolist() == [True, False, False, False]


def test_neighbours_that_no_float64_tells_apart_differ() -> None:
    golden, actual = (tensor(np.array([(1 << 62) + more])) for more in (0, 1))
    assert not_by_noise(golden, actual, np.zeros(1)).tolist() == [True]
    assert moved_of((("i", golden),), [(("i", actual),)])["i"].tolist() == [1.0]

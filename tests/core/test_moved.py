"""Which whole numbers and flags rounding noise moves."""

import numpy as np
import pytest

from harness.core.noise.noise_moves import Move, moved_of, unmoved
from harness.core.values.value import Array, NamedValues, tensor


def named(**arrays: Array) -> NamedValues:
    return tuple((name, tensor(array)) for name, array in arrays.items())


def test_the_farthest_draw_says_how_far_noise_moves_an_element() -> None:
    golden = named(i=np.array([1, 2, 3]), b=np.array([True, False]))
    others = [named(i=np.array([1, to, 3]), b=np.array([True, False])) for to in (5, 3)]
    found = moved_of(golden, [golden, *others])
    assert (found["i"].reach.tolist(), found["i"].most) == ([0.0, 3.0, 0.0], 1)
    assert found["i"].mask.tolist() == [False, True, False]
    assert (found["b"].reach.tolist(), found["b"].most) == ([0.0, 0.0], 0)


def test_floats_strings_and_what_changes_its_shape_have_no_answer() -> None:
    golden = named(f=np.ones(2), s=np.array(["a"], dtype=object), i=np.array([1, 2]))
    shorter = named(f=np.ones(2), s=np.array(["a"], dtype=object), i=np.array([1]))
    assert moved_of(golden, [golden, shorter]) == {}
    assert list(moved_of(golden, [golden])) == ["i"]


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        ([1, 2, 3, 4], 0),
        ([1, 3, 3, 4], 0),
        ([1, 2, 5, 4], 1),  # further than noise moves it
        ([2, 2, 3, 4], 1),  # never moved
        ([1, 3, 4, 4], 1),  # each is moved, but never two at once
    ],
)
def test_noise_explains_what_it_moves_as_far_and_as_many(actual: list[int], expected: int) -> None:
    move = Move(reach=np.array([0.0, 1.0, 1.0, 0.0]), most=1)
    assert unmoved(tensor(np.array([1, 2, 3, 4])), tensor(np.array(actual)), move) == expected


def test_neighbours_that_no_float64_tells_apart_differ() -> None:
    golden, actual = (tensor(np.array([(1 << 62) + more])) for more in (0, 1))
    assert unmoved(golden, actual, Move(reach=np.zeros(1), most=0)) == 1
    assert moved_of((("i", golden),), [(("i", actual),)])["i"].reach.tolist() == [1.0]

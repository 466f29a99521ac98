"""Patterns in wrong results, each planted into random data, and none where there is none."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.core.comparison.hints import SIZE_LIMIT, shape_hint, value_hint
from harness.core.comparison.tolerance import EXACT, Tolerance
from harness.core.values.value import tensor
from harness.core.verdicts.compare import MOST_HINTS, compare_all

Floats = NDArray[np.float32]
TOLERANCE = Tolerance(rtol=1e-4, atol=1e-5)


def data(*shape: int) -> Floats:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


def with_channel(array: Floats) -> Floats:
    array[:, 2] *= 3
    return array


def with_tail(array: Floats) -> Floats:
    array.reshape(-1)[array.size // 2 :] = 0
    return array


def with_last_block(array: Floats) -> Floats:
    array[:, :, 5:] += 1 + np.abs(array[:, :, 5:])
    return array


def with_upper_half(array: Floats) -> Floats:
    array[:, :, 4:] += 1 + np.abs(array[:, :, 4:])
    return array


PATTERNS: dict[str, tuple[Callable[[Floats], Any], tuple[int, ...], str]] = {
    "transposed": (lambda a: a.T, (6, 6), "it is the golden with its axes in the order [1, 0]"),
    "turned": (
        lambda a: a.transpose(0, 2, 1),
        (2, 5, 5),
        "it is the golden with its axes in the order [0, 2, 1]",
    ),
    "layout": (
        lambda a: a.transpose(0, 2, 3, 1).reshape(a.shape),
        (2, 3, 4, 5),
        "its elements lie in memory as if the axes had the order [0, 2, 3, 1]",
    ),
    "later": (lambda a: np.roll(a, 1, 1) + 0.0, (3, 8), "it is the golden shifted by 1 along axis 1"),
    "earlier": (lambda a: np.roll(a, -1, 0), (8, 3), "it is the golden shifted by -1 along axis 0"),
    "backwards": (lambda a: a[:, ::-1], (3, 8), "it is the golden backwards along axis 1"),
    "shuffled": (
        lambda a: np.random.default_rng(1).permutation(a.reshape(-1)).reshape(a.shape),
        (4, 9),
        "same values in another order",
    ),
    "sign": (lambda a: -a, (4, 9), "it is the golden with the other sign"),
    "scaled": (lambda a: a * np.float32(1.01), (4, 9), "it is 1.01 times the golden"),
    "offset": (lambda a: a + np.float32(0.5), (4, 9), "it is the golden plus 0.5"),
    "saturated": (lambda a: a.clip(-0.25, 0.5), (4, 9), "it is cut off at -0.25 and 0.5"),
    "capped": (lambda a: a.clip(None, 0.5), (4, 9), "it is cut off at 0.5"),
    "half": (with_tail, (4, 8), "50% of the elements are zero and should not be: all from element 16 on"),
    "channel": (with_channel, (2, 7, 4), "all of them at index 2 of axis 1, which has 7"),
    "block": (with_last_block, (2, 3, 8), "all of them from index 5 of axis 2 on, which has 8"),
    "upper half": (with_upper_half, (2, 3, 8), "all of them from index 4 of axis 2 on, which has 8"),
    "zeros": (lambda a: a * 0, (4, 9), "the result is all zeros"),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_planted_pattern_is_found(name: str) -> None:
    plant, shape, said = PATTERNS[name]
    actual = np.ascontiguousarray(plant(data(*shape)), np.float32)
    assert value_hint(tensor(data(*shape)), tensor(actual), TOLERANCE) == said


@pytest.mark.parametrize("shape", [(4,), (6, 6), (2, 3, 4, 5), (1, 1, 30)])
def test_noise_has_no_pattern(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    actual = data(*shape) + rng.standard_normal(shape).astype(np.float32)
    assert value_hint(tensor(data(*shape)), tensor(actual), TOLERANCE) == ""


def test_a_repeating_golden_is_not_shifted() -> None:
    golden = np.ones((4, 6), np.float32)
    actual = golden.copy()
    actual[0, 0] = 5
    assert "shifted" not in value_hint(tensor(golden), tensor(actual), TOLERANCE)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.bool_, np.float16, np.complex64])
def test_any_element_type(dtype: Any) -> None:
    golden = (data(5, 5) * 9).astype(np.int8).astype(dtype)
    hint = value_hint(tensor(golden), tensor(np.ascontiguousarray(golden.T)), EXACT)
    assert hint == "it is the golden with its axes in the order [1, 0]"


def test_nan_and_infinity_are_values_like_others() -> None:
    golden = data(6, 6)
    golden[0, 1], golden[2, 3] = np.nan, np.inf
    hint = value_hint(tensor(golden), tensor(np.ascontiguousarray(golden.T)), TOLERANCE)
    assert hint == "it is the golden with its axes in the order [1, 0]"


def test_the_same_elements_in_another_shape() -> None:
    golden = data(4, 6)
    assert shape_hint(tensor(golden), tensor(golden.reshape(2, 12)), TOLERANCE) == (
        "the values are right and in order"
    )
    turned = tensor(np.ascontiguousarray(golden.T))
    assert shape_hint(tensor(golden), turned, TOLERANCE) == (
        "it is the golden with its axes in the order [1, 0]"
    )
    assert shape_hint(tensor(golden), tensor(data(6, 4) + 1), TOLERANCE) == ""
    assert shape_hint(tensor(golden), tensor(data(5, 5)), TOLERANCE) == ""


def test_tiny_and_huge_results_are_left_alone() -> None:
    assert value_hint(tensor(data(2)), tensor(data(2)[::-1].copy()), TOLERANCE) == ""
    huge = np.zeros(SIZE_LIMIT + 1, np.float32)
    assert value_hint(tensor(huge + 1), tensor(huge), TOLERANCE) == "the result is all zeros"
    assert value_hint(tensor(huge + 1), tensor(huge + 2), TOLERANCE) == ""


WIDE = np.array([2**33, -(2**33) - 7, 2**40 + 3, 2**31, 5, -1])


@pytest.mark.parametrize(
    ("found", "hint"),
    [
        (WIDE.astype(np.int32), "it is the golden as int32 holds it: the upper bits are lost"),
        (WIDE.astype(np.int16), "it is the golden as int16 holds it: the upper bits are lost"),
        (WIDE.clip(-(2**31), 2**31 - 1), "it is the golden cut off at the limits of int32"),
        (WIDE.astype(np.float32), "it is the golden rounded to float32"),
        (WIDE + np.array([0, 0, 1, 0, 0, 2]), ""),
    ],
)
def test_integers_that_went_through_a_narrower_type(found: Any, hint: str) -> None:
    assert value_hint(tensor(WIDE), tensor(found.astype(np.int64)), EXACT) == hint


def test_the_first_wrong_outputs_of_a_result_get_a_hint() -> None:
    """Looking for patterns takes long, and a language model may have a hundred wrong outputs."""
    names = [f"y{number}" for number in range(MOST_HINTS + 3)]
    right = tuple((name, tensor(data(4, 4))) for name in names)
    wrong = tuple((name, tensor(data(4, 4) * np.float32(index != 2) * 3)) for index, name in enumerate(names))
    given = tuple(pair if pair[0] != "y1" else right[1] for pair in wrong)
    rows = compare_all(right, given, lambda _: TOLERANCE).outputs
    told = [row.name for row in rows if row.details is not None and row.details.hint]
    assert told == [names[0], *names[2 : MOST_HINTS + 1]]

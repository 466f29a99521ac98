"""Tensors that are cut and joined in the agent, those of types that numpy lacks included."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from harness.agent.decoding.arrays import array_of, joined
from harness.agent.target_errors import UnsupportedError
from harness.core.values.value import Tensor, from_wire, tensor, to_wire

TYPES = ["float32", "float16", "bfloat16", "float8e4m3fn", "int8", "int64", "bool"]


def drawn(dtype: str, shape: tuple[int, ...] = (2, 3, 5, 4)) -> Tensor:
    numbers = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 9, shape)
    narrow = {"bfloat16": ml_dtypes.bfloat16, "float8e4m3fn": ml_dtypes.float8_e4m3fn}
    return tensor(numbers.astype(narrow.get(dtype, dtype)))


def back(array: Any) -> Tensor:
    wire = array.wire()
    data = wire["data"]
    value = from_wire({**wire, "data": data if isinstance(data, bytes) else data.view.tobytes()})
    assert isinstance(value, Tensor)
    return value


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("axis", [0, 2])
def test_what_is_cut_and_joined_is_what_it_was(dtype: str, axis: int) -> None:
    given = drawn(dtype)
    array = array_of(to_wire(given))
    whole = joined([array.cut(axis, 0, 1), array.cut(axis, 1, given.array.shape[axis])], axis)
    assert back(whole).dtype == dtype
    assert np.array_equal(back(whole).array, given.array)
    assert np.array_equal(back(array.take(axis, [1, 0])).array, np.take(given.array, [1, 0], axis))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_new_buffer_holds_sevens(dtype: str) -> None:
    array = array_of(to_wire(drawn(dtype, (2, 3, 0, 4))))
    assert back(array.full(2, 6)).array.astype(np.float32).tolist() == np.full((2, 3, 6, 4), 7.0).tolist()
    assert np.array_equal(array_of(to_wire(drawn(dtype))).floats(), drawn(dtype).array.astype(np.float32))


def test_a_large_array_comes_back_whole() -> None:
    given = drawn("bfloat16", (1, 2, 1000, 128))
    assert np.array_equal(back(array_of(to_wire(given))).array, given.array)


@pytest.mark.parametrize("value", [drawn("int8").array.astype(ml_dtypes.int4), np.array(["a"])])
def test_elements_without_a_byte_of_their_own_are_declined(value: Any) -> None:
    with pytest.raises(UnsupportedError, match="cannot be cut and joined"):
        array_of(to_wire(tensor(value)))
    with pytest.raises(UnsupportedError, match="a cache of no tensor"):
        array_of(None)

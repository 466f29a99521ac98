"""The wire form of values, with ONNX's own packing as the judge."""

import math
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import numpy_helper

from harness.core.values.value import (
    BITS,
    DTYPES,
    STRING,
    Map,
    Sequence,
    Tensor,
    Value,
    from_wire,
    leaves,
    pack,
    tensor,
    to_wire,
    unpack,
)

SPELLING = {"float32": "FLOAT", "float64": "DOUBLE"}
NAMES = sorted(DTYPES)
SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)


def width(dtype: str) -> int:
    return BITS.get(dtype, 8 * DTYPES[dtype].itemsize)


def raw_bytes(dtype: str, elements: int) -> st.SearchStrategy[bytes]:
    """Any bit pattern of that many elements, as ONNX packs them, the bits left over zero."""
    bits = elements * width(dtype)
    size = -(-bits // 8)
    if dtype == "bool":
        return st.binary(min_size=size, max_size=size).map(lambda data: bytes(byte & 1 for byte in data))
    return st.integers(0, (1 << bits) - 1).map(lambda number: number.to_bytes(size, "little"))


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype, shape = draw(st.sampled_from([*NAMES, STRING])), draw(SHAPES)
    if dtype == STRING:
        texts = draw(st.lists(st.text(max_size=5), min_size=math.prod(shape), max_size=math.prod(shape)))
        array = np.array([*texts, None], dtype=object)[:-1].reshape(shape)
        return Tensor(dtype=STRING, array=array)
    return unpack(dtype, shape, draw(raw_bytes(dtype, math.prod(shape))))


def maps() -> st.SearchStrategy[Map]:
    return st.lists(st.integers(-9, 9), max_size=4, unique=True).map(
        lambda keys: Map(keys=tensor(np.array(keys, np.int64)), values=tensor(np.array(keys, np.float32)))
    )


VALUES = st.recursive(
    st.none() | tensors() | maps(),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: Sequence(items=tuple(items))),
    max_leaves=5,
)


def as_onnx(dtype: str, shape: tuple[int, ...], raw: bytes) -> onnx.TensorProto:
    data_type = onnx.TensorProto.DataType.Value(SPELLING.get(dtype, dtype.upper()))
    return onnx.TensorProto(data_type=data_type, dims=shape, raw_data=raw)


def same(left: Value, right: Value) -> bool:
    """Equal in structure, type, shape and every bit."""
    if isinstance(left, Sequence) and isinstance(right, Sequence):
        return len(left.items) == len(right.items) and all(map(same, left.items, right.items))
    if isinstance(left, Map) and isinstance(right, Map):
        return same(left.keys, right.keys) and same(left.values, right.values)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        if left.dtype != right.dtype or left.array.shape != right.array.shape:
            return False
        if left.dtype == STRING:
            return bool(left.array.tolist() == right.array.tolist())
        return left.array.tobytes() == right.array.tobytes()
    return left is None and right is None


@given(VALUES)
def test_wire_round_trip_keeps_every_bit(value: Value) -> None:
    assert same(from_wire(to_wire(value)), value)


@given(VALUES)
def test_wire_is_made_of_plain_types(value: Value) -> None:
    def plain(wire: Any) -> bool:
        if isinstance(wire, dict):
            return all(type(key) is str and plain(item) for key, item in wire.items())
        if isinstance(wire, list):
            return all(map(plain, wire))
        return wire is None or type(wire) in {str, int, bytes}

    assert plain(to_wire(value))


@pytest.mark.parametrize("dtype", [name for name in NAMES if width(name) <= 16 and name != "bool"])
def test_every_bit_pattern_of_a_narrow_type_survives(dtype: str) -> None:
    bits = width(dtype)
    number = sum(code << (code * bits) for code in range(1 << min(bits, 8)))
    raw = number.to_bytes((1 << min(bits, 8)) * bits // 8, "little")
    if bits == 16:
        raw = np.arange(1 << 16, dtype="<u2").tobytes()
    value = unpack(dtype, (len(raw) * 8 // bits,), raw)
    assert pack(value) == raw
    assert value.array.tobytes() == numpy_helper.to_array(as_onnx(dtype, value.array.shape, raw)).tobytes()


@given(st.data(), st.sampled_from(NAMES), SHAPES)
def test_packing_is_onnx_packing(data: st.DataObject, dtype: str, shape: tuple[int, ...]) -> None:
    raw = data.draw(raw_bytes(dtype, math.prod(shape)))
    value = unpack(dtype, shape, raw)
    theirs = numpy_helper.to_array(as_onnx(dtype, shape, raw))
    assert value.array.dtype == theirs.dtype
    assert value.array.shape == theirs.shape
    assert value.array.tobytes() == theirs.tobytes()
    assert pack(value) == raw == numpy_helper.from_array(theirs).raw_data


@pytest.mark.parametrize("dtype", NAMES)
def test_tensor_names_the_element_type(dtype: str) -> None:
    assert tensor(np.ones((2, 3)).astype(DTYPES[dtype])).dtype == dtype


@pytest.mark.parametrize(
    "array",
    [np.array([["a", "été"]]), np.array([["a", "été"]], dtype=object), np.array([[b"a", "été".encode()]])],
)
def test_text_of_any_kind_becomes_strings(array: Any) -> None:
    value = tensor(array)
    assert value.dtype == STRING
    assert value.array.tolist() == [["a", "été"]]


def test_a_type_without_onnx_counterpart_is_refused() -> None:
    with pytest.raises(TypeError, match="datetime64"):
        tensor(np.array(["2020-01-01"], dtype="datetime64[D]"))


def test_packing_does_not_depend_on_memory_layout() -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    assert pack(tensor(array.T)) == np.ascontiguousarray(array.T).tobytes()


@pytest.mark.parametrize(
    "wire",
    [
        {"dtype": "float32", "shape": [2], "data": b"\0" * 4},
        {"dtype": "float32", "shape": [-1], "data": b"\0" * 8},
        {"dtype": "int4", "shape": [3], "data": b"\0"},
        {"dtype": "int4", "shape": [1], "data": b"\0\0"},
        {"dtype": "float128", "shape": [1], "data": b"\0" * 16},
        {"dtype": "string", "shape": [2], "data": ["a"]},
        {"dtype": "string", "shape": [-1], "data": ["a"]},
        {
            "keys": {"dtype": "int8", "shape": [2], "data": b"ab"},
            "values": {"dtype": "int8", "shape": [1], "data": b"a"},
        },
        {"unknown": 1},
        7,
    ],
)
def test_a_wire_form_that_does_not_add_up_is_refused(wire: Any) -> None:
    with pytest.raises(ValueError, match=r"fill|shape|unknown|no map|not the wire form"):
        from_wire(wire)


def test_leaves_are_named_by_their_place() -> None:
    one = tensor(np.ones(1, np.float32))
    entries = Map(keys=one, values=one)
    value = Sequence(items=(one, Sequence(items=(None, entries))))
    assert [name for name, _ in leaves("y", value)] == ["y[0]", "y[1][0]", "y[1][1].keys", "y[1][1].values"]

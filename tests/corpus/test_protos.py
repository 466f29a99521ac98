import contextlib
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from onnx import helper, numpy_helper

from harness.core.values.value import BITS, DTYPES, Map, Sequence, Tensor, Value, leaves, tensor, unpack
from harness.corpus.model.element_types import ELEMENT_TYPES, NUMBERS
from harness.corpus.model.port import ValueType
from harness.corpus.model.protos import decode, decode_named, encode, tensor_proto, tensor_value

PLAIN = ValueType(kind="tensor")
LIST = ValueType(kind="sequence", item=PLAIN)
TABLE = ValueType(kind="map", dtype="string", item=PLAIN)

shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype = draw(st.sampled_from([*DTYPES, "string"]))
    shape = draw(shapes)
    count = int(np.prod(shape))
    if dtype == "string":
        # numpy drops null characters at the end of a text, and onnx reads texts through numpy.
        text = st.text(st.characters(exclude_characters="\0", codec="utf-8"))
        words = draw(st.lists(text, min_size=count, max_size=count))
        return Tensor(dtype=dtype, array=np.array(words, dtype=object).reshape(shape))
    size = -(-count * BITS.get(dtype, 8 * DTYPES[dtype].itemsize) // 8)
    data = draw(st.binary(min_size=size, max_size=size))
    if dtype == "bool":
        data = bytes(byte & 1 for byte in data)
    return unpack(dtype, shape, data)


def same(left: Value, right: Value) -> bool:
    mine, other = list(leaves("v", left)), list(leaves("v", right))
    return type(left) is type(right) and len(mine) == len(other) and all(map(_same_leaf, mine, other))


def _same_leaf(left: tuple[str, Tensor | None], right: tuple[str, Tensor | None]) -> bool:
    (name, one), (other_name, two) = left, right
    if one is None or two is None:
        return name == other_name and one is two
    if (name, one.dtype, one.array.shape) != (other_name, two.dtype, two.array.shape):
        return False
    return one.array.tolist() == two.array.tolist() if one.dtype == "string" else _bits(one) == _bits(two)


def _bits(value: Tensor) -> bytes:
    return np.ascontiguousarray(value.array).tobytes()


def test_the_table_of_element_types_is_that_of_onnx() -> None:
    names = {number: name.lower() for name, number in onnx.TensorProto.DataType.items() if number}
    names |= {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.DOUBLE: "float64"}
    assert names == ELEMENT_TYPES


@given(tensors())
def test_tensors_of_every_type_and_bit_pattern_round_trip(value: Tensor) -> None:
    assert same(decode(encode(value, PLAIN), PLAIN), value)


@given(tensors())
def test_onnx_reads_what_is_written_here(value: Tensor) -> None:
    array = numpy_helper.to_array(tensor_proto(value))
    assert array.shape == value.array.shape
    if value.dtype == "string":
        assert array.tolist() == value.array.tolist()
    else:
        assert array.dtype == value.array.dtype
        assert array.tobytes() == _bits(value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("raw", [False, True], ids=["typed_field", "raw_data"])
def test_what_onnx_writes_is_read_here(dtype: str, raw: bool) -> None:  # noqa: FBT001
    numbers = [0, 1, 1, 0, 1] if "2" in dtype else [0, 1, 2, 4, 1]
    expected = np.array(numbers).astype(DTYPES[dtype])
    if raw:
        proto = numpy_helper.from_array(expected)
    else:
        proto = helper.make_tensor("t", NUMBERS[dtype], [5], expected)
        assert not proto.HasField("raw_data")
    value = tensor_value(proto)
    assert value.dtype == dtype
    assert value.array.dtype == expected.dtype
    assert value.array.tobytes() == expected.tobytes()


@settings(max_examples=30)
@given(st.lists(tensors(), max_size=3), st.booleans())
def test_containers_round_trip(items: list[Tensor], absent: bool) -> None:  # noqa: FBT001
    inner = Sequence(items=tuple(items))
    nested = Sequence(items=(inner, inner))
    optional = ValueType(kind="optional", item=LIST)
    cases: list[tuple[Value, ValueType]] = [
        (inner, LIST),
        (nested, ValueType(kind="sequence", item=LIST)),
        (None if absent else inner, optional),
        (Sequence(items=(None, inner)), ValueType(kind="sequence", item=optional)),
        (items[0] if items else None, ValueType(kind="optional", item=PLAIN)),
    ]
    for value, declared in cases:
        assert same(decode(encode(value, declared), declared), value)


@pytest.mark.parametrize("keys", [np.array(["b", "a"], dtype=object), np.array([7, -1])])
@pytest.mark.parametrize("values", [np.array([1.5, 2.5], np.float32), np.array(["x", "y"], dtype=object)])
def test_maps_round_trip_in_their_order(keys: Any, values: Any) -> None:
    value = Map(keys=tensor(keys), values=tensor(values))
    assert same(decode(encode(value, TABLE), TABLE), value)
    maps = ValueType(kind="sequence", item=TABLE)
    both = Sequence(items=(value, value))
    assert same(decode(encode(both, maps), maps), both)


def test_a_map_that_onnx_wrote_is_read() -> None:
    written = numpy_helper.from_dict({7: np.float32(1.5), -1: np.float32(2.5)})
    expected = Map(keys=tensor(np.array([7, -1])), values=tensor(np.array([1.5, 2.5], np.float32)))
    assert same(decode(written.SerializeToString(), TABLE), expected)


def test_the_name_inside_the_file_comes_along() -> None:
    proto = numpy_helper.from_array(np.zeros(1, np.float32), name="left")
    assert decode_named(proto.SerializeToString(), PLAIN)[0] == "left"


def test_broken_values_are_refused() -> None:
    short = onnx.TensorProto(data_type=1, dims=[3], raw_data=b"1234")
    long = onnx.TensorProto(data_type=NUMBERS["int4"], dims=[1], raw_data=b"1234")
    empty = onnx.TensorProto(data_type=1, dims=[2])
    negative = onnx.TensorProto(data_type=1, dims=[-1], raw_data=b"1234")
    text = onnx.TensorProto(data_type=8, dims=[1], string_data=[b"\xff"])
    unknown = onnx.TensorProto(data_type=27, dims=[1], raw_data=b"1")
    outside = onnx.TensorProto(data_type=1, dims=[1], data_location=onnx.TensorProto.EXTERNAL)
    for proto in (short, long, empty, negative, text, unknown, outside):
        with pytest.raises(ValueError, match=r"."):
            tensor_value(proto)
    with pytest.raises(ValueError, match="corrupt"):
        decode(b"\xff\xff\xff", PLAIN)
    lists = numpy_helper.from_list([[np.zeros(1)]]).SerializeToString()
    with pytest.raises(ValueError, match="sequence of tensor"):
        decode(lists, LIST)


@given(st.binary(max_size=60), st.sampled_from([PLAIN, LIST, TABLE, ValueType(kind="optional", item=PLAIN)]))
def test_any_bytes_are_a_value_or_a_value_error(data: bytes, declared: ValueType) -> None:
    with contextlib.suppress(ValueError):
        decode(data, declared)


def test_a_value_of_another_structure_than_declared_cannot_be_written() -> None:
    with pytest.raises(TypeError, match="declared as sequence, got Tensor"):
        encode(tensor(np.zeros(1)), LIST)

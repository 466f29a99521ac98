"""ONNX's serialized values (``input_0.pb``, ``output_0.pb``) to values in memory, and back.

Such a file does not name its type: the declared type of the graph's input or output decides whether it holds
a ``TensorProto``, ``SequenceProto``, ``OptionalProto`` or ``MapProto``.
"""

import math
from collections.abc import Callable
from collections.abc import Sequence as AbstractSequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.core.values.value import (
    BITS,
    DTYPES,
    STRING,
    Map,
    Sequence,
    Tensor,
    Value,
    pack,
    unpack,
    value_bytes,
)
from harness.corpus.model.data_budget import PART_BYTES, TEXT_BYTES, DataBudget
from harness.corpus.model.element_types import ELEMENT_TYPES, NUMBERS
from harness.corpus.model.external import read_external
from harness.corpus.model.port import PortKind, ValueType

if TYPE_CHECKING:
    import onnx

_ELEM_TYPES: dict[PortKind, int] = {"tensor": 1, "sequence": 3, "map": 4, "optional": 5}
"""``SequenceProto.DataType`` and ``OptionalProto.DataType``, which agree; 0 is UNDEFINED."""


def decode(data: bytes, declared: ValueType, folder: Path | None = None) -> Value:
    """Read one serialized value; only the structure of the declared type matters, not element type or shape.

    Without the folder of external data, tensors with external data are refused.

    Raises:
        ValueError: The bytes hold no such value, or an incomplete one.
    """
    return decode_named(data, declared, folder)[1]


def decode_named(
    data: bytes, declared: ValueType, folder: Path | None = None, budget: DataBudget | None = None
) -> tuple[str, Value]:
    """Read as ``decode`` does; also return the name in the serialized value, which is often empty.

    Raises:
        ValueError: As ``decode``, or the value would exceed the budget.
    """
    proto = parse_proto(_message(declared), data)
    if budget is not None:
        budget.take(_taken(proto, declared))
    return proto.name, _value(proto, declared, folder)


class TooLargeError(ValueError):
    """A value takes 2 GiB or more, the limit of a protobuf."""


def encode(
    value: Value,
    declared: ValueType,
    name: str = "",
    put: "Callable[[Tensor], onnx.TensorProto] | None" = None,
) -> bytes:
    """Serialize one value, so that ``decode`` with the same declared type returns it.

    ``put`` makes the message of each tensor; ``tensor_proto`` by default.

    Raises:
        TypeError: The value does not have the declared structure.
        TooLargeError: It is too large.
    """
    from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

    proto = _proto(value, declared, put or tensor_proto)
    if name:
        proto.name = name
    try:
        data: bytes = proto.SerializeToString()
    except EncodeError as error:
        raise TooLargeError(f"a value of {value_bytes(value)} bytes, and a protobuf ends at 2 GiB") from error
    return data


def parse_proto(message: Any, data: bytes) -> Any:
    """Read bytes as a protobuf message of a class.

    Raises:
        ValueError: They are not such a message, or are truncated.
    """
    from google.protobuf.message import DecodeError

    try:
        return message.FromString(data)
    except DecodeError as error:
        raise ValueError(f"corrupt: {error}") from error


def tensor_value(proto: "onnx.TensorProto", folder: Path | None = None) -> Tensor:
    """Return the tensor in a message, from ``raw_data``, a typed field or external data.

    Raises:
        ValueError: Its element type is not supported, or its data does not fill its shape.
    """
    dtype = ELEMENT_TYPES.get(proto.data_type, f"number {proto.data_type}")
    shape = tuple(proto.dims)
    if dtype == STRING:
        texts = [item.decode("utf-8") for item in proto.string_data]
        return Tensor(dtype=STRING, array=np.array(texts, dtype=object).reshape(shape))
    if dtype not in DTYPES:
        raise ValueError(f"tensors of element type {dtype} are not supported")
    if proto.data_location == proto.EXTERNAL:
        if folder is None:
            raise ValueError("external data is not allowed here")
        raw = read_external(proto, folder)
    elif proto.HasField("raw_data"):
        raw = proto.raw_data
    else:
        from onnx import numpy_helper

        return Tensor(dtype=dtype, array=numpy_helper.to_array(proto))
    size = math.ceil(math.prod(shape) * BITS.get(dtype, 8 * DTYPES[dtype].itemsize) / 8)
    if len(raw) != size:
        raise ValueError(f"{dtype}{list(shape)} takes {size} bytes, got {len(raw)}")
    return unpack(dtype, shape, raw)


def few_numbers(proto: "onnx.TensorProto | None", most: int) -> tuple[float, ...]:
    """Return the elements of a tensor of at most so many numbers; nothing for any other tensor."""
    if proto is None or math.prod(proto.dims) > most:
        return ()
    try:
        return tuple(map(float, tensor_value(proto).array.reshape(-1)))
    except (ValueError, TypeError):  # external, a text, or of a type without numbers
        return ()


def listed(node: "onnx.NodeProto", *names: str) -> list[Any]:
    """Return the elements of the first of these attributes of a node that has some: numbers or texts."""
    by_name = {one.name: one for one in node.attribute}
    for name in names:
        one = by_name.get(name)
        if one is None:
            continue
        if one.HasField("t"):
            return list(tensor_value(one.t).array.reshape(-1))
        if one.strings:
            return [text.decode(errors="replace") for text in one.strings]
        if one.floats or one.ints:
            return list(one.floats or one.ints)
    return []


def tensor_proto(value: Tensor, name: str = "") -> "onnx.TensorProto":
    """Return a message with a tensor, as ``raw_data`` unless it consists of strings."""
    proto = tensor_type(value)
    if name:
        proto.name = name
    if value.dtype == STRING:
        proto.string_data.extend(str(item).encode() for item in value.array.ravel())
    else:
        proto.raw_data = pack(value)
    return proto


def value_info(
    name: str, dtype: str, shape: AbstractSequence[int | str | None] | None
) -> "onnx.ValueInfoProto":
    """Return the declaration of a tensor, by the name of its element type."""
    from onnx import helper

    return helper.make_tensor_value_info(name, NUMBERS[dtype], shape)


def tensor_type(value: Tensor) -> "onnx.TensorProto":
    """Return a message with the element type and the shape of a tensor, without elements."""
    import onnx

    return onnx.TensorProto(data_type=NUMBERS[value.dtype], dims=value.array.shape)


def _message(declared: ValueType) -> Any:
    import onnx

    return getattr(onnx, f"{declared.kind.capitalize()}Proto")


def _item(declared: ValueType) -> ValueType:
    return declared.item or ValueType(kind="tensor")


def _value(proto: Any, declared: ValueType, folder: Path | None) -> Value:
    if declared.kind == "tensor":
        return tensor_value(proto, folder)
    if declared.kind == "map":
        return _map_value(proto, folder)
    item = _item(declared)
    if proto.elem_type not in {0, _ELEM_TYPES[item.kind]}:
        raise ValueError(f"does not hold what the model declares: {declared.kind} of {item.kind}")
    if declared.kind == "sequence":
        found = getattr(proto, f"{item.kind}_values")
        return Sequence(items=tuple(_value(entry, item, folder) for entry in found))
    present = proto.elem_type and proto.HasField(f"{item.kind}_value")
    return _value(getattr(proto, f"{item.kind}_value"), item, folder) if present else None


def _taken(proto: Any, declared: ValueType) -> int:
    """Return the bytes that a value will take, before it is made; any number for damaged data."""
    if declared.kind == "tensor":
        dtype = ELEMENT_TYPES.get(proto.data_type, "")
        bits = BITS.get(dtype, 8 * DTYPES[dtype].itemsize if dtype in DTYPES else 8 * TEXT_BYTES)
        elements: int = math.prod(map(abs, proto.dims))
        return PART_BYTES + elements * bits // 8
    if declared.kind == "map":
        return PART_BYTES * len(proto.values.tensor_values)
    item = _item(declared)
    if declared.kind == "sequence":
        return sum(_taken(entry, item) for entry in getattr(proto, f"{item.kind}_values"))
    return _taken(getattr(proto, f"{item.kind}_value"), item)


def _map_value(proto: "onnx.MapProto", folder: Path | None) -> Map:
    dtype = ELEMENT_TYPES.get(proto.key_type, "")
    if dtype == STRING:
        keys = np.array([key.decode("utf-8") for key in proto.string_keys], dtype=object)
    elif dtype in DTYPES:
        keys = np.array(proto.keys, dtype=np.int64).astype(DTYPES[dtype])
    else:
        raise ValueError("a map without a type for its keys")
    values = [tensor_value(entry, folder) for entry in proto.values.tensor_values]
    if not values or len(values) != len(keys) or len({entry.dtype for entry in values}) != 1:
        raise ValueError(f"a map of {len(keys)} keys and {len(values)} tensors of one type as values")
    # item() raises for anything but a single element.
    elements = np.array([entry.array.item() for entry in values], dtype=values[0].array.dtype)
    return Map(keys=Tensor(dtype=dtype, array=keys), values=Tensor(dtype=values[0].dtype, array=elements))


def _proto(value: Value, declared: ValueType, put: "Callable[[Tensor], onnx.TensorProto]") -> Any:
    item = _item(declared)
    message = _message(declared)
    if declared.kind == "tensor" and isinstance(value, Tensor):
        return put(value)
    if declared.kind == "sequence" and isinstance(value, Sequence):
        sequence = message(elem_type=_ELEM_TYPES[item.kind])
        getattr(sequence, f"{item.kind}_values").extend(_proto(entry, item, put) for entry in value.items)
        return sequence
    if declared.kind == "optional":
        if value is None:
            return message()
        return message(elem_type=_ELEM_TYPES[item.kind], **{f"{item.kind}_value": _proto(value, item, put)})
    if declared.kind == "map" and isinstance(value, Map):
        return _map_proto(value)
    raise TypeError(f"declared as {declared.kind}, got {type(value).__name__}")


def _map_proto(value: Map) -> "onnx.MapProto":
    import onnx

    proto = onnx.MapProto(key_type=NUMBERS[value.keys.dtype])
    if value.keys.dtype == STRING:
        proto.string_keys.extend(str(key).encode() for key in value.keys.array)
    else:
        proto.keys.extend(int(key) for key in value.keys.array)
    proto.values.elem_type = _ELEM_TYPES["tensor"]
    for entry in value.values.array:
        scalar = np.asarray(entry, dtype=value.values.array.dtype)
        proto.values.tensor_values.append(tensor_proto(Tensor(dtype=value.values.dtype, array=scalar)))
    return proto

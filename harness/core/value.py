"""ONNX values in memory, and their form on the wire between the harness and an agent.

The wire form is made of plain dicts, lists, strings, integers and bytes, so that any Python can read it
without this package (and without pickle):

* tensor: ``{"dtype": "float32", "shape": [2, 3], "data": b"..."}``, little-endian and C order; elements
  narrower than a byte are packed as ONNX packs them (first element in the low bits); for ``string`` the
  data is a list of str.
* sequence: ``{"sequence": [value, ...]}``
* map: ``{"keys": tensor, "values": tensor}``, both 1-D, in the order of the runtime.
* an empty optional: ``None``.
"""

import math
import sys
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """A dense tensor.

    Attributes:
        dtype: ONNX element type in lower case; a key of ``DTYPES`` or ``string``.
        array: The elements, one each (int4 and its like are not packed here); dtype object for strings.
    """

    dtype: str
    array: Array


class Sequence(msgspec.Struct, frozen=True, kw_only=True):
    """An ONNX sequence of values."""

    items: tuple["Value", ...]


class Map(msgspec.Struct, frozen=True, kw_only=True):
    """An ONNX map as two 1-D tensors of equal length."""

    keys: Tensor
    values: Tensor


Value = Tensor | Sequence | Map | None

DTYPES: dict[str, np.dtype[Any]] = {
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8e4m3fnuz": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "float8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "float8e5m2fnuz": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "float8e8m0": np.dtype(ml_dtypes.float8_e8m0fnu),
    "float4e2m1": np.dtype(ml_dtypes.float4_e2m1fn),
    "int2": np.dtype(ml_dtypes.int2),
    "int4": np.dtype(ml_dtypes.int4),
    "int8": np.dtype(np.int8),
    "int16": np.dtype(np.int16),
    "int32": np.dtype(np.int32),
    "int64": np.dtype(np.int64),
    "uint2": np.dtype(ml_dtypes.uint2),
    "uint4": np.dtype(ml_dtypes.uint4),
    "uint8": np.dtype(np.uint8),
    "uint16": np.dtype(np.uint16),
    "uint32": np.dtype(np.uint32),
    "uint64": np.dtype(np.uint64),
    "bool": np.dtype(np.bool_),
    "complex64": np.dtype(np.complex64),
    "complex128": np.dtype(np.complex128),
}
"""ONNX element type -> numpy dtype with one element each."""

STRING = "string"
BITS: dict[str, int] = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4e2m1": 4}
"""Element types that are packed, with their width in bits."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def tensor(array: Array) -> Tensor:
    """Wrap an array whose numpy dtype says which ONNX element type it is; object and str become strings.

    Raises:
        TypeError: No ONNX element type corresponds to the array's dtype.
    """
    if array.dtype.kind in "OUS":
        return Tensor(dtype=STRING, array=_strings([_text(item) for item in array.reshape(-1)], array.shape))
    name = _NAMES.get(array.dtype)
    if name is None:
        raise TypeError(f"no ONNX element type corresponds to numpy dtype {array.dtype}")
    return Tensor(dtype=name, array=array)


def to_wire(value: Value) -> Any:
    """The wire form of a value; see the module's docstring."""
    if isinstance(value, Tensor):  # nearly all of them are, and this is done several times for each cell
        data = [str(item) for item in value.array.reshape(-1)] if value.dtype == STRING else pack(value)
        return {"dtype": value.dtype, "shape": list(value.array.shape), "data": data}
    if isinstance(value, Sequence):
        return {"sequence": [to_wire(item) for item in value.items]}
    if isinstance(value, Map):
        return {"keys": to_wire(value.keys), "values": to_wire(value.values)}
    return None


def from_wire(wire: Any) -> Value:
    """Rebuild a value from its wire form.

    Raises:
        ValueError: The form is none of the four, or the data does not fill the shape.
    """
    if wire is None:
        return None
    if not isinstance(wire, dict):
        raise ValueError(f"not the wire form of a value: {type(wire).__name__}")  # noqa: TRY004 - bad data
    if "dtype" in wire:
        return _tensor_from_wire(wire)
    if "sequence" in wire:
        return Sequence(items=tuple(from_wire(item) for item in wire["sequence"]))
    if "keys" in wire:
        keys, values = _tensor_from_wire(wire["keys"]), _tensor_from_wire(wire["values"])
        if keys.array.ndim != 1 or keys.array.shape != values.array.shape:
            raise ValueError(f"keys {keys.array.shape} and values {values.array.shape} make no map")
        return Map(keys=keys, values=values)
    raise ValueError("not the wire form of a value: dict")


def pack(value: Tensor) -> bytes:
    """The elements as ONNX's ``raw_data``: little-endian, C order, narrow types packed low bits first."""
    bits = BITS.get(value.dtype)
    if bits is None:
        # ml_dtypes arrays have no byte order to swap; numpy's own are little-endian on every supported CPU.
        return value.array.tobytes()
    per_byte = 8 // bits
    codes = np.ascontiguousarray(value.array).reshape(-1).view(np.uint8) & np.uint8((1 << bits) - 1)
    padded = np.zeros(-(-codes.size // per_byte) * per_byte, np.uint8)
    padded[: codes.size] = codes
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(bits)
    packed: Array = np.bitwise_or.reduce(padded.reshape(-1, per_byte) << shifts, axis=1)
    return packed.astype(np.uint8).tobytes()


def unpack(dtype: str, shape: tuple[int, ...], data: bytes) -> Tensor:
    """The inverse of ``pack``.

    Raises:
        ValueError: Unknown element type, or the data does not fill the shape.
    """
    numpy_dtype = DTYPES.get(dtype)
    if numpy_dtype is None:
        raise ValueError(f"unknown ONNX element type {dtype!r}")
    bits = BITS.get(dtype)
    elements = _elements(shape)
    if len(data) != -(-elements * (bits or 8 * numpy_dtype.itemsize) // 8):
        raise ValueError(f"{len(data)} bytes do not fill {dtype}{list(shape)}")
    if bits is None:
        return Tensor(dtype=dtype, array=np.ndarray(shape, numpy_dtype, data))
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    codes = (np.frombuffer(data, np.uint8)[:, None] >> shifts) & np.uint8((1 << bits) - 1)
    flat = codes.reshape(-1)[:elements]
    if dtype.startswith("int"):
        # Sign-extend in int8: shift the sign bit up, then arithmetically down.
        up = np.int8(8 - bits)
        return Tensor(dtype=dtype, array=(flat.view(np.int8) << up >> up).astype(numpy_dtype).reshape(shape))
    return Tensor(dtype=dtype, array=flat.copy().view(numpy_dtype).reshape(shape))


def leaves(name: str, value: Value) -> Iterator[tuple[str, Tensor | None]]:
    """The tensors inside a value, named ``y``, ``y[0]``, ``y.keys``; None for an empty optional."""
    if isinstance(value, Sequence):
        for index, item in enumerate(value.items):
            yield from leaves(f"{name}[{index}]", item)
    elif isinstance(value, Map):
        yield f"{name}.keys", value.keys
        yield f"{name}.values", value.values
    else:
        yield name, value


def value_bytes(value: Value) -> int:
    """Bytes of memory that the elements of a value take; of strings, about that."""
    if isinstance(value, Tensor) and value.dtype != STRING:  # nearly all of them
        return value.array.nbytes
    total = 0
    for _, part in leaves("", value):
        if part is not None:
            total += part.array.nbytes
            if part.dtype == STRING:
                total += sum(map(sys.getsizeof, part.array.reshape(-1)))
    return total


def _tensor_from_wire(wire: Any) -> Tensor:
    shape = tuple(wire["shape"])
    if wire["dtype"] == STRING:
        if not isinstance(wire["data"], list) or len(wire["data"]) != _elements(shape):
            raise ValueError(f"{len(wire['data'])} strings do not fill string{list(shape)}")
        return Tensor(dtype=STRING, array=_strings(wire["data"], shape))
    return unpack(wire["dtype"], shape, wire["data"])


def _elements(shape: tuple[int, ...]) -> int:
    if shape and min(shape) < 0:
        raise ValueError(f"{list(shape)} is not a shape")
    return math.prod(shape)


def _strings(items: list[str], shape: tuple[int, ...]) -> Array:
    # Filled, not converted: numpy would take strings apart or make room for the longest.
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def _text(item: object) -> str:
    return item.decode("utf-8", errors="replace") if isinstance(item, bytes) else str(item)

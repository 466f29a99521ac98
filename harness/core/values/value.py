"""ONNX values in memory, and their form on the wire between the harness and an agent.

The wire form consists of plain dicts, lists, strings, integers and bytes. Any Python can read it without this
package and without pickle:

* tensor: ``{"dtype": "float32", "shape": [2, 3], "data": b"..."}``, little-endian and C order; elements
  narrower than a byte are packed as ONNX packs them (first element in the low bits); for ``string`` the
  data is a list of str.
* sequence: ``{"sequence": [value, ...]}``
* map: ``{"keys": tensor, "values": tensor}``, both 1-D, in the order of the runtime.
* an empty optional: ``None``.
"""

import mmap
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import ml_dtypes
import msgspec
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Bytes = bytes | bytearray | memoryview | mmap.mmap
"""The elements of a tensor on the wire; a large tensor's are a mapped file."""


class Tensor(msgspec.Struct, frozen=True, kw_only=True):
    """A dense tensor.

    Attributes:
        dtype: ONNX element type in lower case; a key of ``DTYPES`` or ``string``.
        array: The elements, not packed (an int4 takes a byte); dtype object for strings.
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
NamedValues = tuple[tuple[str, Value], ...]
"""Inputs or outputs of a model, by name."""

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
"""ONNX element type -> numpy dtype that holds one element each."""

STRING = "string"
BITS: dict[str, int] = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4e2m1": 4}
"""Packed element types -> width in bits."""

_MOST_DIMENSIONS = 64
"""Largest number of dimensions of a tensor: ``NPY_MAXDIMS`` of numpy 2. ONNX has no limit of its own."""

_MOST_ELEMENTS = sys.maxsize // 64
"""Largest product of the extents that are not 0: two such arrays of complex128 can still be concatenated."""

_MOST_NESTED = 16
"""Largest depth of nested sequences; ONNX's operators make sequences of tensors and of maps only."""

KEY_TYPES = frozenset(
    {STRING, *("int8", "int16", "int32", "int64"), *("uint8", "uint16", "uint32", "uint64")}
)
"""Element types of a map's keys: ``TypeProto.Map.key_type`` in onnx.proto."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


def tensor(array: Array) -> Tensor:
    """Wrap an array; its numpy dtype decides the ONNX element type, and object and str become strings.

    Raises:
        TypeError: No ONNX element type corresponds to the array's dtype.
    """
    if array.dtype.kind in "OUS":
        # Not ``array.flat``, which allows 32 dimensions only.
        texts = [_text(item) for item in array.reshape(-1).tolist()]
        return Tensor(dtype=STRING, array=_strings(texts, array.shape))
    name = _NAMES.get(array.dtype)
    if name is None:
        raise TypeError(f"no ONNX element type corresponds to numpy dtype {array.dtype}")
    return Tensor(dtype=name, array=array)


def to_wire(value: Value) -> Any:
    """Return the wire form of a value; see the module's docstring."""
    if isinstance(value, Tensor):  # the frequent case, several times for each cell
        data = list(map(str, value.array.reshape(-1).tolist())) if value.dtype == STRING else pack(value)
        return {"dtype": value.dtype, "shape": list(value.array.shape), "data": data}
    if isinstance(value, Sequence):
        return {"sequence": [to_wire(item) for item in value.items]}
    if isinstance(value, Map):
        return {"keys": to_wire(value.keys), "values": to_wire(value.values)}
    return None


def from_wire(wire: Any) -> Value:
    """Rebuild a value from its wire form; a broken process may send anything.

    Raises:
        ValueError: The form is none of the four, or the data does not fill the shape.
    """
    return _from_wire(wire, _MOST_NESTED)


def _from_wire(wire: Any, depth: int) -> Value:
    if wire is None:
        return None
    if not isinstance(wire, dict):
        raise ValueError(f"not the wire form of a value: {type(wire).__name__}")  # noqa: TRY004 - bad data
    if "dtype" in wire:
        return _tensor_from_wire(wire)
    if "sequence" in wire:
        items = wire["sequence"]
        if not isinstance(items, list | tuple) or not depth:
            raise ValueError(f"not the wire form of a sequence: {type(items).__name__}")
        return Sequence(items=tuple(_from_wire(item, depth - 1) for item in items))
    if "keys" in wire:
        keys, values = (_tensor_from_wire(wire.get(part)) for part in ("keys", "values"))
        if keys.array.ndim != 1 or keys.array.shape != values.array.shape or keys.dtype not in KEY_TYPES:
            raise ValueError(
                f"{keys.dtype} keys {keys.array.shape} and values {values.array.shape} make no map"
            )
        return Map(keys=keys, values=values)
    raise ValueError("not the wire form of a value: dict")


def pack(value: Tensor) -> bytes:
    """Return the elements as ONNX's ``raw_data``: little-endian, C order, low bits first if packed."""
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


def unpack(dtype: str, shape: tuple[int, ...], data: Bytes) -> Tensor:
    """Rebuild a tensor from what ``pack`` returned.

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
    """Yield the tensors inside a value, named ``y``, ``y[0]``, ``y.keys``; None for an empty optional."""
    if isinstance(value, Sequence):
        for index, item in enumerate(value.items):
            yield from leaves(f"{name}[{index}]", item)
    elif isinstance(value, Map):
        yield f"{name}.keys", value.keys
        yield f"{name}.values", value.values
    else:
        yield name, value


def leaves_of(values: Iterable[tuple[str, Value]]) -> Iterator[tuple[str, Tensor | None]]:
    """Yield the tensors inside all of these values, named as by ``leaves``."""
    for name, value in values:
        yield from leaves(name, value)


def value_bytes(value: Value) -> int:
    """Return the bytes of memory that a value's elements take; an estimate for strings."""
    if isinstance(value, Tensor) and value.dtype != STRING:  # nearly always
        return value.array.nbytes
    total = 0
    for _, part in leaves("", value):
        if part is not None:
            total += part.array.nbytes
            if part.dtype == STRING:
                total += sum(map(sys.getsizeof, part.array.reshape(-1).tolist()))
    return total


def _tensor_from_wire(wire: Any) -> Tensor:
    if not isinstance(wire, dict):
        raise ValueError(f"not the wire form of a tensor: {type(wire).__name__}")  # noqa: TRY004 - bad data
    dtype, shape, data = wire.get("dtype"), wire.get("shape"), wire.get("data")
    if not isinstance(dtype, str) or not isinstance(shape, list | tuple):
        raise ValueError("not the wire form of a tensor: it has no element type, or no shape")  # noqa: TRY004
    shape = tuple(shape)
    if dtype != STRING:
        if not isinstance(data, Bytes):
            raise ValueError(f"{type(data).__name__} does not fill a tensor")
        return unpack(dtype, shape, data)
    if not isinstance(data, list) or len(data) != _elements(shape):
        raise ValueError(f"the data are not strings that fill string{list(shape)}")
    if not all(type(item) is str for item in data):
        raise ValueError("an element of a string tensor is not a string")
    return Tensor(dtype=STRING, array=_strings(data, shape))


def _elements(shape: tuple[int, ...]) -> int:
    """Return how many elements a shape has; ValueError if no array can have it."""
    if len(shape) > _MOST_DIMENSIONS:
        raise ValueError(f"a shape of {len(shape)} dimensions; numpy allows {_MOST_DIMENSIONS}")
    counted = 1  # one loop without a generator: this is done several times for each cell
    for extent in shape:
        if type(extent) is not int or not 0 <= extent <= sys.maxsize:
            raise ValueError(f"{list(shape)} is not a shape")
        counted *= extent or 1
    # numpy refuses extents whose product it cannot count in bytes, even if one of them is 0.
    if counted > _MOST_ELEMENTS:
        raise ValueError(f"{list(shape)} is too large for a shape")
    return 0 if 0 in shape else counted


def _strings(items: list[str], shape: tuple[int, ...]) -> Array:
    # Filled, not converted: numpy would split strings into characters, or reserve room for the longest.
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def _text(item: object) -> str:
    return item.decode("utf-8", errors="replace") if isinstance(item, bytes) else str(item)

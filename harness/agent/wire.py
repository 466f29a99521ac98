"""Conversion of values between wire form, for messages, and the form of onnxruntime."""

from __future__ import annotations

import ctypes
import functools
import importlib
import math
import re
from typing import Any

import numpy as np

from harness.agent.target_errors import UnfeedableError
from harness.agent.tensor_files import FILE_FROM, Bulk, array_bytes

# ONNX TensorProto.DataType numbers of the element types that numpy lacks, and their width in bits.
NARROW = {
    "bfloat16": (16, 16),
    "float8e4m3fn": (17, 8),
    "float8e4m3fnuz": (18, 8),
    "float8e5m2": (19, 8),
    "float8e5m2fnuz": (20, 8),
    "uint4": (21, 4),
    "int4": (22, 4),
    "float4e2m1": (23, 4),
    "float8e8m0": (24, 8),
    "uint2": (25, 2),
    "int2": (26, 2),
}
MOST_DIMENSIONS = 64 if int(np.__version__.split(".")[0]) > 1 else 32  # NPY_MAXDIMS of numpy 2, and before
_MAP_TYPE = re.compile(r"map\((\w+),tensor\((\w+)\)\)")
_MAP_DTYPES = {"float": "float32", "double": "float64", "int64": "int64", "string": "O"}


def to_feed(wire: Any) -> Any:
    """Return a value in wire form in the form that ``InferenceSession.run`` takes.

    Raises:
        UnfeedableError: The Python API cannot take it.
    """
    if wire is None:
        return None
    if "sequence" in wire:
        items = [to_feed(item) for item in wire["sequence"]]
        if any(not isinstance(item, (np.ndarray, dict, list)) for item in items):
            raise UnfeedableError("a sequence of an element type that numpy lacks")
        return items
    if "keys" in wire:
        return dict(zip(to_feed(wire["keys"]).tolist(), to_feed(wire["values"]).tolist()))
    dtype, shape, data = wire["dtype"], wire["shape"], wire["data"]
    if len(shape) > MOST_DIMENSIONS:
        raise UnfeedableError("numpy %s has no arrays of %d dimensions" % (np.__version__, len(shape)))
    if dtype == "string":
        return np.array(data, dtype=object).reshape(shape)
    if dtype not in NARROW:
        return np.frombuffer(data, dtype=dtype).reshape(shape)
    try:
        value = ort_value().ortvalue_from_shape_and_type(shape, NARROW[dtype][0])
    except Exception as error:  # onnxruntime < 1.20 accepts only numpy's types
        reason = "this onnxruntime's Python API takes no %s tensors: %s" % (dtype, error)
        raise UnfeedableError(reason) from error
    if len(data):
        ctypes.memmove(value.data_ptr(), np.frombuffer(data, np.uint8).ctypes.data, len(data))
    return value


def output_to_wire(value: Any, onnx_type: str = "") -> Any:
    """Return an output of ``InferenceSession.run`` in wire form; ``onnx_type`` has a map's element types."""
    if value is None:
        return None
    if isinstance(value, dict):
        found = _MAP_TYPE.search(onnx_type)
        kinds = [_MAP_DTYPES.get(kind) for kind in found.groups()] if found else [None, None]
        keys, values = np.array(list(value), kinds[0]), np.array(list(value.values()), kinds[1])
        return {"keys": output_to_wire(keys), "values": output_to_wire(values)}
    if isinstance(value, (list, tuple)):
        return {"sequence": [output_to_wire(item, onnx_type) for item in value]}
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        texts = [str(item).encode("utf-8", "replace").decode("utf-8") for item in array.ravel().tolist()]
        return {"dtype": "string", "shape": list(array.shape), "data": texts}
    return {"dtype": _name_of(array.dtype), "shape": list(array.shape), "data": array_bytes(array)}


@functools.lru_cache(maxsize=64)
def _name_of(dtype: Any) -> str:
    """Return numpy's name of a type, cached, because numpy builds it each time."""
    return str(dtype.name)


def value_to_wire(value: Any, narrow: str) -> Any:
    """Return an OrtValue on the CPU in wire form."""
    if not narrow:
        return output_to_wire(value.numpy())
    shape = list(value.shape())
    nbytes = (math.prod(shape) * NARROW[narrow][1] + 7) // 8
    data: Any = b""
    if nbytes >= FILE_FROM:
        memory = (ctypes.c_uint8 * nbytes).from_address(value.data_ptr())
        data = Bulk(np.ctypeslib.as_array(memory), value)
    elif nbytes:
        data = ctypes.string_at(value.data_ptr(), nbytes)
    return {"dtype": narrow, "shape": shape, "data": data}


def ort_value() -> Any:
    """Return the class ``onnxruntime.OrtValue``; the module is imported already."""
    return importlib.import_module("onnxruntime").OrtValue


def narrow_type(onnx_type: str) -> str:
    """Return ``bfloat16`` for ``tensor(bfloat16)``; an empty string for a type that numpy can hold."""
    inner = onnx_type[len("tensor(") : -1] if onnx_type.startswith("tensor(") else ""
    return inner if inner in NARROW else ""

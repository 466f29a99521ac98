"""Tensors in wire form as arrays that can be cut and joined, and back.

Elements of types that numpy lacks are kept as unsigned integers of their width.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.target_errors import UnsupportedError
from harness.agent.tensor_files import array_bytes
from harness.agent.wire import NARROW, to_feed

_STORED = {8: np.uint8, 16: np.uint16}
_SEVEN = {"bfloat16": 0x40E0}  # the bits of 7.0


class OnnxArray:
    """A tensor of an ONNX element type; its values are of numpy's type, or integers of the type's width."""

    def __init__(self, dtype: str, values: Any) -> None:
        self.dtype = dtype
        self.values = values

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        shape: tuple[int, ...] = self.values.shape
        return shape

    def like(self, values: Any) -> OnnxArray:
        """Return other elements of the same type."""
        return OnnxArray(self.dtype, values)

    def cut(self, axis: int, start: int, end: int) -> OnnxArray:
        """Return the elements from ``start`` to ``end`` along an axis."""
        return self.like(self.values[(slice(None),) * axis + (slice(start, end),)])

    def take(self, axis: int, places: Any) -> OnnxArray:
        """Return the elements at some places of an axis."""
        return self.like(np.take(self.values, places, axis))

    def full(self, axis: int, length: int) -> OnnxArray:
        """Return an array of that length along an axis, with each element 7, which makes a read visible."""
        shape = list(self.shape)
        shape[axis] = length
        seven = _SEVEN.get(self.dtype, 7)
        return self.like(np.full(shape, seven, self.values.dtype))

    def extended(self, axis: int, length: int) -> OnnxArray:
        """Return an array of that length along an axis, extended by zeros."""
        shape = list(self.shape)
        shape[axis] = length - shape[axis]
        return joined([self, self.like(np.zeros(shape, self.values.dtype))], axis)

    def floats(self) -> Any:
        """Return the elements as float32 or float64, if they are floats of a usual type."""
        if self.dtype == "bfloat16":
            return (self.values.astype(np.uint32) << 16).view(np.float32)
        return self.values.astype(np.float64 if self.dtype == "float64" else np.float32)

    def feed(self) -> Any:
        """Return it in the form that ``InferenceSession.run`` takes."""
        if self.dtype not in NARROW:
            return np.ascontiguousarray(self.values)
        return to_feed({"dtype": self.dtype, "shape": list(self.shape), "data": self.values.tobytes()})

    def wire(self) -> dict[str, Any]:
        """Return it in wire form."""
        values = np.ascontiguousarray(self.values)
        return {"dtype": self.dtype, "shape": list(self.shape), "data": array_bytes(values)}


def array_of(wire: Any) -> OnnxArray:
    """Return a tensor in wire form as an array with its own memory.

    Raises:
        UnsupportedError: It is not a tensor of numbers, or its elements are narrower than a byte.
    """
    dtype = wire.get("dtype", "") if isinstance(wire, dict) else ""
    bits = NARROW[dtype][1] if dtype in NARROW else 8
    if dtype in ("", "string") or bits not in _STORED:
        raise UnsupportedError("a cache of %s cannot be cut and joined" % (dtype or "no tensor"))
    stored = _STORED[bits] if dtype in NARROW else np.dtype(dtype)
    data = getattr(wire["data"], "view", wire["data"])
    return OnnxArray(dtype, np.frombuffer(data, stored).reshape(wire["shape"]).copy())


def joined(parts: list[OnnxArray], axis: int) -> OnnxArray:
    """Return arrays of one type, joined."""
    return parts[0].like(np.concatenate([part.values for part in parts], axis))

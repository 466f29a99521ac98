"""A serialized ONNX model, read and changed in its own bytes: a target need not have the package ``onnx``.

This file imports nothing of the harness: a bundle has a copy of it beside ``repro.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

# Field numbers of onnx.proto.
_GRAPH = 7  # of ModelProto
_NODE, _INITIALIZER = 1, 5  # of GraphProto
_OP_TYPE, _DOMAIN = 4, 7  # of NodeProto
_DIMS, _DATA_TYPE, _FLOATS, _NAME, _RAW, _DOUBLES, _EXTERNAL = 1, 2, 4, 8, 9, 10, 13  # of TensorProto
_OUTSIDE = b"\x70\x01"  # data_location of a TensorProto: EXTERNAL
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types

_NUMPY_FLOATS = {1: "<f4", 10: "<f2", 11: "<f8"}
"""ONNX's number of an element type -> numpy's name, as far as weights are changed."""

_OTHER_ACTIVATION = {b"Relu": b"Sigmoid", b"Sigmoid": b"Tanh", b"Tanh": b"Sigmoid"}
_MATRIX = 2  # dimensions
_FADE = 0.875  # for weights that are the same in reverse order


class StoredWeight:
    """An initializer whose elements lie in another file: its name, type, shape and place."""

    def __init__(self, name: str, data_type: int, shape: list[int], place: dict[str, str]) -> None:
        self.name, self.data_type, self.shape = name, data_type, shape
        self.file = place.get("location", "")
        self.offset = int(place.get("offset", "0"))
        self.nbytes = int(place.get("length", "0"))


def stored_weights(model: bytes) -> list[StoredWeight]:
    """Return the initializers whose elements lie in other files, in their order.

    Raises:
        ValueError: The bytes are no model.
    """
    found = []
    for tensor in _within(_within([memoryview(model)], _GRAPH), _INITIALIZER):
        parts = list(_fields(tensor))
        place = dict(_entry(value) for number, _, value, _ in parts if number == _EXTERNAL)
        if place:
            name, data_type, shape = _header(parts)
            found.append(StoredWeight(name, data_type, shape, place))
    return found


def with_stored_weights(model: bytes, file: str, smallest: int = 1024) -> tuple[bytes, bytes]:
    """Return the model with its large weights in another file of that name, and the content of the file.

    A weight takes ``smallest`` bytes or more, and its elements are raw or floats.
    """
    content = bytearray()

    def move(tensor: memoryview) -> bytes:
        parts = list(_fields(tensor))
        own = {_RAW, _FLOATS} if _header(parts)[1] == 1 else {_RAW}
        held = [value for number, kind, value, _ in parts if kind == _BYTES and number in own]
        if len(held) != 1 or len(held[0]) < smallest:
            return bytes(tensor)
        kept = b"".join(whole for number, _, _, whole in parts if number not in own)
        place = {"location": file, "offset": str(len(content)), "length": str(len(held[0]))}
        content.extend(held[0])
        return kept + b"".join(_bytes_field(_EXTERNAL, _of_entry(*pair)) for pair in place.items()) + _OUTSIDE

    changed = _replaced(model, {_GRAPH: lambda graph: _replaced(graph, {_INITIALIZER: move})})
    return changed, bytes(content)


def with_other_weights(model: bytes) -> bytes:
    """Return the model with its float matrices in reverse order, or faded if that is the same.

    Shapes, and vectors and scalars, which may decide shapes, stay. So do weights in other files.
    """

    def change(tensor: memoryview) -> bytes:
        _, data_type, shape = _header(list(_fields(tensor)))
        if data_type not in _NUMPY_FLOATS or len(shape) < _MATRIX:
            return bytes(tensor)
        kinds = {_RAW: _NUMPY_FLOATS[data_type], _FLOATS: "<f4", _DOUBLES: "<f8"}
        kinds = {number: kind for number, kind in kinds.items() if kind == _NUMPY_FLOATS[data_type]}
        return _replaced(tensor, {number: _other_values(kind) for number, kind in kinds.items()})

    return _replaced(model, {_GRAPH: lambda graph: _replaced(graph, {_INITIALIZER: change})})


def with_other_activations(model: bytes) -> bytes:
    """Return the model with other activation functions of the same shapes in its outermost graph."""

    def change(node: memoryview) -> bytes:
        domain = b"".join(bytes(value) for number, _, value, _ in _fields(node) if number == _DOMAIN)
        if domain not in (b"", b"ai.onnx"):
            return bytes(node)
        return _replaced(node, {_OP_TYPE: lambda name: _OTHER_ACTIVATION.get(bytes(name), bytes(name))})

    return _replaced(model, {_GRAPH: lambda graph: _replaced(graph, {_NODE: change})})


def companions(model: bytes) -> dict[str, bytes]:
    """Return models of the same shapes as this one, by what differs; none where nothing can differ.

    Raises:
        ValueError: The bytes are no model.
    """
    made = {
        "with other weights": with_other_weights(model),
        "with other activations": with_other_activations(model),
    }
    return {what: other for what, other in made.items() if other != model}


def _other_values(kind: str) -> Callable[[memoryview], bytes]:
    def change(content: memoryview) -> bytes:
        values = np.frombuffer(content, kind)
        other = values[::-1]
        if np.array_equal(other, values):
            other = (values * _FADE).astype(kind)
        return other.tobytes()

    return change


def _header(parts: list[tuple[int, int, Any, Any]]) -> tuple[str, int, list[int]]:
    """Return name, element type and shape of a tensor."""
    name, data_type = "", 0
    shape: list[int] = []
    for number, kind, value, _ in parts:
        if number == _NAME:
            name = bytes(value).decode("utf-8", "replace")
        elif number == _DATA_TYPE:
            data_type = value
        elif number == _DIMS:
            shape += [value] if kind == _VARINT else _varints(value)
    return name, data_type, shape


def _entry(entry: memoryview) -> tuple[str, str]:
    """Return key and value of a StringStringEntryProto."""
    parts = {number: bytes(value).decode("utf-8", "replace") for number, _, value, _ in _fields(entry)}
    return parts.get(1, ""), parts.get(2, "")


def _varints(content: memoryview) -> list[int]:
    found, at = [], 0
    while at < len(content):
        value, at = _varint(content, at)
        found.append(value)
    return found


def _within(messages: Any, wanted: int) -> Iterator[memoryview]:
    """Yield the messages in a field of other messages."""
    for message in messages:
        for number, kind, value, _ in _fields(message):
            if number == wanted and kind == _BYTES:
                yield value


def _replaced(message: bytes | memoryview, changes: dict[int, Callable[[memoryview], bytes]]) -> bytes:
    """Return a message in which some fields of bytes have other content."""
    made = bytearray()
    for number, kind, value, whole in _fields(memoryview(message)):
        if kind == _BYTES and number in changes:
            made += _bytes_field(number, changes[number](value))
        else:
            made += whole
    return bytes(made)


def _fields(message: memoryview) -> Iterator[tuple[int, int, Any, memoryview]]:
    """Yield number, wire type, value and all bytes of each field; a value is an integer or bytes.

    Raises:
        ValueError: This is no message.
    """
    at = 0
    while at < len(message):
        start = at
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        value: Any
        if kind == _VARINT:
            value, at = _varint(message, at)
        else:
            if kind == _BYTES:
                size, at = _varint(message, at)
            else:
                size = {_FIXED64: 8, _FIXED32: 4}.get(kind, -1)
            if size < 0 or at + size > len(message):
                raise ValueError("the model is no message of protobuf")
            value, at = message[at : at + size], at + size
        yield number, kind, value, message[start:at]


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 70:  # noqa: PLR2004 - ten bytes of seven bits
        byte = message[at]
        value, at, shift = value | (byte & 127) << shift, at + 1, shift + 7
        if byte < 128:  # noqa: PLR2004 - the last one
            return value, at
    raise ValueError("the model is no message of protobuf")


def _bytes_field(number: int, content: bytes) -> bytes:
    return _of_varint(number << 3 | _BYTES) + _of_varint(len(content)) + content


def _of_entry(key: str, value: str) -> bytes:
    """Return a StringStringEntryProto."""
    return _bytes_field(1, key.encode()) + _bytes_field(2, value.encode())


def _of_varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:  # noqa: PLR2004 - all but the last byte
        made.append(value & 127 | 128)
        value >>= 7
    return bytes((*made, value))

"""A model without the bytes of its large weights: they stay in its file, which may take 2 GiB.

What a model computes and what its values may be shows without them. So its file is not read into memory, but
walked: protobuf writes the length of each field before it.
"""

import itertools
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import TYPE_CHECKING, NamedTuple

from harness.corpus.model.external import make_external
from harness.corpus.model.protos import parse_proto

if TYPE_CHECKING:
    import onnx

WEIGHTS_FILE = "weights.onnx"
"""The copy of a model's file beside what is derived from it."""

LARGE = 1 << 20
"""Bytes of a model, or of a weight, from which on it is worth while."""

LEAST_WEIGHT_BYTES = 1 << 16
"""Bytes from which on a weight stays in the file where many models are derived."""

_FIRST_BYTES = 1 << 13
"""Bytes at the beginning of a weight by which ``is_kept`` decides."""

_MOST_FIELDS = 64
"""Of a tensor. Old files have a field for each element."""

_LENGTH, _VARINT, _FIXED = 2, 0, {1: 8, 5: 4}
"""Types of fields, as protobuf numbers them; the fixed ones with their bytes."""

IsKept = Callable[["onnx.TensorProto", bytes], bool]
"""A weight without elements, and the first bytes of these -> whether they stay in the model."""


def none_is_kept(_weight: "onnx.TensorProto", _first: bytes) -> bool:
    """Return that no large weight stays in the model."""
    return False


class _Field(NamedTuple):
    """A field of a message: its number, and where in the file it begins, its content begins, and both end."""

    number: int
    at: int
    start: int
    end: int


class _NotPlainError(Exception):
    """The file is no model, or none as it is commonly written."""


def lean_content(
    file: BufferedReader, least_bytes: int = LARGE, beside: str = "", is_kept: IsKept = none_is_kept
) -> bytes | None:
    """Return the content of a model's file without the bytes of large weights; None if it has none.

    Args:
        file: The model, open for reading.
        least_bytes: Bytes from which on a weight counts as large.
        beside: Name of a copy of the file, from which a large weight is read; empty: it has no elements.
        is_kept: Whether a large weight stays in the model.
    """
    import onnx

    try:
        end = file.seek(0, 2)
        graphs = [one for one in _fields(file, 0, end) if one.number == onnx.ModelProto.GRAPH_FIELD_NUMBER]
        if len(graphs) != 1:  # protobuf would merge them
            return None
        (graph,) = graphs
        parts, at = [], graph.start
        for one in _fields(file, graph.start, graph.end):
            if one.number != onnx.GraphProto.INITIALIZER_FIELD_NUMBER or one.end - one.start < least_bytes:
                continue
            weight = _lean_weight(file, one, least_bytes, beside, is_kept)
            if weight is not None:
                parts += [_bytes(file, at, one.at), _field_of(one.number, weight)]
                at = one.end
        if not parts:
            return None
        inside = b"".join([*parts, _bytes(file, at, graph.end)])
        return _bytes(file, 0, graph.at) + _field_of(graph.number, inside) + _bytes(file, graph.end, end)
    except _NotPlainError:
        return None


def _lean_weight(
    file: BufferedReader, field: _Field, least_bytes: int, beside: str, is_kept: IsKept
) -> bytes | None:
    """Return a weight without its elements; None if they stay."""
    import onnx

    fields = list(itertools.islice(_fields(file, field.start, field.end), _MOST_FIELDS))
    raw = [one for one in fields if one.number == onnx.TensorProto.RAW_DATA_FIELD_NUMBER]
    if len(raw) != 1 or len(fields) == _MOST_FIELDS or raw[0].end - raw[0].start < least_bytes:
        return None
    start, end = raw[0].start, raw[0].end
    content = _bytes(file, field.start, raw[0].at) + _bytes(file, end, field.end)
    try:
        weight: onnx.TensorProto = parse_proto(onnx.TensorProto, content)
    except ValueError as error:
        raise _NotPlainError from error
    first = _bytes(file, start, min(end, start + _FIRST_BYTES))
    if weight.data_location == weight.EXTERNAL or is_kept(weight, first):
        return None
    if beside:
        make_external(weight, beside, start, end - start)
    return bytes(weight.SerializeToString())


def _fields(file: BufferedReader, at: int, end: int) -> Iterator[_Field]:
    """Yield the fields of a message; the file may be read elsewhere in between.

    Raises:
        _NotPlainError: It is no message, or has fields of a kind that ONNX does not use.
    """
    while at < end:
        file.seek(at)
        number, kind = divmod(_varint(file), 8)
        start = file.tell()
        if kind == _LENGTH:
            size = _varint(file)
            start = file.tell()
            stop = start + size
        elif kind == _VARINT:
            _varint(file)
            stop = file.tell()
        else:
            stop = start + _FIXED.get(kind, end)
        if stop > end:
            raise _NotPlainError
        yield _Field(number, at, start, stop)
        at = stop


def _varint(file: BufferedReader) -> int:
    """Return the next number: seven bits in each byte, the lowest first."""
    value = 0
    for shift in range(0, 64, 7):
        byte = file.read(1)
        if not byte:
            break
        value |= (byte[0] & 127) << shift
        if byte[0] < 128:  # noqa: PLR2004 - no other byte follows
            return value
    raise _NotPlainError


def _field_of(number: int, content: bytes) -> bytes:
    """Return a field with content of some length."""
    return _as_varint(8 * number + _LENGTH) + _as_varint(len(content)) + content


def _as_varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:  # noqa: PLR2004 - another byte follows
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _bytes(file: BufferedReader, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)

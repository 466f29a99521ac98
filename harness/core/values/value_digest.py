"""Digests of values, bit by bit: equal digests, equal values."""

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np

from harness.core.values.value import BITS, STRING, Array, Map, NamedValues, Sequence, Tensor, Value, pack

SHORT_DIGITS = 16
"""Digits of a short digest: enough to tell the goldens of one model apart."""


def values_digest(sets: Iterable[NamedValues]) -> str:
    """Return SHA-256 (hexadecimal) over all values of all data sets, with their names, types and shapes."""
    digest = hashlib.sha256()
    for values in sets:
        for name, value in values:
            digest.update(repr(name).encode("utf-8", "backslashreplace"))
            for part in _parts(value):
                digest.update(part)
    return digest.hexdigest()


def short_digest(sets: Iterable[NamedValues]) -> str:
    """Return the first ``SHORT_DIGITS`` of ``values_digest``, for a record."""
    return values_digest(sets)[:SHORT_DIGITS]


def _parts(value: Value) -> Iterator[bytes | memoryview]:
    match value:
        case Tensor():
            yield repr((value.dtype, list(value.array.shape))).encode()
            yield _data(value)
        case Sequence():
            yield b"sequence %d" % len(value.items)
            for item in value.items:
                yield from _parts(item)
        case Map():
            yield b"map"
            yield from _parts(value.keys)
            yield from _parts(value.values)
        case None:
            yield b"none"


def _data(value: Tensor) -> bytes | memoryview:
    """Return the elements; large tensors are not copied."""
    if value.dtype == STRING:
        texts = list(map(str, value.array.reshape(-1).tolist()))
        return repr(texts).encode("utf-8", "backslashreplace")
    if value.dtype in BITS:
        return pack(value)
    elements: Array = np.ascontiguousarray(value.array).reshape(-1).view(np.uint8)
    return elements.data

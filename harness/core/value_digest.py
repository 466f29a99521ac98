"""A digest of values, bit by bit: equal digests, equal values."""

import hashlib
from collections.abc import Iterable, Iterator

from harness.core.value import Map, NamedValues, Sequence, Tensor, Value, to_wire


def values_digest(sets: Iterable[NamedValues]) -> str:
    """Return SHA-256 (hexadecimal) over all values of all data sets, with their names, types and shapes."""
    digest = hashlib.sha256()
    for values in sets:
        for name, value in values:
            digest.update(repr(name).encode("utf-8", "backslashreplace"))
            for part in _parts(value):
                digest.update(part)
    return digest.hexdigest()


def _parts(value: Value) -> Iterator[bytes]:
    match value:
        case Tensor():
            wire = to_wire(value)
            data = wire["data"]
            yield repr((wire["dtype"], wire["shape"])).encode()
            yield repr(data).encode("utf-8", "backslashreplace") if isinstance(data, list) else data
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

"""Tables of a FlatBuffer, as https://flatbuffers.dev/internals describes them, read from untrusted bytes.

A table begins with the distance to its vtable, which has the position of each field by its slot. Every
position is checked against the end of the bytes. Parts may be shared, so a budget limits the total that is
read.
"""

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from harness.core.values.value import Array

_INT = struct.Struct("<i")
_UNSIGNED = struct.Struct("<I")
_SHORT = struct.Struct("<H")


class ByteBudget:
    """The number of bytes that may still be read.

    Without shared parts, reading a file takes at most its size.
    """

    def __init__(self, nbytes: int) -> None:
        self._left = nbytes

    def take(self, nbytes: int) -> None:
        """Take some bytes.

        Raises:
            ValueError: Fewer bytes are left.
        """
        self._left -= nbytes
        if self._left < 0:
            raise ValueError("parts of the file are shared so often that they take many times its size")


class Table:
    """A table at a place. A field that is missing has a default.

    Every method raises ``ValueError`` if the file ends before what it reads.
    """

    def __init__(self, content: bytes, place: int, budget: ByteBudget) -> None:
        budget.take(4)
        self._content, self._place, self._budget = content, place, budget
        self._vtable = place - self._read(_INT, place)
        self._size = self._read(_SHORT, self._vtable)

    def number(self, slot: int, form: str, default: int = 0) -> Any:
        """Return a number by its form of ``struct``, such as ``q``."""
        place = self._field(slot)
        return self._read(struct.Struct(f"<{form}"), place) if place else default

    def table(self, slot: int) -> "Table | None":
        """Return a table; None if it is missing."""
        place = self._field(slot)
        return Table(self._content, self._target(place), self._budget) if place else None

    def tables(self, slot: int) -> "Iterator[Table]":
        """Yield the tables of a list."""
        for place in self._places(slot):
            yield Table(self._content, self._target(place), self._budget)

    def text(self, slot: int) -> str:
        """Return a text, without bytes that are not UTF-8; empty if it is missing."""
        place = self._field(slot)
        return self._string(place).decode("utf-8", "replace") if place else ""

    def string(self, slot: int) -> bytes:
        """Return the bytes of a text; empty if it is missing."""
        place = self._field(slot)
        return self._string(place) if place else b""

    def strings(self, slot: int) -> Iterator[bytes]:
        """Yield the bytes of each text of a list."""
        for place in self._places(slot):
            yield self._string(place)

    def array(self, slot: int, dtype: str) -> Array:
        """Return a list of numbers."""
        place = self._field(slot)
        if not place:
            return np.zeros(0, dtype)
        kind = np.dtype(dtype)
        start, count = self._list(self._target(place), kind.itemsize)
        return np.frombuffer(self._content, kind, count, start)

    def _field(self, slot: int) -> int:
        """Return the position of a field; 0 if the table lacks it."""
        offset = self._read(_SHORT, self._vtable + slot) if slot < self._size else 0
        return self._place + offset if offset else 0

    def _places(self, slot: int) -> range:
        place = self._field(slot)
        if not place:
            return range(0)
        start, count = self._list(self._target(place), 4)
        return range(start, start + 4 * count, 4)

    def _string(self, place: int) -> bytes:
        start, count = self._list(self._target(place), 1)
        return self._content[start : start + count]

    def _list(self, place: int, size: int) -> tuple[int, int]:
        """Return where the items of a list begin, and how many there are."""
        count = self._read(_UNSIGNED, place)
        if place + 4 + count * size > len(self._content):
            raise ValueError(_SHORT_FILE)
        self._budget.take(count * size)
        return place + 4, count

    def _target(self, place: int) -> int:
        return place + int(self._read(_UNSIGNED, place))

    def _read(self, form: struct.Struct, place: int) -> Any:
        if not 0 <= place <= len(self._content) - form.size:
            raise ValueError(_SHORT_FILE)
        return form.unpack_from(self._content, place)[0]


_OF_NAMES = 64 << 20
_SHORT_FILE = "the file ends before what it refers to"


def root_of(content: bytes) -> Table:
    """Return the table at the beginning of a FlatBuffer.

    Raises:
        ValueError: There is none.
    """
    if len(content) < _UNSIGNED.size:
        raise ValueError(_SHORT_FILE)
    # onnxruntime shares equal names, of which a graph has many.
    return Table(content, _UNSIGNED.unpack_from(content)[0], ByteBudget(4 * len(content) + _OF_NAMES))

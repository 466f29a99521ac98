"""Reads the numbers of unwind tables, one after the other."""

from __future__ import annotations

from collections.abc import Callable

Read = Callable[[int, int], bytes]
"""Returns so many bytes (second) from an address (first); raises OSError if they cannot be read."""

OMITTED = 0xFF
"""The pointer encoding for an omitted value."""

_MOST_LEB_BYTES = 10
_MOST_TEXT = 64
_FORMATS = {
    0: (8, False),
    2: (2, False),
    3: (4, False),
    4: (8, False),
    0xA: (2, True),
    0xB: (4, True),
    0xC: (8, True),
}
_UNSIGNED_LEB, _SIGNED_LEB = 1, 9
_RELATIVE_TO_PLACE, _RELATIVE_TO_TABLE, _INDIRECT = 0x10, 0x30, 0x80
WORD = (1 << 64) - 1


class UnwindError(Exception):
    """A table contains something unknown."""


class Reader:
    """A place in memory that advances with each read."""

    def __init__(self, read: Read, at: int) -> None:
        self._read = read
        self.at = at

    def number(self, size: int, *, signed: bool = False) -> int:
        """Return a number of fixed size."""
        content = self._read(self.at, size)
        self.at += size
        return int.from_bytes(content, "little", signed=signed)

    def leb(self) -> int:
        """Return an unsigned number of variable size."""
        return self._leb()[0]

    def signed_leb(self) -> int:
        """Return a signed number of variable size."""
        value, bits, last = self._leb()
        return value - (1 << bits) if last & 0x40 else value

    def _leb(self) -> tuple[int, int, int]:
        value = 0
        for index in range(_MOST_LEB_BYTES):
            byte = self.number(1)
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:  # noqa: PLR2004 - the bit for "more follows"
                return value, 7 * (index + 1), byte
        raise UnwindError("a number without an end")

    def text(self) -> bytes:
        """Return a short text up to its terminating zero."""
        content = bytearray()
        while byte := self.number(1):
            content.append(byte)
            if len(content) > _MOST_TEXT:
                raise UnwindError("a text without an end")
        return bytes(content)

    def pointer(self, encoding: int, table: int = 0) -> int:
        """Return a pointer in an encoding of the Linux Standard Base ("DWARF Exception Header Encoding").

        Some are relative to ``table``, the address of ``.eh_frame_hdr``.
        """
        place, form = self.at, encoding & 0xF
        if form == _UNSIGNED_LEB:
            value = self.leb()
        elif form == _SIGNED_LEB:
            value = self.signed_leb()
        elif form in _FORMATS:
            size, signed = _FORMATS[form]
            value = self.number(size, signed=signed)
        else:
            raise UnwindError("pointer encoding %#x" % encoding)
        relation = encoding & 0x70
        if relation == _RELATIVE_TO_PLACE:
            value += place
        elif relation == _RELATIVE_TO_TABLE:
            value += table
        elif relation:
            raise UnwindError("pointer encoding %#x" % encoding)
        value &= WORD
        if encoding & _INDIRECT:
            value = Reader(self._read, value).number(8)
        return value

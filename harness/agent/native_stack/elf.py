"""Libraries in ELF, in memory and on disk: their unwind tables and their symbols."""

from __future__ import annotations

import mmap
import os
import stat
import struct
from bisect import bisect_right
from typing import NamedTuple

from harness.agent.native_stack.reader import Read

LOAD, DYNAMIC, UNWIND_TABLE = 1, 2, 0x6474E550
SYMBOL_TABLES = (2, 11)
"""Types of sections: first the one with all symbols, then the one with only exported symbols."""

HASH, STRINGS, _SYMBOLS, GNU_HASH = 4, 5, 6, 0x6FFFFEF5
FUNCTION_TYPES = (0, 2, 10)
"""Types of symbols that name code: none (assembler), function, indirect function."""

SYMBOL_BYTES = 24
COMPARED_BYTES = 512
_MOST_ENTRIES = 1 << 12
_MOST_SYMBOLS = 1 << 21
_MOST_NAME = 1 << 12


class ElfError(Exception):
    """It is not a 64-bit ELF file, or it is damaged."""


class LibrarySymbol(NamedTuple):
    """A symbol: its name from the compiler, and its address in the library."""

    name: str
    start: int


class Symbols:
    """A table of symbols, searched by address."""

    def __init__(self, table: bytes, strings: bytes) -> None:
        count = min(len(table) // SYMBOL_BYTES, _MOST_SYMBOLS)
        self._table, self._strings = table, strings
        # Fields: name 4, type 1, other 1, section 2, value 8, size 8. A slice is much faster than a loop.
        kinds = table[4 : count * SYMBOL_BYTES : SYMBOL_BYTES]
        numbers = memoryview(table[: count * SYMBOL_BYTES]).cast("Q")
        starts = numbers[1::3].tolist()
        self._sorted = sorted(
            (start, index)
            for index, (start, kind) in enumerate(zip(starts, kinds))
            if start and kind & 15 in FUNCTION_TYPES
        )

    def find(self, address: int) -> LibrarySymbol | None:
        """Return the symbol whose code contains an address; sizes of symbols are trusted."""
        index = bisect_right(self._sorted, (address, len(self._table))) - 1
        if index < 0:
            return None
        nearest = self._sorted[index][0]
        while index >= 0 and self._sorted[index][0] == nearest:
            found = self._symbol(self._sorted[index][1], address)
            if found is not None:
                return found
            index -= 1
        return None

    def _symbol(self, index: int, address: int) -> LibrarySymbol | None:
        name, _, _, section, start, size = struct.unpack_from("<IBBHQQ", self._table, index * SYMBOL_BYTES)
        if not section or (size and address >= start + size) or name >= len(self._strings):
            return None
        text = self._strings[name : name + _MOST_NAME].split(b"\0", 1)[0].decode("utf-8", "replace")
        return LibrarySymbol(text, start) if text else None


class Image:
    """A mapped library; the beginning of its file is at ``base``.

    Raises:
        ElfError: There is no library.
        OSError: It cannot be read.
    """

    def __init__(self, read: Read, base: int) -> None:
        self._read = read
        self._base = base
        head = read(base, 64)
        if head[:6] != b"\x7fELF\x02\x01":
            raise ElfError("no ELF of 64 bits")
        start, entry_bytes, count = _header(head, 32, 54)
        self._entries = [
            struct.unpack("<IIQQQQQQ", read(base + start + index * entry_bytes, 56)) for index in range(count)
        ]
        first = next((entry[3] - entry[2] for entry in self._entries if entry[0] == LOAD), 0)
        self.bias = base - first
        """The offset that is added to an address of the library's own tables."""

    @property
    def unwind_table(self) -> int | None:
        """Return the address of ``.eh_frame_hdr``, if it has one."""
        return self._address_of(UNWIND_TABLE)

    def _address_of(self, kind: int) -> int | None:
        return next((entry[3] + self.bias for entry in self._entries if entry[0] == kind), None)

    def symbols(self, path: str) -> Symbols | None:
        """Return its symbols: from its file if that is unchanged, else those that the loader needs.

        Raises:
            ElfError, OSError, struct.error: It is damaged.
        """
        try:
            same = file_symbols(path, self._read(self._base, COMPARED_BYTES))
        except (ElfError, OSError, ValueError, struct.error):
            same = None
        return same or self._exported_symbols()

    def _exported_symbols(self) -> Symbols | None:
        """Return the symbols of the dynamic section, which are in memory."""
        at = self._address_of(DYNAMIC)
        if at is None:
            return None
        found: dict[int, int] = {}
        for index in range(_MOST_ENTRIES):
            tag, value = struct.unpack("<QQ", self._read(at + 16 * index, 16))
            if not tag:
                break
            # glibc turns these into addresses; musl, and Linux for its own library, do not.
            found[tag] = value if value >= self._base else value + self.bias
        if _SYMBOLS not in found or STRINGS not in found:
            return None
        table = self._read(found[_SYMBOLS], min(self._count(found), _MOST_SYMBOLS) * SYMBOL_BYTES)
        used = (
            max(table[offset : offset + 4][::-1] for offset in range(0, len(table), SYMBOL_BYTES))
            if table
            else b""
        )
        size = int.from_bytes(used, "big")
        return Symbols(table, self._read(found[STRINGS], size) + self._ending(found[STRINGS] + size))

    def _ending(self, at: int) -> bytes:
        content = bytearray()
        try:
            while (byte := self._read(at + len(content), 1)) != b"\0" and len(content) < _MOST_NAME:
                content += byte
        except OSError:
            pass
        return bytes(content) + b"\0"

    def _count(self, found: dict[int, int]) -> int:
        """Return the number of symbols, which only the hash tables show."""
        if HASH in found:
            return int(struct.unpack("<II", self._read(found[HASH], 8))[1])
        if GNU_HASH not in found:
            return 0
        at = found[GNU_HASH]
        buckets, offset, bloom, _ = struct.unpack("<IIII", self._read(at, 16))
        buckets = min(buckets, _MOST_SYMBOLS)
        chains = at + 16 + 8 * bloom + 4 * buckets
        last = max(struct.unpack("<%dI" % buckets, self._read(chains - 4 * buckets, 4 * buckets)), default=0)
        if last < offset:
            return int(offset)
        for index in range(last - offset, _MOST_SYMBOLS):  # the lowest bit ends a chain
            if self._read(chains + 4 * index, 1)[0] & 1:
                return int(index + offset + 1)
        return 0


def file_symbols(path: str, beginning: bytes) -> Symbols | None:
    """Return all symbols in a library's file or, if it is stripped, the exported ones; None if it has none.

    If the file does not begin with ``beginning``, another file has replaced it: return None, too.

    Raises:
        ElfError, ValueError, struct.error: It is damaged.
    """
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as content:
            if content[: len(beginning)] != beginning:
                return None
            start, entry_bytes, count = _header(content[:64], 40, 58)
            sections = [
                struct.unpack_from("<IIQQQQIIQQ", content, start + index * entry_bytes)
                for index in range(count)
            ]
            for wanted in SYMBOL_TABLES:
                for section in sections:
                    if section[1] == wanted and section[6] < count:
                        both = (section, sections[section[6]])
                        return Symbols(*(content[one[4] : one[4] + one[5]] for one in both))
            return None
    finally:
        os.close(handle)


def _header(head: bytes, place: int, sizes: int) -> tuple[int, int, int]:
    """Return the start of a table in an ELF header, and the size and number of its entries."""
    (start,) = struct.unpack_from("<Q", head, place)
    entry_bytes, count = struct.unpack_from("<HH", head, sizes)
    if count > _MOST_ENTRIES:
        raise ElfError("%d entries" % count)
    return start, entry_bytes, count

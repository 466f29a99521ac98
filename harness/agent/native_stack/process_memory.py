"""The memory of another process: its bytes, and the place of each file in it."""

from __future__ import annotations

import os
import re
import struct
from bisect import bisect_right
from typing import NamedTuple

from harness.agent.posix import read_at

PAGE = 4096
ADDRESSES = 1 << 48
"""No memory of programs lies beyond this address."""

DELETED = " (deleted)"

_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (....) ([0-9a-f]+) \S+ \d+ *(.*)")
_ESCAPED = re.compile(r"\\([0-7]{3})")


class Memory:
    """Reads the memory of a process, page by page.

    Every page is kept, because tables are read in small pieces.
    """

    def __init__(self, pid: int) -> None:
        self._file = os.open("/proc/%d/mem" % pid, os.O_RDONLY)
        self._pages: dict[int, bytes] = {}

    def close(self) -> None:
        """Close it."""
        os.close(self._file)

    def read(self, address: int, size: int) -> bytes:
        """Return so many bytes."""
        if not 0 <= address <= ADDRESSES - size:
            raise OSError("no memory at %#x" % address)
        first, last = address // PAGE, (address + size - 1) // PAGE
        content = b"".join(self._page(number) for number in range(first, last + 1))
        start = address - first * PAGE
        return content[start : start + size]

    def word(self, address: int) -> int:
        """Return the 8 bytes there as a number."""
        (value,) = struct.unpack("<Q", self.read(address, 8))
        return int(value)

    def _page(self, number: int) -> bytes:
        if number not in self._pages:
            content = read_at(self._file, PAGE, number * PAGE)
            if len(content) < PAGE:
                raise OSError("no memory at %#x" % (number * PAGE))
            self._pages[number] = content
        return self._pages[number]


class Mapping(NamedTuple):
    """A piece of a process's address space.

    Attributes:
        path: Its file, or a name in brackets; empty if it has none.
        base: Address of the beginning of its file; None if that is not mapped.
    """

    start: int
    end: int
    is_code: bool
    path: str
    base: int | None


class Space:
    """The mappings of a process, from the text of ``/proc/PID/maps``."""

    def __init__(self, text: str) -> None:
        bases: dict[str, int] = {}
        self._mappings = []
        for line in text.splitlines():
            match = _LINE.fullmatch(line)
            if match is None:
                continue
            start, end, offset = (int(match[group], 16) for group in (1, 2, 4))
            path = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), match[5])
            if offset == 0 and path:
                bases[path] = start
            self._mappings.append(Mapping(start, end, "x" in match[3], path, bases.get(path)))
        self._starts = [mapping.start for mapping in self._mappings]

    def find(self, address: int) -> Mapping | None:
        """Return the mapping at an address."""
        index = bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._mappings[index].end:
            return self._mappings[index]
        return None

    def is_code(self, address: int) -> bool:
        """Return whether there is code at an address."""
        mapping = self.find(address)
        return mapping is not None and mapping.is_code

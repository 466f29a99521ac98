"""A cache of the most recently used entries, limited in number and in bytes."""

from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec

K = TypeVar("K")
V = TypeVar("V")

NBYTES = 256 << 20
"""Bytes of memory for a run's models, and again for its goldens: small next to the memory of a process."""


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of a cache: entries, and bytes of their values."""

    count: int = 4096
    nbytes: int = NBYTES


class LruCache(Generic[K, V]):
    """A mapping that drops the least recently used entries. It always keeps the newest one."""

    def __init__(self, count: int, nbytes: int = NBYTES) -> None:
        self._count = count
        self._nbytes = nbytes
        self._taken = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        """Return the value of a key, which counts as a use; None without one."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, nbytes: int) -> None:
        """Store a value of so many bytes; drop others if there is no room."""
        self.drop(key)
        self._entries[key] = value, nbytes
        self._taken += nbytes
        while len(self._entries) > 1 and (len(self._entries) > self._count or self._taken > self._nbytes):
            self.drop(next(iter(self._entries)))

    def drop(self, key: K) -> None:
        """Drop a key, if it exists."""
        self._taken -= self._entries.pop(key, (None, 0))[1]

"""Choices and numbers that are the same on every machine, Python and numpy, from a key of integers.

Scalars come from the bits of Python's Mersenne Twister, arrays from those of numpy's Philox. Both promise the
same bits for ever; their distributions do not. All numbers are dyadic, so nothing is rounded.
"""

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from harness.core.values.value import Array

_T = TypeVar("_T")


class ChoiceStream:
    """A stream of choices that derives from a key."""

    def __init__(self, *key: int) -> None:
        digest = hashlib.blake2b(repr(key).encode(), digest_size=16).digest()
        self._random = random.Random(int.from_bytes(digest, "big"))  # noqa: S311 - not for secrets

    def below(self, count: int) -> int:
        """Return a whole number from 0 to ``count`` - 1; the bias of the remainder is below 2^-50."""
        return self._random.getrandbits(64) % count

    def between(self, low: int, high: int) -> int:
        """Return a whole number from ``low`` to ``high``, both included."""
        return low + self.below(high - low + 1)

    def chance(self, percent: int) -> bool:
        """Return whether something of this probability happens."""
        return self.below(100) < percent

    def pick(self, items: Sequence[_T]) -> _T:
        """Return one of the items."""
        return items[self.below(len(items))]

    def some(self, items: Sequence[_T], count: int) -> list[_T]:
        """Return ``count`` different items in random order."""
        left = list(items)
        return [left.pop(self.below(len(left))) for _ in range(count)]

    def order(self, count: int) -> list[int]:
        """Return a permutation of 0 to ``count`` - 1."""
        return self.some(range(count), count)

    def bits(self, count: int) -> Array:
        """Return ``count`` random uint64."""
        generator = np.random.Philox(key=self._random.getrandbits(64))
        return np.asarray(generator.random_raw(count), np.uint64)

    def whole(self, shape: Sequence[int], low: int, high: int) -> Array:
        """Return whole numbers from ``low`` to ``high``, both included, int64."""
        count = int(np.prod(shape, dtype=np.int64))
        offset = (self.bits(count) >> np.uint64(16)) % np.uint64(high - low + 1)
        return (offset.astype(np.int64) + low).reshape(tuple(shape))

    def permuted(self, count: int) -> Array:
        """Return 0 to ``count`` - 1 in random order, int64."""
        return np.argsort(self.bits(count), kind="stable").astype(np.int64)

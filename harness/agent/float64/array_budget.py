"""The bytes that the values of a running model occupy, and a limit on them."""

from __future__ import annotations

from typing import Any

import numpy as np

_UNIT = 2.0**30


class ArrayBudget:
    """Counts arrays while they are held; two views of one array count once.

    Args:
        limit: Most bytes that may be held at once.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.held = 0
        self._owners: dict[int, int] = {}

    def need(self, nbytes: float) -> None:
        """Check that so many additional bytes are within the limit.

        Raises:
            MemoryError: They are not.
        """
        if self.held + nbytes > self.limit:
            raise MemoryError(
                "it needs %.2g GiB in float64, more than %.2g GiB"
                % ((self.held + nbytes) / _UNIT, self.limit / _UNIT)
            )

    def hold(self, value: Any) -> None:
        """Count a value; MemoryError if it exceeds the limit."""
        for owner in _owners(value):
            known = self._owners.get(id(owner), 0)
            self._owners[id(owner)] = known + 1
            if not known:
                self.held += owner.nbytes
        self.need(0)

    def drop(self, value: Any) -> None:
        """Stop counting a value."""
        for owner in _owners(value):
            left = self._owners.get(id(owner), 0) - 1
            if left > 0:
                self._owners[id(owner)] = left
            elif left == 0:
                del self._owners[id(owner)]
                self.held -= owner.nbytes


def _owners(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [owner for item in value for owner in _owners(item)]
    if not isinstance(value, np.ndarray):
        return []
    while isinstance(value.base, np.ndarray):
        value = value.base
    return [value]

"""The inputs of a run, which no provider may change: onnxruntime passes it the caller's own memory."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from harness.agent.safe_text import clean

WHOLE_BYTES = 64 << 10
"""Bytes of an input up to which it is compared as a whole.

For a larger one ``BLOCKS`` blocks are compared, evenly spaced, with as many bytes in all: an in-place
computation changes all of it.
"""

BLOCKS = 16


class Fed:
    """The arrays of numbers among some inputs, with their content at creation."""

    def __init__(self, feeds: dict[str, Any]) -> None:
        self.sums = [
            (name, feed, _sum(feed))
            for name, feed in feeds.items()
            if type(feed) is np.ndarray and feed.dtype.kind != "O" and feed.flags.c_contiguous
        ]

    def overwritten(self) -> str:
        """Return which of them have changed, in words; empty if none has."""
        names = [name for name, feed, before in self.sums if _sum(feed) != before]
        if not names:
            return ""
        shown = ", ".join(clean(name, limit=60) for name in names[:3])
        return "it wrote into the input%s %s" % ("" if len(names) == 1 else "s", shown)


def _sum(array: Any) -> int:
    if array.nbytes <= WHOLE_BYTES:
        return zlib.crc32(array)
    flat = array.reshape(-1).view(np.uint8)
    size, last = WHOLE_BYTES // BLOCKS, flat.size - WHOLE_BYTES // BLOCKS
    found = 0
    for block in range(BLOCKS):
        start = last * block // (BLOCKS - 1)
        found = zlib.crc32(flat[start : start + size], found)
    return found

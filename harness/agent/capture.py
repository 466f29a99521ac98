"""What a provider and its libraries print, caught at the level of descriptors."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import sys
import tempfile
from typing import Any

from harness.agent.text import OUTPUT_LIMIT


class Capture:
    """Collects at descriptor level what the provider and its libraries print.

    A local harness hands over an append-mode file as stderr, which it can still read when this process has
    died. Elsewhere (ssh, a container) stderr is a pipe, and a file of our own takes its place.
    """

    def __init__(self) -> None:
        if not stat.S_ISREG(os.fstat(2).st_mode):
            handle, path = tempfile.mkstemp(prefix="ep-harness-")
            os.close(handle)
            self.file = open(path, "a+b", buffering=0)  # noqa: SIM115 - lives as long as the process
            os.dup2(self.file.fileno(), 2)
            if os.name == "posix":
                os.unlink(path)
        os.dup2(2, 1)
        self.flush: Any = None
        with contextlib.suppress(OSError, AttributeError):  # else what C code prints comes at exit
            self.flush = ctypes.CDLL(None if os.name == "posix" else "msvcrt").fflush

    def peek(self) -> str:
        """What was printed since the last ``take``: its head and its tail, with the cut marked."""
        sys.stdout.flush()
        sys.stderr.flush()
        if self.flush:
            self.flush(None)
        size = os.fstat(2).st_size
        if not size:
            return ""
        half = OUTPUT_LIMIT // 2
        os.lseek(2, 0, os.SEEK_SET)
        data = os.read(2, min(size, OUTPUT_LIMIT))
        if size > OUTPUT_LIMIT:
            os.lseek(2, -half, os.SEEK_END)
            cut = b"\n[... %d bytes cut ...]\n" % (size - OUTPUT_LIMIT)
            data = data[:half] + cut + os.read(2, half)
        return data.decode("utf-8", "replace")

    def take(self, *, keep: bool = False) -> str:
        """``peek``, then start anew unless ``keep``."""
        text = self.peek()
        if text and not keep:
            os.ftruncate(2, 0)
        return text

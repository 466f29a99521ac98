"""Output of a provider and its libraries, captured at the level of descriptors."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import sys
from typing import Any

from harness.agent.safe_text import OUTPUT_LIMIT


class Capture:
    """Collects the output to the descriptors 1 and 2 in a file.

    A local harness passes an append-mode file as stderr, which remains readable after this process has died.
    Elsewhere (ssh, a container) stderr is a pipe, and a temporary file takes its place.
    """

    def __init__(self) -> None:
        if not stat.S_ISREG(os.fstat(2).st_mode):
            import tempfile  # takes milliseconds

            handle, path = tempfile.mkstemp(prefix="ep-harness-")
            os.close(handle)
            self.file = open(path, "a+b", buffering=0)  # noqa: SIM115 - lives as long as the process
            os.dup2(self.file.fileno(), 2)
            if os.name == "posix":
                os.unlink(path)
        os.dup2(2, 1)
        self.nbytes = 0
        """Bytes of the output that was last taken."""
        self.flush: Any = None
        with contextlib.suppress(OSError, AttributeError):  # without it, C code's output comes at exit
            self.flush = ctypes.CDLL(None if os.name == "posix" else "msvcrt").fflush

    def take(self, *, keep: bool = False) -> str:
        """Return the output since the last call: its head and its tail, with the cut marked.

        With ``keep``, the next call returns this output again.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        if self.flush:
            self.flush(None)
        size = self.nbytes = os.fstat(2).st_size
        if not size:
            return ""
        half = OUTPUT_LIMIT // 2
        os.lseek(2, 0, os.SEEK_SET)
        data = os.read(2, min(size, OUTPUT_LIMIT))
        if size > OUTPUT_LIMIT:
            os.lseek(2, -half, os.SEEK_END)
            cut = b"\n[... %d bytes cut ...]\n" % (size - OUTPUT_LIMIT)
            data = data[:half] + cut + os.read(2, half)
        if not keep:
            os.ftruncate(2, 0)
        return data.decode("utf-8", "replace")

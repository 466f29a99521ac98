"""Figures of this process: memory, threads, open descriptors."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

from harness.agent.posix import read_at


class _Status:
    """Linux's status of this process; empty elsewhere. The file stays open, read for each model."""

    def __init__(self) -> None:
        self.latest = b""
        try:
            self.file: int | None = os.open("/proc/self/status", os.O_RDONLY)
        except OSError:
            self.file = None

    def read(self) -> bytes:
        """Return the text as it is now."""
        if self.file is not None:
            with contextlib.suppress(OSError):
                self.latest = read_at(self.file, 8192)
        return self.latest


STATUS = _Status()


def figure(name: str, *, again: bool = True) -> int | None:
    """Return a figure of ``/proc/self/status``, such as ``Threads``; memory in KiB. None elsewhere.

    Without ``again`` it is that of the latest reading, which costs nothing.
    """
    status = STATUS.read() if again else STATUS.latest
    start = status.find(b"\n%s:" % name.encode())
    return int(status[start + len(name) + 2 :].split(None, 1)[0]) if start >= 0 else None


def descriptors() -> int | None:
    """Return how many descriptors are open, on Windows handles; None if the system does not report it."""
    try:
        if sys.platform == "win32":
            count = ctypes.c_uint32()
            ask = ctypes.WinDLL("kernel32").GetProcessHandleCount
            return count.value if ask(ctypes.c_void_p(-1), ctypes.byref(count)) else None
        return len(os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd")) - 1
    except OSError:
        return None

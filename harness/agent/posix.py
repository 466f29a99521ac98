"""What POSIX alone has, one function for each need; on Windows each gives what its docstring says.

The launcher brings it to other machines, so it needs only Python >= 3.9. A type checker for Windows reads the
branches for Windows alone, so they are statements of their own.
"""

from __future__ import annotations

import os
import signal
import sys

KILLED = 9
"""The number of the signal that ends a process at once; Windows lacks its name."""


def read_at(file: int, size: int, at: int = 0) -> bytes:
    """Return bytes of an open file from a position on, which a file of /proc gives anew; Windows has none."""
    if sys.platform == "win32":
        raise OSError("this system has no such files")
    return os.pread(file, size, at)


def kill_process(pid: int) -> None:
    """Kill a process at once; errors are those of ``os.kill``."""
    if sys.platform == "win32":
        os.kill(pid, signal.SIGTERM)  # which ends it at once there
    else:
        os.kill(pid, signal.SIGKILL)


def signal_group(pid: int, number: int) -> None:
    """Send a signal to a process's group; Windows has no groups. Errors are those of ``os.killpg``."""
    if sys.platform != "win32":
        os.killpg(pid, number)


def session_of_process(pid: int) -> int:
    """Return the number of a process's session; on Windows that of the process. Errors as ``os.getsid``."""
    if sys.platform == "win32":
        return pid
    return os.getsid(pid)


def user_id() -> int:
    """Return the number of the acting user; -1 on Windows, whose files have no such owner."""
    if sys.platform == "win32":
        return -1
    return os.geteuid()


def ticks_per_s() -> int:
    """Return in how many parts /proc counts a second; 1 on Windows, which has no /proc."""
    if sys.platform == "win32":
        return 1
    return os.sysconf("SC_CLK_TCK")


def blocked_signals() -> set[int]:
    """Return the signals that this thread blocks; none on Windows."""
    if sys.platform == "win32":
        return set()
    return {int(one) for one in signal.pthread_sigmask(signal.SIG_BLOCK, ())}


def block_signals(numbers: set[int]) -> None:
    """Block these signals in this thread, and no others; nothing on Windows."""
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_SETMASK, numbers)


def can_be_handled(number: int) -> bool:
    """Return whether a process may handle a signal: all but two of POSIX, none of Windows."""
    if sys.platform == "win32":
        return False
    return number not in (signal.SIGKILL, signal.SIGSTOP)

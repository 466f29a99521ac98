"""Ending processes with everything that they have started, where the system groups them."""

import os
import signal
import sys
from subprocess import Popen
from typing import Any


def kill_group(popen: Popen[Any]) -> None:
    """Kill a process and everything that it has started; harmless on an ended one."""
    if sys.platform != "win32":
        _signal_group(popen, signal.SIGKILL)
    else:
        popen.kill()


def terminate_group(popen: Popen[Any]) -> None:
    """Ask a process and everything that it has started to end; harmless on an ended one."""
    if os.name == "posix":
        _signal_group(popen, signal.SIGTERM)
    else:
        popen.kill()


def has_group(popen: Popen[Any]) -> bool:
    """Return whether anything in the group of a reaped process still runs."""
    return os.name == "posix" and _signal_group(popen, 0)


def _signal_group(popen: Popen[Any], number: int) -> bool:
    if sys.platform == "win32":
        return False
    try:
        os.killpg(popen.pid, number)
    except (ProcessLookupError, PermissionError):  # macOS raises the second if only an ended process is left
        return False
    return True

"""Processes that a process has left behind: they live on, in whatever session and group.

An environment variable that all of them inherit identifies them. Linux shows the variables of a user's own
processes; other systems do not. A process that has removed the variable is not found. Python >= 3.9 and
nothing else.
"""

from __future__ import annotations

import contextlib
import os
import time

from harness.agent.posix import kill_process, user_id

OWNER = "EP_HARNESS_OWNER"
"""The variable of all processes that belong to one agent; its value is new for each agent."""

_GRACE_S = 0.3
"""Seconds in which a process that is about to end may do so."""

ROUNDS = 20
"""Largest number of checks: a killed process may have started others meanwhile."""

_LOOK_S = 0.02
_MOST_BYTES = 1 << 20


def end_orphans(owner: str, *, grace_s: float = _GRACE_S, proc: str = "/proc") -> list[str]:
    """Kill all processes of an ended owner; return the names of those that did not end by themselves.

    By then, no process except this one may have the variable.
    """
    deadline = time.monotonic() + grace_s
    found = _orphans(owner, proc)
    if not found:  # nearly always
        return []
    while found and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
        found = {pid: name for pid, name in found.items() if _belongs(pid, owner, proc)}
    ended: dict[int, str] = {}
    for _ in range(ROUNDS):
        found = _orphans(owner, proc)
        if not found:
            break
        for pid, name in found.items():
            if _belongs(pid, owner, proc):  # its number may belong to another process by now
                with contextlib.suppress(OSError):
                    kill_process(pid)
                    ended[pid] = name
        time.sleep(_LOOK_S)
    return sorted(ended.values())


def orphans_text(names: list[str], most: int = 8) -> str:
    """Return a text that processes were left behind; empty if none was."""
    if not names:
        return ""
    shown = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
    if len(names) == 1:
        return "it left a process behind, which was ended: %s" % shown
    return "it left %d processes behind, which were ended: %s" % (len(names), shown)


def _orphans(owner: str, proc: str) -> dict[int, str]:
    """Return process id -> name for the processes of an owner."""
    found = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(proc):
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):  # it has ended
                # Those of other users cannot be read, and a machine may have thousands.
                if entry.stat().st_uid == user_id() and _belongs(int(entry.name), owner, proc):
                    found[int(entry.name)] = _name(entry.name, proc)
    return found


def _belongs(pid: int, owner: str, proc: str) -> bool:
    # An ended process that nothing has waited for has no variables any more.
    path = os.path.join(proc, str(pid), "environ")
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return ("\0%s=%s\0" % (OWNER, owner)).encode() in b"\0" + file.read(_MOST_BYTES) + b"\0"
    return False


def _name(pid: str, proc: str) -> str:
    path = os.path.join(proc, pid, "comm")
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        return "".join(char if char.isprintable() else "?" for char in file.read().strip()) or "?"
    return "?"

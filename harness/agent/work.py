"""The work of a process: how much processor and device time it has used, and how long it has waited for them.

Only Linux shows this without privileges, below ``/proc``. The harness measures its own processes in this way;
the launcher measures those on another machine. Python >= 3.9 and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import NamedTuple

from harness.agent.posix import ticks_per_s

_PARENT, _SESSION, _TIMES = 1, 3, slice(11, 15)
"""Fields of ``/proc/PID/stat`` after the name of the program: see ``proc_pid_stat(5)``, minus 3."""

_ENGINE = "drm-engine-"
"""Keys of the busy time of a device's engines, in ns: the kernel's ``drm-usage-stats.rst``."""

_CLIENT = "drm-client-id"


class ProcessWork(NamedTuple):
    """The work of a process, and of everything that it has started, up to a point in time.

    Attributes:
        at_s: The time, on the monotonic clock of the machine.
        processor_s: Seconds of processors used, over all threads.
        waited_s: Seconds in which threads could run but waited for a processor.
        device_s: Seconds in which engines of a device (GPU, NPU) worked for it, if its driver reports them.
        processors: How many processors it may use.
    """

    at_s: float
    processor_s: float
    waited_s: float
    device_s: float
    processors: int


def process_work(pid: int, proc: str = "/proc") -> ProcessWork | None:
    """Return the work of a process; None if the system does not show it, or the process has ended.

    The work includes that of its session, and of everything that it and these have started.
    """
    stats = _stats(proc)
    if pid not in stats:
        return None
    members = _members(pid, stats)
    ticks = sum(int(value) for member in members for value in stats[member][_TIMES])
    device = dict(pair for member in members for pair in _engines(proc, member))
    return ProcessWork(
        at_s=round(time.monotonic(), 3),
        processor_s=ticks / ticks_per_s(),
        waited_s=round(sum(_waited_ns(proc, member) for member in members) / 1e9, 3),
        device_s=round(sum(device.values()) / 1e9, 3),
        processors=_processors(pid),
    )


def _stats(proc: str) -> dict[int, list[str]]:
    """Return process id -> the fields of its ``stat`` after the name, which may contain any character."""
    found = {}
    with contextlib.suppress(OSError):
        for name in os.listdir(proc):
            if name.isdigit():
                with contextlib.suppress(OSError, ValueError):
                    with open(os.path.join(proc, name, "stat"), encoding="utf-8", errors="replace") as file:
                        fields = file.read().rpartition(")")[2].split()
                    found[int(name)] = fields
    return found


def _members(pid: int, stats: dict[int, list[str]]) -> set[int]:
    members = {other for other, fields in stats.items() if fields[_SESSION] == str(pid)} | {pid}
    while True:
        more = {other for other, fields in stats.items() if int(fields[_PARENT]) in members} - members
        if not more:
            return members
        members |= more


def _waited_ns(proc: str, pid: int) -> int:
    """Return how long the threads of a process have waited in run queues; 0 if the kernel does not count."""
    waited = 0
    with contextlib.suppress(OSError):
        for thread in os.listdir(os.path.join(proc, str(pid), "task")):
            with contextlib.suppress(OSError, ValueError, IndexError):
                path = os.path.join(proc, str(pid), "task", thread, "schedstat")
                with open(path, encoding="ascii") as file:
                    waited += int(file.read().split()[1])
    return waited


def _engines(proc: str, pid: int) -> list[tuple[tuple[str, str], int]]:
    """Return client and engine of a device -> busy nanoseconds; several files may belong to one client."""
    found = []
    folder = os.path.join(proc, str(pid), "fdinfo")
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(OSError, ValueError):
                with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                    rows = dict(line.partition(":")[::2] for line in file)
                client = rows.get(_CLIENT, name).strip()
                for key, value in rows.items():
                    words = value.split()
                    if key.startswith(_ENGINE) and words[1:] == ["ns"]:
                        found.append(((client, key), int(words[0])))
    return found


def _processors(pid: int) -> int:
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            return len(os.sched_getaffinity(pid))
    return os.cpu_count() or 1

"""How many processors there are for target processes."""

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path

from harness.agent.system import usable_processors

OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
LIMITS = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
"""Files with a quota and its period, both in microseconds, of control groups v2 and v1. Sources: the kernel's
admin-guide/cgroup-v2.rst, where no quota is ``max``, and scheduler/sched-bwc.rst, where it is negative."""


def processors() -> int:
    """As many as this process may use, or as many as it may take the time of, where these are fewer.

    A container that may take the time of two processors (``docker run --cpus=2``) sees all of the machine's
    and may use any of them: as many processes would take the memory, and wait for one another.
    """
    return max(1, math.ceil(min((usable_processors(), *_quotas()))))


def _quotas() -> Iterator[float]:
    """Processors whose time may be taken: in this process's control group, and in those around it."""
    for group in _groups():
        for names in LIMITS:
            with contextlib.suppress(OSError, ValueError):
                text = " ".join((group / name).read_text(encoding="ascii") for name in names)
                quota, period = map(int, text.split())
                if quota > 0:
                    yield quota / period


def _groups() -> Iterator[Path]:
    """Folders of control groups, from the root, all that a container has, to this process's own."""
    lines: list[str] = []
    with contextlib.suppress(OSError):  # no Linux
        lines = OWN_GROUPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        folder = GROUPS / "cpu" if controllers else GROUPS
        yield folder
        for part in Path(path).parts[1:]:
            folder /= part
            yield folder

"""Admission: decides whether another process may start, by processors, devices, and cells that run alone."""

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.agent.system import usable_processors
from harness.core.text.errors import one_line
from harness.corpus.caches.cache import cache_root
from harness.engine.workers.device import NO_SLOT, Slot, Slots
from harness.engine.workers.queues import TaskQueue
from harness.engine.workers.worker import Worker
from harness.places.place_state import PlaceState

_RETRY_S = 0.2
"""Seconds between two checks of a device that another run uses."""


class Admission:
    """Decides about one process after another."""

    def __init__(self, processes: int, warn: Callable[[str], None]) -> None:
        self.retry_at: float | None = None
        """When to check again a device that another run uses."""
        self._processes = processes
        self._warn = warn
        self._warned: set[str] = set()
        self._slots = Slots(cache_root() / "locks")

    def admit(
        self,
        queue: TaskQueue,
        workers: Sequence[Worker],
        leaving: Sequence[Worker],
        place: PlaceState | None = None,
    ) -> Slot | None:
        """Return a slot for another worker of a queue; None if it may not start now.

        If there is no room, a worker without tasks is stopped. ``leaving`` are the workers whose process is
        ending; ``place`` is where the new worker would run.
        """
        if queue.is_reference:
            return NO_SLOT
        of_targets = [worker for worker in workers if worker.queue and not worker.queue.is_reference]
        others = [worker for worker in of_targets if worker.queue is not queue]
        runs_alone = queue.alone or any(worker.queue and worker.queue.alone for worker in others)
        if runs_alone and (leaving or not _make_room(others, allowed=0)):
            return None
        device = queue.device if place is None else queue.devices[place.name]
        if device is not None:
            return self._take_slot(queue, device, others, (*workers, *leaving))
        if not queue.is_local or (place is not None and place.place.is_elsewhere):
            return NO_SLOT
        computing = [worker for worker in of_targets if worker.takes_processor]
        return NO_SLOT if _make_room(computing, self._processes - 1) else None

    def expire(self, now: float) -> bool:
        """Return whether it is time to check a device again."""
        if self.retry_at is None or self.retry_at > now:
            return False
        self.retry_at = None
        return True

    def _take_slot(
        self, queue: TaskQueue, device: str, others: list[Worker], ours: Sequence[Worker]
    ) -> Slot | None:
        try:
            # Alone also means without processes of other runs.
            take = self._slots.take_all if queue.alone else self._slots.take
            slot = take(device, queue.slots)
        except OSError as error:
            self._warn_once(f"devices cannot be locked against other runs: {one_line(error)}")
            return NO_SLOT
        if slot is None:
            _stop_idle([worker for worker in others if worker.slot.device == device])
            if not any(worker.slot.device == device for worker in ours):
                self._warn_once(f"target {queue.name} waits: another run uses its device ({device})")
            self.retry_at = time.monotonic() + _RETRY_S
        return slot

    def _warn_once(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            self._warn(text)


def _make_room(workers: list[Worker], allowed: int) -> bool:
    """Return whether there are no more workers than allowed; otherwise stop an idle one."""
    if len(workers) <= allowed:
        return True
    _stop_idle(workers)
    return False


def _stop_idle(workers: list[Worker]) -> None:
    idle = next((worker for worker in workers if worker.idle and not worker.has_tasks_queued), None)
    if idle is not None:
        idle.stop()


OWN_GROUPS = Path("/proc/self/cgroup")
GROUPS = Path("/sys/fs/cgroup")
_LIMITS = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
"""Files with a quota and its period, both in microseconds, of control groups v2 and v1. Sources: the kernel's
admin-guide/cgroup-v2.rst, where no quota is ``max``, and scheduler/sched-bwc.rst, where it is negative."""


def processors() -> int:
    """Return how many processors this process may use, or fewer if its control group grants less time.

    A container with the time of two processors (``docker run --cpus=2``) sees and uses all processors of the
    machine. That many processes would fill the memory and wait for one another.
    """
    return max(1, math.ceil(min((usable_processors(), *_quotas()))))


def _quotas() -> Iterator[float]:
    """Yield the processors granted by this process's control group, and by each group above it."""
    for group in _groups():
        for names in _LIMITS:
            with contextlib.suppress(OSError, ValueError):
                text = " ".join((group / name).read_text(encoding="ascii") for name in names)
                quota, period = map(int, text.split())
                if quota > 0:
                    yield quota / period


def _groups() -> Iterator[Path]:
    """Yield folders of control groups, from the root (the only one in a container) to this process's own."""
    lines: list[str] = []
    with contextlib.suppress(OSError):  # not Linux
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

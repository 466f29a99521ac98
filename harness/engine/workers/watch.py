"""The watch over a long phase: whether its process works, and how much of its time other programs took."""

import math
from collections.abc import Sequence

import msgspec

from harness.agent.work import ProcessWork
from harness.core.records.verdict import Phase
from harness.engine.tasks.outcome import Hung

LOOKS = 10
"""Number of checks of a process within one limit; the first is after a tenth. Hardly any cell reaches it."""

MOST_LIMITS = 10
"""Multiple of its limit at which a phase ends by the clock, whatever its process does."""

LAST_PART = 0.5
"""The last part of a limit, in which a process must have worked to count as at work."""

AT_WORK = 0.05
"""Average number of processors, or devices, that a process at work uses or waits for.

A process that sleeps and checks every millisecond whether it may go on uses 0.01 to 0.03.
"""

STARVED = 0.5
"""Share of the time taken by other programs from which on a phase at ``MOST_LIMITS`` is no hang."""


class Watch(msgspec.Struct, kw_only=True):
    """Watches one phase of a process, from check to check.

    Attributes:
        limit_s: The limit of the phase.
        began: Its start, on the monotonic clock.
        alone: Whether nothing else runs meanwhile: then a process at work may go on until ``MOST_LIMITS``.
        small: Whether the model is so small that a process still at work at its limit counts as hung.
        is_here: Whether ``ProcessWork`` is measured at each check. Elsewhere the first measurement may
            belong to an earlier phase.
        lost_s: Seconds of its time that other programs took.
        looks: Its work at each check.
        newest_s: Time of the newest work, on the clock of its machine.
    """

    limit_s: float
    began: float
    alone: bool = False
    small: bool = False
    is_here: bool = True
    lost_s: float = 0.0
    looks: list[ProcessWork] = []
    newest_s: float = -math.inf

    def look(self, now: float, work: ProcessWork | None) -> float | None:
        """Record the work so far; return the time of the next check, or None once the time is up."""
        self._take(work)
        elapsed_s = now - self.began
        until_bound_s = MOST_LIMITS * self.limit_s - elapsed_s
        left_s = self.limit_s - (elapsed_s - self.lost_s)
        if left_s <= 0.0 and self.alone and self.at_work:
            left_s = until_bound_s
        left_s = min(left_s, until_bound_s)
        return None if left_s <= 0.0 else now + min(left_s, self.limit_s / LOOKS)

    def _take(self, work: ProcessWork | None) -> None:
        if work is None or work.at_s <= self.newest_s:
            return
        is_of_earlier = not self.is_here and self.newest_s == -math.inf
        self.newest_s = work.at_s
        if is_of_earlier:
            return
        if self.looks:
            self.lost_s += lost_s(self.looks[-1], work)
        self.looks.append(work)

    @property
    def at_work(self) -> bool | None:
        """Return whether the process worked in the last part of its limit; None if nothing shows it."""
        part = _last_part(self.looks, self.limit_s * LAST_PART)
        if part is None:
            return None
        first, last = part
        used_s = last.processor_s - first.processor_s
        waited_s = max(0.0, last.waited_s - first.waited_s)
        device_s = max(0.0, last.device_s - first.device_s)
        return used_s + waited_s + device_s >= AT_WORK * (last.at_s - first.at_s)

    def told(self, now: float) -> str:
        """Return in words what the process did in the last part of its limit."""
        part = _last_part(self.looks, self.limit_s * LAST_PART)
        if part is None:
            return "it could not be seen here whether it still worked"
        first, last = part
        used_s = last.processor_s - first.processor_s
        device_s = max(0.0, last.device_s - first.device_s)
        device = f" and {device_s:.1f} s of a device" if device_s else ""
        used = f"it used {used_s:.1f} s of processors{device} in the last {last.at_s - first.at_s:.3g} s"
        starved = f", and waited {self.lost_s:.3g} s of {now - self.began:.3g} s for processors"
        return used + (starved if self.lost_s >= 0.1 * self.limit_s else "")

    def is_starved(self, now: float) -> bool:
        """Return whether other programs took so much of its time that the process is not to blame."""
        return self.lost_s >= STARVED * (now - self.began)


def hung(phase: Phase, limit_s: float, watch: Watch | None, now: float, printed: str) -> Hung:
    """Return the outcome of a phase whose time is up.

    A process at work may only be slow. It counts as hung if it has worked alone for ``MOST_LIMITS`` times its
    limit, or if its model is small.
    """
    if watch is None:
        return Hung(phase=phase, limit_s=limit_s, printed=printed)
    is_hang = (watch.alone or watch.small) and not watch.is_starved(now)
    return Hung(
        phase=phase,
        limit_s=limit_s,
        printed=printed,
        at_work=bool(watch.at_work) and not is_hang,
        told=watch.told(now),
        took_s=now - watch.began,
    )


def lost_s(first: ProcessWork, last: ProcessWork) -> float:
    """Return the seconds that other programs took from a process between two measurements.

    It wants as many processors as it has threads that could run, but at most those that it may use. Its share
    is the part of these that it got; waiting for its own threads is no starvation.
    """
    passed_s = last.at_s - first.at_s
    used_s = max(0.0, last.processor_s - first.processor_s)
    runnable_s = used_s + max(0.0, last.waited_s - first.waited_s)
    wanted_s = min(runnable_s, passed_s * last.processors)
    if wanted_s <= 0.0:
        return 0.0
    return min(passed_s, runnable_s) * max(0.0, 1.0 - used_s / wanted_s)


def _last_part(looks: Sequence[ProcessWork], part_s: float) -> tuple[ProcessWork, ProcessWork] | None:
    """Return the latest measurement and one before the last part of a limit, or the first one."""
    if len(looks) < 2:  # noqa: PLR2004 - work is a difference
        return None
    last = looks[-1]
    earlier = (look for look in reversed(looks[:-1]) if last.at_s - look.at_s >= part_s)
    return next(earlier, looks[0]), last

"""The watch over a phase that takes long: whether its process works, and how much of its time others took."""

import math
from collections.abc import Sequence

import msgspec

from harness.agent.work import Work
from harness.core.verdict import Phase
from harness.engine.outcome import Hung

LOOKS = 10
"""Looks at a process within one limit. The first is after a tenth, which hardly any cell ever takes."""

MOST_LIMITS = 10
"""A phase ends at so many times its limit by the clock, whatever its process does."""

LAST_PART = 0.5
"""Part of a limit, its last one, in which a process must have worked to be at work."""

AT_WORK = 0.05
"""Processors, or devices, used or waited for on average by a process at work. A process that sleeps and looks
every millisecond whether it may go on uses 0.01 to 0.03."""

STARVED = 0.5
"""Part of the time that others took, from which on a phase at ``MOST_LIMITS`` is no hang."""


class Watch(msgspec.Struct, kw_only=True):
    """Watches one phase of a process, from look to look.

    Attributes:
        limit_s: The limit of the phase.
        began: When it began, on the monotonic clock.
        alone: Whether nothing else runs meanwhile: a process at work may go on until ``MOST_LIMITS``.
        small: Whether the model is so small that a process still at work at its limit hangs.
        is_here: Whether ``Work`` is measured at each look. Elsewhere the first one may be of an
            earlier phase.
        lost_s: Seconds of its time that other programs took.
        looks: Its work at each look.
        newest_s: Time of the newest work, on the clock of its machine.
    """

    limit_s: float
    began: float
    alone: bool = False
    small: bool = False
    is_here: bool = True
    lost_s: float = 0.0
    looks: list[Work] = []
    newest_s: float = -math.inf

    def look(self, now: float, work: Work | None) -> float | None:
        """Take the work until now; return when to look again, or None once the time is up."""
        self._take(work)
        elapsed_s = now - self.began
        until_bound_s = MOST_LIMITS * self.limit_s - elapsed_s
        left_s = self.limit_s - (elapsed_s - self.lost_s)
        if left_s <= 0.0 and self.alone and self.at_work:
            left_s = until_bound_s
        left_s = min(left_s, until_bound_s)
        return None if left_s <= 0.0 else now + min(left_s, self.limit_s / LOOKS)

    def _take(self, work: Work | None) -> None:
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
        """Whether the process has worked in the last part of its limit; None if nothing shows it."""
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
        """Whether others took so much of its time that it may not be blamed for the rest."""
        return self.lost_s >= STARVED * (now - self.began)


def hung(phase: Phase, limit_s: float, watch: Watch | None, now: float, printed: str) -> Hung:
    """Return the outcome of a phase whose time is up.

    A process at work may only be slow. It hangs if it has been at work for ``MOST_LIMITS`` times its limit,
    alone, or if its model is small.
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


def lost_s(first: Work, last: Work) -> float:
    """Return the seconds between two times that other programs took from a process.

    It wants as many processors as it has threads that could run, at most those that it may use. Its share is
    what it got of that; threads of its own that wait for one another are no starvation.
    """
    passed_s = last.at_s - first.at_s
    used_s = max(0.0, last.processor_s - first.processor_s)
    runnable_s = used_s + max(0.0, last.waited_s - first.waited_s)
    wanted_s = min(runnable_s, passed_s * last.processors)
    if wanted_s <= 0.0:
        return 0.0
    return min(passed_s, runnable_s) * max(0.0, 1.0 - used_s / wanted_s)


def _last_part(looks: Sequence[Work], part_s: float) -> tuple[Work, Work] | None:
    """Return the latest look and one before the last part of a limit, or the first one."""
    if len(looks) < 2:  # noqa: PLR2004 - work is a difference
        return None
    last = looks[-1]
    earlier = (look for look in reversed(looks[:-1]) if last.at_s - look.at_s >= part_s)
    return next(earlier, looks[0]), last

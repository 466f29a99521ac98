"""Lower time limits for trials of a hang, each of which costs its limit.

A trial that ends within a lower limit is certainly no hang. One that does not end is only assumed to hang. A
finding made in this way is tried again with the full limit; if it then ends, the next limit is used.
"""

from collections.abc import Iterator, Sequence

import msgspec

from harness.plan.target import Target

LIMITS_S = (2.0, 8.0, 30.0)
"""Seconds of a phase. At least 2: a process that waits for a processor does not hang."""

MULTIPLE = 20.0
"""The first limit exceeds the CPU EP's time by this factor, because an EP also compiles."""


class LimitedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target with a lower limit of time."""

    target: Target
    limit_s: float


def limited_targets(target: Target) -> tuple[LimitedTarget, ...]:
    """Return a target with each lower limit, the lowest first.

    Limits that are not below its own are left out.

    The limits of its phases ``create`` and ``run`` change. The start of its process is not limited further.
    """
    own = target.timeouts_s
    found = []
    for limit_s in LIMITS_S:
        if limit_s < min(own.create, own.run):
            limits = msgspec.structs.replace(own, create=limit_s, run=limit_s)
            name = f"{target.name} within {limit_s:g} s"
            limited = msgspec.structs.replace(target, name=name, timeouts_s=limits)
            found.append(LimitedTarget(target=limited, limit_s=limit_s))
    return tuple(found)


def safe_limits(limited: Sequence[LimitedTarget], healthy_s: float | None) -> Iterator[LimitedTarget]:
    """Yield the targets whose limit is a safe multiple of a healthy duration, the lowest limit first.

    None is safe if a healthy EP's time for the model is unknown.
    """
    for one in limited:
        if healthy_s is not None and one.limit_s >= MULTIPLE * healthy_s:
            yield one

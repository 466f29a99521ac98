"""Lower limits of time for trials of a hang, each of which costs its limit.

A trial that ends within a lower limit is no hang, for certain. One that does not end is only taken for one:
what is found in this way is tried once more with the full limit, and if it ends then, the next limit is used.
"""

from collections.abc import Iterator, Sequence

import msgspec

from harness.plan.target import Target

LIMITS_S = (2.0, 8.0, 30.0)
"""Seconds of a phase. Not less than 2: a process that has to wait for a processor is no hang."""

MULTIPLE = 20.0
"""A limit is tried first that exceeds the time that the CPU EP takes by so much: an EP compiles, too."""


class LimitedTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A target with a lower limit of time."""

    target: Target
    limit_s: float


def limited_targets(target: Target) -> tuple[LimitedTarget, ...]:
    """Return a target with each lower limit, the lowest first; none that is no lower than its own.

    The limits of its phases ``create`` and ``run`` change. Its process starts as slowly as ever.
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

    None is safe if it is not known what a healthy EP takes for the model.
    """
    for one in limited:
        if healthy_s is not None and one.limit_s >= MULTIPLE * healthy_s:
            yield one

"""What the processes of each target did with memory."""

from collections.abc import Iterable

import msgspec

from harness.core.leak import LEAK_KIB, ResidentMemory, resident_memory
from harness.core.record import Record


class TargetMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The processes of one target; they serve all of its lanes.

    Attributes:
        target: Its name.
        memory: What was measured.
        peak: The most that a process held.
        growth: Growth per session.
        reading: What that means, in words.
        leaks: True where it is a leak.
    """

    target: str
    memory: ResidentMemory
    peak: str
    growth: str
    reading: str
    leaks: bool


def target_memory(target: str, records: Iterable[Record]) -> TargetMemory | None:
    """Measure one target; None where none of its records tells of a process."""
    memory = resident_memory(records)
    if not memory.processes:
        return None
    return TargetMemory(
        target=target,
        memory=memory,
        peak="no data" if memory.peak_mib is None else _mib(memory.peak_mib),
        growth="no data" if memory.growth_kib is None else _kib(memory.growth_kib),
        reading=_reading(memory),
        leaks=memory.leaks,
    )


def _reading(memory: ResidentMemory) -> str:
    if memory.growth_kib is None:
        return "too few sessions to tell" if memory.peak_mib is not None else "the system does not tell"
    if memory.leaks:
        return f"leaks: about {_mib(memory.growth_kib * 1000 / 1024)} in 1,000 sessions"
    return "no leak" if memory.growth_kib <= LEAK_KIB else "grows, but not for long enough to tell a leak"


def _kib(kib: float) -> str:
    # No sign where it rounds to nothing.
    sign = "" if round(kib) == 0 else "+" if kib > 0 else "−"  # noqa: RUF001 - a typographic minus
    return f"{sign}{abs(kib):,.0f} KiB"


def _mib(mib: float) -> str:
    return f"{mib:,.0f} MiB"

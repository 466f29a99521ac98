"""How much memory the processes of each target held, and whether they leak."""

import msgspec

from harness.core.findings.leak import LEAK_KIB, YOUNG_LEAK_KIB, ResidentMemory, resident_memory
from harness.core.records.record import Record
from harness.report.view import Report


class TargetMemory(msgspec.Struct, frozen=True, kw_only=True):
    """The processes of one target, which serve all of its columns.

    Attributes:
        peak: The most memory that a process held.
        growth: Growth per session.
    """

    target: str
    memory: ResidentMemory
    peak: str
    growth: str
    reading: str
    leaks: bool


def target_memory(report: Report) -> tuple[TargetMemory, ...]:
    """Return the memory of each target, in the order of columns; targets without a process are left out."""
    by_target: dict[str, list[Record]] = {column.target: [] for column in report.columns}
    # In the order in which they were written: memory grows along it.
    for _, record in report.run.records:
        by_target[record.target].append(record)
    found = ((target, resident_memory(records)) for target, records in by_target.items())
    return tuple(_row(target, memory) for target, memory in found if memory.processes)


def _row(target: str, memory: ResidentMemory) -> TargetMemory:
    return TargetMemory(
        target=target,
        memory=memory,
        peak="no data" if memory.peak_mib is None else _mib(memory.peak_mib),
        growth="no data" if memory.growth_kib is None else _kib(memory.growth_kib),
        reading=_reading(memory),
        leaks=bool(memory.leaked),
    )


def _reading(memory: ResidentMemory) -> str:
    counts = [f"leaks {name}: about {growth:.2g} in each session" for name, growth in memory.counts.items()]
    return "; ".join([_of_memory(memory), *counts])


def _of_memory(memory: ResidentMemory) -> str:
    if memory.growth_kib is None:
        return "too few sessions to tell" if memory.peak_mib is not None else "the system does not tell"
    if memory.leaks:
        return f"leaks: about {_mib(memory.growth_kib * 1000 / 1024)} in 1,000 sessions"
    limit = YOUNG_LEAK_KIB if memory.young else LEAK_KIB
    return "no leak" if memory.least_kib <= limit else "grows, but not for long enough to tell a leak"


def _kib(kib: float) -> str:
    # No sign if it rounds to nothing.
    sign = "" if round(kib) == 0 else "+" if kib > 0 else "−"  # noqa: RUF001 - a typographic minus
    return f"{sign}{abs(kib):,.0f} KiB"


def _mib(mib: float) -> str:
    return f"{mib:,.0f} MiB"

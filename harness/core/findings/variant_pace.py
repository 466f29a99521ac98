"""Variants of a package by their medians: one that gains nothing, and a selection that is not the fastest."""

from collections.abc import Mapping

from harness.core.findings.shipping import compared_pace, rounds_of
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.core.timing.pace import beats, best_ms


def beside_cpu(variant: Record, cpu: Record, name: str) -> str:
    """Return how a right variant compares with the CPU EP's, called ``name``, if it gains nothing.

    Empty if it is as fast or faster, or if one of them is not right or was not timed.
    """
    if not (_is_timed(variant) and _is_timed(cpu)):
        return ""
    return compared_pace(rounds_of(variant), rounds_of(cpu), name)[1]


def beside_others(chosen: str, alone: Mapping[str, Record]) -> str:
    """Return which right variant of the same target is faster than the selected one, and by how much.

    ``alone`` has the record of each variant that ran there by itself. Empty if none is faster, or if the
    selected one is not right or was not timed.
    """
    timed = {name: rounds_of(one) for name, one in alone.items() if _is_timed(one)}
    faster = [name for name in timed if chosen in timed and beats(timed[name], timed[chosen])]
    if not faster:
        return ""
    fastest = min(faster, key=lambda name: best_ms(timed[name]) or 0.0)
    return compared_pace(timed[chosen], timed[fastest], fastest)[1]


def _is_timed(record: Record) -> bool:
    return record.family is Family.PASSED and bool(rounds_of(record))

"""One model with every fault and every honest kind: rows."""

from collections.abc import Iterator

import msgspec
import numpy as np

from benchmarks.planted.allowed import allowed
from benchmarks.planted.court import Court
from benchmarks.planted.faults import OTHER, SECOND, Fault
from benchmarks.planted.honest import Honest, bits_left
from benchmarks.planted.real import COARSE, PLANTS
from benchmarks.planted.rows import Row
from benchmarks.planted.subject import VISIBLE, Scale, Subject, rebuilt
from harness.engine.tasks.outcome import Ran

MARGIN = 0.5
"""Bits about what is needed within which a loss may be told or not."""


def measure(subject: Subject, court: Court, faults: list[Fault], kinds: list[Honest]) -> Iterator[Row]:
    """Yield what is said of each answer."""
    for fault in faults:
        with np.errstate(all="ignore"):
            found = fault.make(subject)
        if found is not None:
            yield _of_fault(subject, court, fault, found)
    for kind in kinds:
        with np.errstate(all="ignore"):
            found = kind.make(subject)
        if found is not None:
            yield _of_honest(subject, court, kind, found)


def _of_fault(subject: Subject, court: Court, fault: Fault, found: list[np.ndarray]) -> Row:
    scale = _scale(subject, fault)
    effect, size = scale.effect(found)
    row = _row(subject, court, fault, _answer(subject, fault.run, found), effect, size)
    if fault.name in PLANTS:
        scales = {one: subject.scale_at(one, others=fault.run == OTHER) for one in COARSE}
        coarse = tuple(one for one, coarser in scales.items() if coarser.effect(found)[0] == VISIBLE)
        row = msgspec.structs.replace(row, visible_at=coarse)
    return msgspec.structs.replace(row, allowed=allowed(subject, scale, found, size)) if row.passes else row


def _scale(subject: Subject, fault: Fault) -> Scale:
    if fault.run == OTHER and subject.other is not None:
        return subject.other
    return subject.coarse if fault.target == "bfloat16" else subject.scale


def _answer(subject: Subject, run: str, found: list[np.ndarray]) -> Ran:
    if run == SECOND:
        return msgspec.structs.replace(subject.ran, second=rebuilt(subject.ran.outputs[0], found))
    if run == OTHER:
        return msgspec.structs.replace(subject.ran, other=rebuilt(subject.ran.other or (), found))
    return subject.answer(found)


def _of_honest(subject: Subject, court: Court, kind: Honest, found: list[np.ndarray]) -> Row:
    """Return what is said of an honest answer; one of which too little is left is a fault of another kind."""
    effect, size = subject.scale.effect(found)
    # What it computes for other inputs is not wanted: those runs are honest to the bit.
    row = _row(subject, court, kind, subject.answer(found), effect, size)
    if not kind.bits:
        return row
    bits = bits_left(subject, found)
    if np.isinf(bits) and row.verdict == "precision_loss":
        return msgspec.structs.replace(row, honest=False, effect="between")
    if bits < kind.bits - MARGIN:
        name = f"{kind.name}: too few bits are left"
        return msgspec.structs.replace(row, kind=name, honest=False, effect="visible", bits=bits)
    if bits < kind.bits + MARGIN and row.verdict == "precision_loss":
        return msgspec.structs.replace(row, honest=False, effect="between", bits=bits)
    return msgspec.structs.replace(row, bits=None if np.isinf(bits) else bits)


def _row(subject: Subject, court: Court, kind: Fault | Honest, answer: Ran, effect: str, size: float) -> Row:
    record = court.judge(subject.model.name, kind.target, answer)
    return Row(
        kind=kind.name,
        model=subject.model.name,
        honest=isinstance(kind, Honest),
        effect=effect,
        size=float(min(size, 1e300)),
        family=record.family.value,
        verdict=record.verdict.value,
        reason=record.reason,
    )

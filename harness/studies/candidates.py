"""Configurations that may be the fastest for a model: a target, and what is changed about it."""

import platform
from collections.abc import Collection, Iterator

import msgspec

from harness.catalog.option import PrecisionMode
from harness.catalog.provider import Provider
from harness.core.cell import Cell
from harness.core.structure import OPTION
from harness.engine.device import SHARED
from harness.engine.effects import UNCHANGED
from harness.engine.job import CPU, THREADS, is_local
from harness.plan.known_provider import known_provider
from harness.plan.precision import EP
from harness.plan.target import Target

LEVELS = ("extended", "basic", "disabled")
"""Levels of optimization besides ``all``, which ``layout`` hardly differs from."""

ALL_THREADS = "0"
"""As many threads as onnxruntime chooses: one for each core."""

Changes = tuple[tuple[str, str], ...]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration.

    Attributes:
        target: Name of the target.
        changes: Axis -> value, sorted, where it differs from the target as it is.
    """

    target: str
    changes: Changes = ()

    @property
    def name(self) -> str:
        """``openvino, precision=ep:f16``, for people."""
        return ", ".join([self.target, *(f"{spoken(axis)}={value}" for axis, value in self.changes)])

    def with_changes(self, other: Changes) -> "Candidate":
        """This one with further changes."""
        return Candidate(
            target=self.target, changes=tuple(sorted({**dict(self.changes), **dict(other)}.items()))
        )

    def cell(self, suite: str, model: str) -> Cell:
        """What is run to try it."""
        return Cell(suite=suite, model=model, target=self.target, axes=self.changes)


def spoken(axis: str) -> str:
    """What an axis is called where a person reads it."""
    return axis.removeprefix(OPTION)


def base_of(target: Target, limits_s: float) -> Target:
    """A target at the first value of each of its axes, ready for timing.

    Args:
        target: As the matrix has it.
        limits_s: Seconds that a session, and a run, may take at most.
    """
    options = {
        axis.removeprefix(OPTION): values[0]
        for axis, values in target.axes.items()
        if axis.startswith(OPTION)
    }
    limits = target.timeouts_s
    return msgspec.structs.replace(
        target,
        options=target.options | options,
        axes={},
        workers=1,
        retries=0,
        timeouts_s=msgspec.structs.replace(
            limits, create=min(limits.create, limits_s), run=min(limits.run, limits_s)
        ),
    )


def changes_of(target: Target, base: Target, operators: Collection[str]) -> Iterator[Changes]:
    """Single changes that may make a target faster, the most promising first.

    Threads where it computes on the processor; precisions other than the model's; options whose values the
    catalogue has under ``faster``, and those that the matrix varies; lower levels of optimization. The CPU
    provider's precisions come last: each is for some models, or some processors, only.

    Args:
        target: As the matrix has it.
        base: The same as it is tried first.
        operators: Operator types of the model; a precision that is for others is left out.
    """
    known = known_provider(base.provider)
    precisions = tuple(_precisions(known, base, operators))
    on_cpu = base.provider[0] == CPU
    if known is not None and known.hardware in SHARED:
        yield ((THREADS, ALL_THREADS),)
    if not on_cpu:
        yield from precisions
    varied = {axis: values for axis, values in target.axes.items() if axis.startswith(OPTION)}
    for axis, values in (_faster_options(known, plugin=base.plugin is not None) | varied).items():
        for value in values:
            if base.options.get(axis.removeprefix(OPTION)) != value:
                yield ((axis, value),)
    for level in LEVELS:
        yield (("graph_optimization", level),)
    if on_cpu:
        yield from precisions


def _precisions(known: Provider | None, base: Target, operators: Collection[str]) -> Iterator[Changes]:
    for mode in known.precision_modes if known else ():
        change = (("precision", EP + mode.name),)
        declared = base.declared(Cell(suite="", model="", target="", axes=change))
        if not declared and _promises(mode, base) and _concerns(mode, base, operators):
            yield change


def _promises(mode: PrecisionMode, base: Target) -> bool:
    """Whether a precision is worth a try: another than the model's, or that one where it is no default."""
    return mode.computes not in UNCHANGED or (mode.computes == "float32" and base.provider[0] != CPU)


def _concerns(mode: PrecisionMode, base: Target, operators: Collection[str]) -> bool:
    """Whether a precision can change anything in such a model, on this processor."""
    if mode.operators and not set(mode.operators).intersection(operators):
        return False
    return not mode.machines or not is_local(base.runtime) or platform.machine().lower() in mode.machines


def _faster_options(known: Provider | None, *, plugin: bool) -> dict[str, tuple[str, ...]]:
    return {
        OPTION + option.key: option.faster
        for option in (known.options if known else ())
        if option.taken(plugin=plugin) and option.from_python and not option.until
    }

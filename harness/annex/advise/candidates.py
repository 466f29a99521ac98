"""Configurations to try for a model: a target, and changes of its options, precision or optimization."""

import platform
from collections.abc import Collection, Iterator

import msgspec

from harness.catalog.option import PrecisionMode
from harness.catalog.provider import Provider
from harness.core.files.structure import OPTION
from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER as CPU
from harness.core.records.scenario import PLAIN
from harness.engine.processes.launch import is_local
from harness.engine.steps.effects import UNCHANGED
from harness.engine.workers.device import SHARED_HARDWARE
from harness.engine.workers.job import THREADS
from harness.plan.known_provider import EP, known_provider
from harness.plan.target import Target

_LEVELS = ("extended", "basic", "disabled")
"""Levels of optimization to try besides ``all``; ``layout`` hardly differs from it."""

_ALL_THREADS = "0"
"""Lets onnxruntime choose the number of threads: one for each core."""

AxisChanges = tuple[tuple[str, str], ...]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One configuration: a target by name, and the axes that differ from it, sorted."""

    target: str
    changes: AxisChanges = ()

    @property
    def name(self) -> str:
        """Its name in tables: ``openvino, precision=ep:f16``."""
        return ", ".join(
            [self.target, *(f"{axis.removeprefix(OPTION)}={value}" for axis, value in self.changes)]
        )

    def with_changes(self, other: AxisChanges) -> "Candidate":
        """Return this candidate with further changes."""
        changes = dict(self.changes) | dict(other)
        return Candidate(target=self.target, changes=tuple(sorted(changes.items())))

    def cell(self, suite: str, model: str, scenario: str = PLAIN) -> Cell:
        """Return the cell that tries it."""
        played = () if scenario == PLAIN else (("scenario", scenario),)
        axes = tuple(sorted((*self.changes, *played)))
        return Cell(suite=suite, model=model, target=self.target, axes=axes)


def at_first_values(target: Target) -> Target:
    """Return a target with the first value of each of its option axes, in one process without retries."""
    options = {
        axis.removeprefix(OPTION): values[0]
        for axis, values in target.axes.items()
        if axis.startswith(OPTION)
    }
    return msgspec.structs.replace(target, options=target.options | options, axes={}, workers=1, retries=0)


def base_of(target: Target, limits_s: float) -> Target:
    """Return a target ready for timing; a session, and a run, get at most ``limits_s`` seconds."""
    return msgspec.structs.replace(at_first_values(target), timeouts_s=target.timeouts_s.at_most(limits_s))


def changes_of(target: Target, base: Target, operators: Collection[str]) -> Iterator[AxisChanges]:
    """Yield single changes that may make a target faster, the most promising first.

    Threads, if it computes on the processor; precisions other than the model's; options with values under
    ``faster`` in the catalogue, and those that the matrix varies; lower levels of optimization. The CPU
    provider's precisions come last: each helps only some models, or some processors.

    ``base`` is the target as ``base_of`` returns it. Precisions that need other operators than the model has
    are left out.
    """
    known = known_provider(base.provider)
    precisions = tuple(_precisions(known, base, operators))
    on_cpu = base.provider[0] == CPU
    if known is not None and known.hardware in SHARED_HARDWARE:
        yield ((THREADS, _ALL_THREADS),)
    if not on_cpu:
        yield from precisions
    varied = {axis: values for axis, values in target.axes.items() if axis.startswith(OPTION)}
    for axis, values in (_faster_options(known, plugin=base.plugin is not None) | varied).items():
        for value in values:
            if base.options.get(axis.removeprefix(OPTION)) != value:
                yield ((axis, value),)
    for level in _LEVELS:
        yield (("graph_optimization", level),)
    if on_cpu:
        yield from precisions


def _precisions(known: Provider | None, base: Target, operators: Collection[str]) -> Iterator[AxisChanges]:
    for mode in known.precision_modes if known else ():
        change = (("precision", EP + mode.name),)
        declared = base.declared(Cell(suite="", model="", target="", axes=change))
        if not declared and _promises(mode, base) and _concerns(mode, base, operators):
            yield change


def _promises(mode: PrecisionMode, base: Target) -> bool:
    """Return whether a precision is worth trying: not the model's, or float32 if it is not the default."""
    return mode.computes not in UNCHANGED or (mode.computes == "float32" and base.provider[0] != CPU)


def _concerns(mode: PrecisionMode, base: Target, operators: Collection[str]) -> bool:
    """Return whether a precision can change anything in such a model, on this processor."""
    if mode.operators and not set(mode.operators).intersection(operators):
        return False
    return not mode.machines or not is_local(base.runtime) or platform.machine().lower() in mode.machines


def _faster_options(known: Provider | None, *, plugin: bool) -> dict[str, tuple[str, ...]]:
    return {
        OPTION + option.key: option.faster
        for option in (known.options if known else ())
        if option.taken(plugin=plugin) and option.from_python and not option.until
    }

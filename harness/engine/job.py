"""What is asked of an agent: its configuration, and one job for each model."""

import sys
from collections.abc import Mapping
from typing import Any

import msgspec

from harness.catalog.catalog import find_provider
from harness.core.cell import AXIS_DEFAULTS, Cell
from harness.core.scenario import SCENARIOS, agent_module
from harness.corpus.case import Case
from harness.engine.environments import built_python, note_use
from harness.engine.model_files import parcel
from harness.engine.question import HOME, Kind, Question
from harness.engine.tensor_files import Tensors
from harness.golden.provenance import SESSION
from harness.plan.runs_entry import LatencySettings, RepeatSettings
from harness.plan.target import Runtime, Target

CPU = "CPUExecutionProvider"

FORM = "form"
"""An axis that no matrix has: in which form the graph is wanted; see ``harness.agent.levels``."""

THREADS = "intra_op_threads"
"""An axis that no matrix has: threads within an operator, 0 for onnxruntime's choice; 1 by default."""

SESSION_ENTRY = "session."
"""Prefix of axes that no matrix has: what follows is the key of a session configuration entry."""


Interpreter = tuple[Runtime, tuple[tuple[str, str], ...]]
"""A runtime, and environment variables as sorted pairs."""

HERE: Interpreter = (HOME, ())
"""The harness's own, as it is."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What one process serves: a runtime and a provider with one set of options.

    Attributes:
        runtime: Which interpreter.
        env: Environment variables as sorted pairs.
        providers: The chain, preferred first.
        plugin: Package or path of a plugin library; None for a provider of the build.
        device: Device filter as sorted pairs.
        options: Provider options as sorted pairs.
        session: Session configuration entries as sorted pairs.
        memory_limit_mb: Cap on the address space in MiB; None for none.
    """

    runtime: Runtime
    env: tuple[tuple[str, str], ...] = ()
    providers: tuple[str, ...] = (CPU,)
    plugin: str | None = None
    device: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    session: tuple[tuple[str, str], ...] = ()
    memory_limit_mb: int | None = None

    @property
    def interpreter(self) -> Interpreter:
        """What configurations have in common that can use each other's spare processes."""
        return self.runtime, self.env

    def message(self, tensor_folders: list[str]) -> dict[str, Any]:
        """The configuration as the agent takes it, with the folders for its tensors."""
        return {
            "tensor_folders": tensor_folders,
            "providers": list(self.providers),
            "plugin": self.plugin,
            "device": dict(self.device),
            "binding_device": self._binding_device(),
            "options": dict(self.options),
            "session": dict(self.session),
            "memory_limit_mb": self.memory_limit_mb,
        }

    def _binding_device(self) -> str:
        """Return the device of IO binding: that of the first provider that has one in the catalogue."""
        found = (find_provider(name) for name in self.providers if name != CPU)
        return next((known.binding_device for known in found if known and known.binding_device), "")


def configuration(target: Target, cell: Cell) -> Configuration:
    """The configuration that a cell of this target needs."""
    mode = target.mode_at(cell)
    return Configuration(
        runtime=target.runtime,
        env=tuple(sorted((target.env | (mode.env if mode else {})).items())),
        providers=target.provider,
        plugin=target.plugin,
        device=tuple(sorted(target.device.items())),
        options=tuple(sorted(target.options_at(cell).items())),
        session=tuple(sorted(mode.session.items())) if mode else (),
        memory_limit_mb=target.memory_limit_mb,
    )


def cpu_configuration(runtime: Runtime) -> Configuration:
    """The CPU provider of a runtime, for goldens and for second opinions."""
    return Configuration(runtime=runtime, session=tuple(sorted(SESSION.items())))


def interpreter(runtime: Runtime) -> tuple[str, ...]:
    """The command that starts a local runtime's Python; an environment has to be built before.

    Raises:
        InstallError: A wheel that it is to be built from is not there.
    """
    if runtime.python:
        return (runtime.python,)
    if runtime.packages:
        note_use(runtime)
        return (str(built_python(runtime)),)
    return (sys.executable,)


def is_local(runtime: Runtime) -> bool:
    """Whether the runtime sees the harness's own files."""
    return not (runtime.command or runtime.ssh)


def job(
    case: Case,
    axes: dict[str, str],
    tensors: Tensors,
    *,
    local: bool,
    scenario_settings: dict[str, int] | None = None,
    latency: LatencySettings | None = None,
    repeat: RepeatSettings | None = None,
    question: Question | None = None,
) -> dict[str, Any]:
    """One model as the agent takes it.

    Args:
        case: The model and its inputs.
        axes: Values of the session axes; those of ``AXIS_DEFAULTS`` for a golden.
        tensors: What carries the inputs.
        local: Whether the agent can read the model's path; elsewhere it asks for what it does not have.
        scenario_settings: How much the scenario among the axes asks for.
        latency: How the time of its runs is to be measured; None where it is not.
        repeat: How often it is to be run; None where a second run, if that is cheap, is enough.
        question: What is asked; None for a cell.

    Raises:
        NoRoomError: There is no room for the inputs.
        OSError: The model's file cannot be read any more.
    """
    settings = AXIS_DEFAULTS | axes
    module = agent_module(settings["scenario"])
    entries = {
        axis.removeprefix(SESSION_ENTRY): value
        for axis, value in axes.items()
        if axis.startswith(SESSION_ENTRY)
    }
    played = {"scenario": module, "scenario_settings": scenario_settings or {}}
    tensors.begin()
    try:
        return {
            "model": str(case.model_path) if local else parcel(case),
            "data_sets": [
                [(name, tensors.put(value)) for name, value in data_set.inputs] for data_set in case.data_sets
            ],
            "graph_optimization": settings["graph_optimization"],
            "execution_mode": settings["execution_mode"],
            **(played if module else {}),
            **({} if latency is None else {"latency": msgspec.to_builtins(latency)}),
            **({} if repeat is None else {"repeat": msgspec.to_builtins(repeat)}),
            **({} if question is None else question.job_fields()),
            **({"other": True} if wants_other_inputs(case, settings, question) else {}),
            **({"form": axes[FORM]} if FORM in axes else {}),
            **({THREADS: int(axes[THREADS])} if THREADS in axes else {}),
            **({"entries": entries} if entries else {}),
        }
    except BaseException:
        tensors.discard()
        raise


def wants_other_inputs(case: Case, axes: Mapping[str, str], question: Question | None) -> bool:
    """Whether a job runs other inputs between two runs of its only data set.

    Plain sessions do; what becomes of their inputs elsewhere is what a scenario is about.
    """
    plainly = question is None or question.kind is Kind.ANSWER
    return plainly and SCENARIOS[axes["scenario"]].swaps_inputs and len(case.data_sets) == 1

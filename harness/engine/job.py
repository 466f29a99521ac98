"""What is asked of an agent: its configuration, and one job for each model."""

import shlex
import sys
from typing import Any

import msgspec

from harness.core.cell import AXIS_DEFAULTS, Cell
from harness.core.value import to_wire
from harness.corpus.case import Case
from harness.plan.target import Runtime, Target

CPU = "CPUExecutionProvider"


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """What one process serves: a runtime and a provider with one set of options.

    Attributes:
        runtime: Which interpreter.
        env: Environment variables as sorted pairs.
        providers: The chain, preferred first.
        plugin: Package or path of a plugin library; None for a provider of the build.
        device: Device filter as sorted pairs.
        options: Provider options as sorted pairs.
        memory_limit_mb: Cap on the address space in MiB; None for none.
    """

    runtime: Runtime
    env: tuple[tuple[str, str], ...] = ()
    providers: tuple[str, ...] = (CPU,)
    plugin: str | None = None
    device: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    memory_limit_mb: int | None = None

    def message(self) -> dict[str, Any]:
        """The configuration as the agent takes it."""
        return {
            "providers": list(self.providers),
            "plugin": self.plugin,
            "device": dict(self.device),
            "options": dict(self.options),
            "memory_limit_mb": self.memory_limit_mb,
        }


def configuration(target: Target, cell: Cell) -> Configuration:
    """The configuration that a cell of this target needs."""
    return Configuration(
        runtime=target.runtime,
        env=tuple(sorted(target.env.items())),
        providers=target.provider,
        plugin=target.plugin,
        device=tuple(sorted(target.device.items())),
        options=tuple(sorted(target.options_at(cell).items())),
        memory_limit_mb=target.memory_limit_mb,
    )


def cpu_configuration(runtime: Runtime) -> Configuration:
    """The CPU provider of a runtime, for goldens and for second opinions."""
    return Configuration(runtime=runtime)


def interpreter(runtime: Runtime) -> tuple[str, ...]:
    """The command that starts a runtime's Python.

    Raises:
        NotImplementedError: This release cannot make such a runtime; the text says what can be done instead.
    """
    if runtime.python:
        return (runtime.python,)
    if runtime.command:
        return tuple(shlex.split(runtime.command))
    if runtime.packages:
        raise NotImplementedError(
            "environments are not built from package names yet: make one and name its interpreter, "
            'runtime = { python = "/path/to/python" }'
        )
    if runtime.ssh:
        raise NotImplementedError(
            "ssh runtimes are not there yet: name a command that ends in a Python, "
            f'runtime = {{ command = "ssh {runtime.ssh} python3" }}'
        )
    return (sys.executable,)


def is_local(runtime: Runtime) -> bool:
    """Whether the runtime sees the harness's own files."""
    return not (runtime.command or runtime.ssh)


def job(case: Case, axes: dict[str, str], *, local: bool) -> dict[str, Any]:
    """One model as the agent takes it.

    Args:
        case: The model and its inputs.
        axes: Values of the session axes; those of ``AXIS_DEFAULTS`` for a golden.
        local: Whether the agent can read the model's path; elsewhere it travels as bytes.

    Raises:
        OSError: The model's file cannot be read any more.
    """
    settings = AXIS_DEFAULTS | axes
    return {
        "model": str(case.model_path) if local else case.model_path.read_bytes(),
        "data_sets": [
            [(name, to_wire(value)) for name, value in data_set.inputs] for data_set in case.data_sets
        ],
        "graph_optimization": settings["graph_optimization"],
        "execution_mode": settings["execution_mode"],
    }

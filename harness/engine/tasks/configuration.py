"""The configuration of a process: a runtime, and a provider with one set of options."""

from typing import Any

import msgspec

from harness.catalog.catalog import find_provider
from harness.core.records.cell import Cell
from harness.core.records.facts import CPU_PROVIDER
from harness.engine.tasks.task import HOME
from harness.golden.provenance import SESSION, WHERE_POSSIBLE
from harness.plan.places import Place
from harness.plan.target import Runtime, Target

Interpreter = tuple[Runtime, tuple[tuple[str, str], ...]]
"""A runtime, and environment variables as sorted pairs."""

HERE: Interpreter = (HOME, ())
"""The harness's own interpreter, without further variables."""


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration that one process serves. Tables are sorted pairs.

    Attributes:
        providers: The chain, preferred first.
        plugin: Package or path of a plugin library; None for a provider of the build.
        session: Session configuration entries.
        where_possible: Further ones, which a session that cannot be created with them does without.
        memory_limit_mb: Cap on the address space in MiB; None for none.
    """

    runtime: Runtime
    env: tuple[tuple[str, str], ...] = ()
    providers: tuple[str, ...] = (CPU_PROVIDER,)
    plugin: str | None = None
    device: tuple[tuple[str, str], ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    session: tuple[tuple[str, str], ...] = ()
    where_possible: tuple[tuple[str, str], ...] = ()
    memory_limit_mb: int | None = None

    @property
    def interpreter(self) -> Interpreter:
        """The part of a configuration that must be equal to share spare processes."""
        return self.runtime, self.env

    def message(self, tensor_folders: list[str]) -> dict[str, Any]:
        """Return the configuration in the agent's format, with the folders for its tensors."""
        return {
            "tensor_folders": tensor_folders,
            "providers": list(self.providers),
            "plugin": self.plugin,
            "device": dict(self.device),
            "binding_device": self._binding_device(),
            "options": dict(self.options),
            "session": dict(self.session),
            **({"session_where_possible": dict(self.where_possible)} if self.where_possible else {}),
            "memory_limit_mb": self.memory_limit_mb,
        }

    def _binding_device(self) -> str:
        """Return the device of IO binding: that of the first provider that has one in the catalogue."""
        found = (find_provider(name) for name in self.providers if name != CPU_PROVIDER)
        return next((known.binding_device for known in found if known and known.binding_device), "")


def configuration(target: Target, cell: Cell) -> Configuration:
    """Return the configuration that a cell of this target needs."""
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


def configured_at(place: Place, config: Configuration) -> Configuration:
    """Return the configuration of a process at a place."""
    runtime = config.runtime
    if place.is_elsewhere:
        runtime = Runtime(
            ssh=place.ssh,
            adb=place.adb,
            command=place.command,
            python=place.python,
            channel=place.channel,
            agent=() if place.python else runtime.agent,
            agent_files=() if place.python else runtime.agent_files,
        )
    return msgspec.structs.replace(
        config,
        runtime=msgspec.structs.replace(runtime, places=None),
        env=tuple(sorted({**dict(config.env), **place.env}.items())),
        device=tuple(sorted({**dict(config.device), **place.device}.items())),
    )


def cpu_configuration(runtime: Runtime) -> Configuration:
    """Return the configuration of a runtime's CPU provider, for goldens and references."""
    return Configuration(
        runtime=runtime,
        session=tuple(sorted(SESSION.items())),
        where_possible=tuple(sorted(WHERE_POSSIBLE.items())),
    )

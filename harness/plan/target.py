"""A target: a place where sessions are made."""

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from harness.core.cell import Cell
from harness.plan.file_format import Scalar, TargetTable, Timeouts
from harness.plan.structure import OPTION

LIBRARY_SUFFIXES = (".so", ".dll", ".dylib")
"""What tells a library's file name from a package's name."""

_Value = TypeVar("_Value")


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """Which Python, with which onnxruntime. At most one is set; without any it is the harness's own.

    Attributes:
        packages: Requirements of an environment to build.
        python: An interpreter; a name to look up, or an absolute path.
        ssh: ``user@host``.
        command: A command line that ends in a Python.
    """

    packages: tuple[str, ...] = ()
    python: str | None = None
    ssh: str | None = None
    command: str | None = None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A place where sessions are made.

    Attributes:
        name: Unique in the matrix.
        provider: The chain of providers, preferred first; at least one.
        plugin: A package with ``get_library_path()``, or a library's path (absolute where it is local).
        device: Device filter: every entry must match.
        options: Provider options; an ``option.<key>`` axis replaces the entry of its key (``options_at``).
        env: Environment variables, set before the process starts.
        runtime: Which Python, with which onnxruntime.
        workers: Processes at once on this device.
        required: Whether ``unavailable`` fails the run.
        axes: Axis -> values; replaces the matrix's axis of the same name.
        timeouts_s: Limit of each phase in seconds.
        memory_limit_mb: Memory that a process may take, in MiB; None for no limit.
    """

    name: str
    provider: tuple[str, ...]
    plugin: str | None = None
    device: dict[str, str] = {}
    options: dict[str, str] = {}
    env: dict[str, str] = {}
    runtime: Runtime = Runtime()
    workers: int = 1
    required: bool = False
    axes: dict[str, tuple[str, ...]] = {}
    timeouts_s: Timeouts = Timeouts()
    memory_limit_mb: int | None = None

    def options_at(self, cell: Cell) -> dict[str, str]:
        """The provider options of one cell: those of the target, with the cell's option axes on top."""
        varied = {axis.removeprefix(OPTION): value for axis, value in cell.axes if axis.startswith(OPTION)}
        return self.options | varied


def target_from(table: Mapping[str, Any], folder: Path) -> Target:
    """A target from its table of a matrix file.

    Args:
        table: A ``[[target]]`` without deviations.
        folder: Where relative paths of a local runtime start.
    """
    written = msgspec.convert(table, TargetTable)
    runtime = written.runtime
    # Behind ssh or a command, a path is another machine's business.
    local = runtime.ssh is UNSET and runtime.command is UNSET
    here = folder if local else None
    python, plugin = _set(runtime.python), _set(written.plugin)
    return Target(
        name=written.name,
        provider=one_or_more(written.provider),
        plugin=None if plugin is None else _from_here(plugin, here),
        device=texts(written.device),
        options=texts(written.options),
        env=texts(written.env),
        runtime=Runtime(
            packages=tuple(_set(runtime.packages) or ()),
            python=None if python is None else _from_here(python, here),
            ssh=_set(runtime.ssh),
            command=_set(runtime.command),
        ),
        workers=written.workers,
        required=written.required,
        axes=axes_from(table.get("axes", {})),
        timeouts_s=written.timeouts_s,
        memory_limit_mb=_set(written.memory_limit_mb),
    )


def one_or_more(value: str | Sequence[str]) -> tuple[str, ...]:
    """A text alone, or each of a list of them."""
    return (value,) if isinstance(value, str) else tuple(value)


def axes_from(table: Mapping[str, Sequence[Scalar]]) -> dict[str, tuple[str, ...]]:
    """Axis -> values as text, in the order of the file."""
    return {axis: tuple(text(value) for value in values) for axis, values in table.items()}


def texts(table: Mapping[str, Scalar]) -> dict[str, str]:
    """The same table with every value as text."""
    return {key: text(value) for key, value in table.items()}


def text(value: Scalar) -> str:
    """A TOML value as the text that an option or variable receives.

    ``true`` becomes ``1`` and ``false`` ``0``, which most providers read. Some do not (TensorRT wants
    ``True``, DirectML ``true``): for these the file holds the text itself.
    """
    return str(int(value)) if isinstance(value, bool) else str(value)


def _from_here(path: str, folder: Path | None) -> str:
    """A relative path, made absolute; a bare name (a package, a command to look up) stays as it is."""
    pure = PurePath(path)
    is_path = len(pure.parts) > 1 or pure.suffix in LIBRARY_SUFFIXES
    return str(folder / pure) if folder is not None and is_path else path


def _set(value: _Value | UnsetType) -> _Value | None:
    return None if value is UNSET else value

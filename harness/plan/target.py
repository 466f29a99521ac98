"""A target: a place where sessions are made."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from harness.catalog.option import PrecisionMode
from harness.core.cell import AXIS_DEFAULTS, Cell
from harness.core.precision import IN_MODEL
from harness.core.structure import OPTION
from harness.plan.file_format import RenewAfter, Scalar, TargetTable, Timeouts
from harness.plan.known_provider import known_provider, release_of
from harness.plan.precision import precision_mode, why_not

LIBRARY_SUFFIXES = (".so", ".dll", ".dylib")
"""What tells a library's file name from a package's name."""

TRUE_FALSE = ("1", "0")
"""How booleans are spelled for whatever is no option of a provider that the catalogue knows."""

_Value = TypeVar("_Value")


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """Which Python, with which onnxruntime: by packages, python, ssh or command, else the harness's own.

    Attributes:
        packages: Requirements of an environment to build; those that are files as absolute paths.
        python_version: Which Python the packages are for, as uv understands it; None for the harness's own.
        python: An interpreter; a name to look up, or an absolute path. Beside ``ssh`` one over there.
        ssh: ``user@host``, or what ~/.ssh/config calls it.
        command: A command line that ends in a Python.
    """

    packages: tuple[str, ...] = ()
    python_version: str | None = None
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
        options: Provider options; ``options_at`` says what a cell adds to them.
        unchecked_options: Whether the catalogue has no say in the options.
        env: Environment variables, set before the process starts.
        runtime: Which Python, with which onnxruntime.
        workers: Processes at once on this device.
        required: Whether ``unavailable`` fails the run.
        axes: Axis -> values; replaces the matrix's axis of the same name.
        timeouts_s: Limit of each phase in seconds.
        memory_limit_mb: Memory that a process may take, in MiB; None for no limit.
        retries: Further tries of an unexpected failure.
        alone: Whether nothing else may run meanwhile.
        device_lock: Name of the device that sessions occupy; empty for none, None where it is to be derived.
        renew_after: When a process is replaced by a fresh one.
    """

    name: str
    provider: tuple[str, ...]
    plugin: str | None = None
    device: dict[str, str] = {}
    options: dict[str, str] = {}
    unchecked_options: bool = False
    env: dict[str, str] = {}
    runtime: Runtime = Runtime()
    workers: int = 1
    required: bool = False
    axes: dict[str, tuple[str, ...]] = {}
    timeouts_s: Timeouts = Timeouts()
    memory_limit_mb: int | None = None
    retries: int = 0
    alone: bool = False
    device_lock: str | None = None
    renew_after: RenewAfter = RenewAfter()

    def delivers(self, cell: Cell) -> tuple[str, ...]:
        """Coarser precisions that the provider may compute a float32 model in by its own default.

        None where the matrix asks for a precision: by the axis, or by an option that chooses one.
        """
        known = known_provider(self.provider)
        if known is None or cell.axis("precision") != AXIS_DEFAULTS["precision"]:
            return ()
        choosing = {key for mode in known.precision_modes for key in mode.options}
        choosing |= {option.key for option in known.options if option.changes_numerics}
        return () if choosing & self.options_at(cell).keys() else known.delivers

    def options_at(self, cell: Cell) -> dict[str, str]:
        """The options of one cell: the target's, with its precision mode's and its option axes' on top."""
        mode = self.mode_at(cell)
        varied = {axis.removeprefix(OPTION): value for axis, value in cell.axes if axis.startswith(OPTION)}
        return (with_mode(self.options, mode.options) if mode else self.options) | varied

    def mode_at(self, cell: Cell) -> PrecisionMode | None:
        """The precision mode of one cell; None for ``fp32``, and where the provider has no such mode."""
        return precision_mode(self.provider[0], cell.axis("precision"))

    def declared(self, cell: Cell) -> str:
        """Why this target does not have the precision of a cell; empty where the cell can be tried."""
        if cell.axis("precision") == AXIS_DEFAULTS["precision"]:
            return ""
        known = known_provider(self.provider)
        return why_not(
            self.provider[0],
            cell.axis("precision"),
            self.device,
            plugin=self.plugin is not None,
            release=release_of(known, self.runtime.packages) if known else "",
        )


def target_from(table: Mapping[str, Any], folder: Path, axes: Mapping[str, Sequence[Scalar]]) -> Target:
    """A target from its table of a matrix file.

    Args:
        table: A ``[[target]]`` without deviations.
        folder: Where relative paths of a local runtime start.
        axes: The table ``[axes]`` of the file.
    """
    written = msgspec.convert(table, TargetTable)
    known = known_provider(written.provider)
    booleans = known.true_false if known else TRUE_FALSE
    own_axes = table.get("axes", {})
    if booleans != TRUE_FALSE:  # an axis for all targets has the common spelling
        own_axes = {axis: values for axis, values in axes.items() if _has_boolean(values)} | own_axes
    runtime = written.runtime
    # Behind ssh or a command, a path is another machine's business.
    local = runtime.ssh is UNSET and runtime.command is UNSET
    here = folder if local else None
    python, plugin = _set(runtime.python), _set(written.plugin)
    return Target(
        name=written.name,
        provider=one_or_more(written.provider),
        plugin=None if plugin is None else from_here(plugin, here),
        device=texts(written.device),
        options=texts(written.options, booleans),
        unchecked_options=written.unchecked_options,
        env=texts(written.env),
        runtime=Runtime(
            packages=tuple(
                str(folder / requirement) if is_path(requirement) else requirement
                for requirement in _set(runtime.packages) or ()
            ),
            python_version=_set(runtime.python_version),
            python=None if python is None else from_here(python, here),
            ssh=_set(runtime.ssh),
            command=_set(runtime.command),
        ),
        workers=written.workers,
        required=written.required,
        axes=axes_from(own_axes, booleans),
        timeouts_s=written.timeouts_s,
        memory_limit_mb=_set(written.memory_limit_mb),
        retries=written.retries,
        alone=written.alone,
        device_lock=_set(written.device_lock),
        renew_after=written.renew_after,
    )


def is_fixed(axis: str) -> bool:
    """Whether a process has one value of an axis for all of its life: the precision, and options."""
    return axis == "precision" or axis.startswith(OPTION)


def fixed_axes(cell: Cell) -> tuple[tuple[str, str], ...]:
    """The axes of a cell that decide which process serves it; any serves a model of another precision."""
    return tuple(pair for pair in cell.axes if is_fixed(pair[0]) and pair[1] not in IN_MODEL)


def one_or_more(value: str | Sequence[str]) -> tuple[str, ...]:
    """A text alone, or each of a list of them."""
    return (value,) if isinstance(value, str) else tuple(value)


def with_mode(options: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Provider options with those of a precision mode on top; JSON objects are merged key by key."""
    both = {key: _merged(options[key], value) for key, value in chosen.items() if key in options}
    return {**options, **chosen, **both}


def axes_from(
    table: Mapping[str, Sequence[Scalar]], booleans: tuple[str, str] = TRUE_FALSE
) -> dict[str, tuple[str, ...]]:
    """Axis -> values as text, in the order of the file."""
    return {axis: tuple(text(value, booleans) for value in values) for axis, values in table.items()}


def texts(table: Mapping[str, Scalar], booleans: tuple[str, str] = TRUE_FALSE) -> dict[str, str]:
    """The same table with every value as text."""
    return {key: text(value, booleans) for key, value in table.items()}


def text(value: Scalar, booleans: tuple[str, str] = TRUE_FALSE) -> str:
    """A TOML value as the text that an option or variable receives.

    Args:
        value: As ``tomllib`` reads it.
        booleans: What becomes of ``true`` and ``false``; for options ``Provider.true_false``, since TensorRT
            wants ``True`` and DirectML ``true``.
    """
    return booleans[not value] if isinstance(value, bool) else str(value)


def is_path(requirement: str) -> bool:
    """Whether a requirement is a file's path, and not a name, with or without a URL."""
    is_url = "://" in requirement or "@" in requirement
    return not is_url and ("/" in requirement or "\\" in requirement or requirement.endswith(".whl"))


def _merged(below: str, above: str) -> str:
    try:
        tables = json.loads(below), json.loads(above)
    except ValueError:
        return above
    return json.dumps(_over(*tables)) if all(isinstance(table, dict) for table in tables) else above


def _over(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: _over(below.get(key), value) for key, value in above.items()}}


def _has_boolean(values: Sequence[Scalar]) -> bool:
    return any(isinstance(value, bool) for value in values)


def from_here(path: str, folder: Path | None) -> str:
    """A relative path, made absolute; a bare name (a package, a command to look up) stays as it is."""
    pure = PurePath(path)
    is_path = len(pure.parts) > 1 or pure.suffix in LIBRARY_SUFFIXES
    return str(folder / pure) if folder is not None and is_path else path


def _set(value: _Value | UnsetType) -> _Value | None:
    return None if value is UNSET else value

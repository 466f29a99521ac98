"""A target: a place where sessions are made."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import msgspec
from msgspec import UNSET

from harness.catalog.option import PrecisionMode
from harness.catalog.provider import Accuracy
from harness.core.files.structure import OPTION
from harness.core.records.cell import AXIS_DEFAULTS, Cell
from harness.core.records.precision import IN_MODEL
from harness.core.records.run_work import WORK_LIMIT
from harness.plan.file_format import RenewAfter, TargetTable, Timeouts
from harness.plan.known_provider import (
    EP,
    OWN_PRECISIONS,
    known_provider,
    precision_mode,
    release_of,
    why_not_tried,
)
from harness.plan.places import Places, places_from
from harness.plan.selector import TRUE_FALSE, SelectorValue, one_or_more, text
from harness.plan.surroundings import surroundings_of

LIBRARY_SUFFIXES = (".so", ".dll", ".dylib")
"""Suffixes that distinguish a library's file name from a package's name."""


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """Where onnxruntime runs; by default in the harness's own Python. Fields as in ``RuntimeTable``.

    Attributes:
        packages: Requirements of an environment to be built; files as absolute paths.
        python: An interpreter: a name to look up, or an absolute path; with ``ssh`` one on that machine.
        node: A version of Node.js, or an absolute path of it.
        browser: A browser's name, or an absolute path of it.
        threads: Threads of onnxruntime-web; None for one.
        agent: Program and arguments of an agent of another author; files of this machine as absolute paths.
        agent_files: Those words of it that are files of this machine.
        places: Name of the target to whose places it belongs; None for an independent runtime.
    """

    packages: tuple[str, ...] = ()
    python_version: str | None = None
    python: str | None = None
    ssh: str | None = None
    command: str | None = None
    channel: str | None = None
    node: str | None = None
    browser: str | None = None
    flags: tuple[str, ...] = ()
    threads: int | None = None
    adb: str | None = None
    agent: tuple[str, ...] = ()
    agent_files: tuple[str, ...] = ()
    places: str | None = None

    @property
    def is_elsewhere(self) -> bool:
        """Return whether a path of a target belongs to another machine, or to what a command starts."""
        return self.ssh is not None or self.adb is not None or self.command is not None

    @property
    def is_javascript(self) -> bool:
        """Return whether it is Node.js or a browser, so that its packages are from npm."""
        return self.node is not None or self.browser is not None


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A place where sessions are made; fields as in ``TargetTable``, values of options and axes as text.

    Attributes:
        provider: The chain of providers, preferred first; at least one.
        plugin: A package with ``get_library_path()``, or a library's path (absolute if it is local).
        options: Provider options of the target; ``options_at`` adds those of a cell.
        precisions: Modes of a provider that the catalogue lacks: name -> the options that choose it.
        memory_limit_mb: Limit on the memory of a process, in MiB; None for no limit.
        work_limit: Operations of one run up to which a model is run again; see
            ``harness.core.records.run_work``.
        places: Interchangeable runtimes; None for ``runtime`` alone.
        device_lock: Name of the device that sessions occupy; empty for none, None to derive it.
    """

    name: str
    provider: tuple[str, ...]
    plugin: str | None = None
    device: dict[str, str] = {}
    options: dict[str, str] = {}
    precisions: dict[str, dict[str, str]] = {}
    unchecked_options: bool = False
    env: dict[str, str] = {}
    runtime: Runtime = Runtime()
    places: Places | None = None
    workers: int | None = None
    required: bool = False
    axes: dict[str, tuple[str, ...]] = {}
    timeouts_s: Timeouts = Timeouts()
    memory_limit_mb: int | None = None
    retries: int = 0
    work_limit: float = WORK_LIMIT
    alone: bool = False
    device_lock: str | None = None
    renew_after: RenewAfter = RenewAfter()

    def delivers(self, cell: Cell, fingerprints: Collection[Mapping[str, Any]] = ()) -> tuple[str, ...]:
        """Return coarser precisions in which the provider may compute by its own default.

        It is empty if the matrix chooses the computing precision, by the axis or by an option. A converted
        model is no such choice: the provider may compute it like any other. Nor is an option that chooses a
        device. ``fingerprints`` are those of the places where the target ran: what none of these processors
        can compute is left out.
        """
        known = known_provider(self.provider)
        if known is None or not known.delivers:
            return ()
        if cell.axis("precision") not in {AXIS_DEFAULTS["precision"], *IN_MODEL}:
            return ()
        options = self.options_at(cell)
        numeric = {option.key for option in known.options if option.changes_numerics}
        chosen = bool(numeric & options.keys()) or any(
            _settings(value) & _settings(options.get(key, ""))
            for mode in known.precision_modes
            for key, value in mode.options.items()
        )
        if chosen:
            return ()
        return tuple(
            one
            for one in known.delivers
            if not fingerprints or any(self._may_compute(one, options, found) for found in fingerprints)
        )

    def _may_compute(
        self, precision: str, options: Mapping[str, str], fingerprint: Mapping[str, Any]
    ) -> bool:
        """Return whether the device there may compute in a precision: not if it is a processor without it."""
        known = known_provider(self.provider)
        needed = set(known.delivers_if.get(precision, ())) if known is not None else set()
        if known is None or not needed:
            return True
        seen = surroundings_of(fingerprint, self.provider, self.device)
        if self.plugin:
            is_processor = seen.device_types == {"CPU"}
        else:
            chosen = {key: options.get(key, value) for key, value in known.processor_options.items()}
            is_processor = bool(chosen) and chosen == known.processor_options
        return not is_processor or seen.features is None or bool(needed & seen.features)

    @property
    def accuracy(self) -> tuple[Accuracy, ...]:
        """Return errors, larger than rounding, that documents allow the provider."""
        known = known_provider(self.provider)
        return () if known is None else known.accuracy

    def remedy(self, cell: Cell, precision: str) -> str:
        """Return how to make the provider compute in a precision, in words; empty if unknown."""
        known = known_provider(self.provider)
        for mode in known.precision_modes if known is not None else ():
            value = EP + mode.name
            if mode.computes == precision and value != cell.axis("precision") and not self._why_not(value):
                return f"{mode.meaning.rstrip('.')} (precision {value})"
        return ""

    def options_at(self, cell: Cell) -> dict[str, str]:
        """Return the options of a cell: the target's, overridden by its precision mode and option axes."""
        mode = self.mode_at(cell)
        varied = {axis.removeprefix(OPTION): value for axis, value in cell.axes if axis.startswith(OPTION)}
        return (with_mode(self.options, mode.options) if mode else self.options) | varied

    def mode_at(self, cell: Cell) -> PrecisionMode | None:
        """Return the precision mode of a cell; None for ``fp32`` and for unknown modes."""
        return self._mode(cell.axis("precision"))

    def _mode(self, precision: str) -> PrecisionMode | None:
        name = precision.removeprefix(EP)
        if name == precision or name not in self.precisions:
            return precision_mode(self.provider[0], precision)
        return PrecisionMode(
            name=name,
            computes=OWN_PRECISIONS[name],  # type: ignore[arg-type] # values of it are
            options=self.precisions[name],
            meaning=f"{name}, by the options that the matrix names",
            source=("the matrix",),
        )

    def declared(self, cell: Cell) -> str:
        """Return why this target lacks the precision of a cell; empty if the cell can be tried."""
        precision = cell.axis("precision")
        return "" if precision == AXIS_DEFAULTS["precision"] else self._why_not(precision)

    def _why_not(self, precision: str) -> str:
        if self.precisions and precision.removeprefix(EP) in self.precisions:
            return ""
        known = known_provider(self.provider)
        return why_not_tried(
            self.provider[0],
            precision,
            self.device,
            plugin=self.plugin is not None,
            release=release_of(known, self.runtime.packages) if known else "",
        )


def target_from(
    table: Mapping[str, Any], folder: Path, axes: Mapping[str, Sequence[SelectorValue]]
) -> Target:
    """Return a target from its checked ``[[target]]``, and the table ``[axes]`` of the file.

    Relative paths of a local runtime start at ``folder``.
    """
    written = msgspec.convert(table, TargetTable)
    known = known_provider(written.provider)
    booleans = known.true_false if known else TRUE_FALSE
    own_axes = table.get("axes", {})
    if booleans != TRUE_FALSE:  # an axis for all targets has the common spelling
        own_axes = {axis: values for axis, values in axes.items() if bool in map(type, values)} | own_axes
    runtime = msgspec.convert(table.get("runtime", {}), Runtime)
    # With ssh or a command, a path belongs to another machine.
    here = None if runtime.is_elsewhere else folder
    runtime = _with_agent(runtime, folder)
    if runtime.python is not None:
        runtime = msgspec.structs.replace(runtime, python=from_here(runtime.python, here))
    for key in ("node", "browser"):
        if (named := getattr(runtime, key)) is not None and not is_version(named):
            runtime = msgspec.structs.replace(runtime, **{key: from_here(named, folder)})
    places = places_from(table["places"], folder) if "places" in table else None
    if places is not None:
        runtime = msgspec.structs.replace(runtime, places=written.name)
    packages = tuple(str(folder / each) if is_path(each) else each for each in runtime.packages)
    plain = {key: value for key, value in msgspec.structs.asdict(written).items() if value is not UNSET}
    changed = {
        "provider": one_or_more(written.provider),
        "device": _texts(written.device),
        "options": _texts(written.options, booleans),
        "precisions": {name: _texts(options) for name, options in written.precisions.items()},
        "env": _texts(written.env),
        "runtime": msgspec.structs.replace(runtime, packages=packages),
        "places": places,
        "axes": axes_from(own_axes, booleans),
    }
    if isinstance(written.plugin, str):
        changed["plugin"] = from_here(written.plugin, here)
    return Target(**plain | changed)


def _with_agent(runtime: Runtime, folder: Path) -> Runtime:
    """Return a runtime whose agent's own files, such as ``./my_agent``, are absolute."""
    words, files = [], []
    for number, word in enumerate(runtime.agent):
        relative = word.startswith(("./", "../", ".\\", "..\\"))
        if relative or (number == 0 and is_path(word) and not PurePath(word).is_absolute()):
            files.append(str((folder / word).absolute()))
            words.append(files[-1])
        else:
            words.append(word)
    return msgspec.structs.replace(runtime, agent=tuple(words), agent_files=tuple(dict.fromkeys(files)))


def is_fixed(axis: str) -> bool:
    """Return whether all cells of a process share one value of an axis: of the precision, and of options."""
    return axis == "precision" or axis.startswith(OPTION)


def fixed_axes(cell: Cell) -> tuple[tuple[str, str], ...]:
    """Return the axes of a cell that decide which process serves it; converted models run in any process."""
    return tuple(pair for pair in cell.axes if is_fixed(pair[0]) and pair[1] not in IN_MODEL)


def with_mode(options: Mapping[str, str], chosen: Mapping[str, str]) -> dict[str, str]:
    """Return provider options, overridden by those of a precision mode; JSON objects are merged by key."""
    both = {key: _merged(options[key], value) for key, value in chosen.items() if key in options}
    return {**options, **chosen, **both}


def axes_from(
    table: Mapping[str, Sequence[SelectorValue]], booleans: tuple[str, str] = TRUE_FALSE
) -> dict[str, tuple[str, ...]]:
    """Return axis -> values as text, in the order of the file."""
    return {axis: tuple(text(value, booleans) for value in values) for axis, values in table.items()}


def is_path(requirement: str) -> bool:
    """Return whether a requirement is a file's path, not a name with or without a URL."""
    is_url = "://" in requirement or "@" in requirement
    return not is_url and ("/" in requirement or "\\" in requirement or requirement.endswith(".whl"))


def is_version(text: str) -> bool:
    """Return whether a text is a version of Node.js, such as ``20`` or ``20.11``, not a program."""
    return all(part.isdecimal() for part in text.split("."))


def _merged(below: str, above: str) -> str:
    try:
        tables = json.loads(below), json.loads(above)
    except ValueError:
        return above
    return json.dumps(_over(*tables)) if all(isinstance(table, dict) for table in tables) else above


def _settings(text: str) -> set[tuple[str, ...]]:
    """Return the path of each setting of a JSON object, such as the value of ``load_config``.

    Nothing for others.
    """

    def paths(table: Any) -> Iterator[tuple[str, ...]]:
        if not isinstance(table, dict):
            yield ()
            return
        for key, value in table.items():
            yield from ((key, *rest) for rest in paths(value))

    try:
        table = json.loads(text)
    except ValueError:
        return set()
    return set(paths(table)) if isinstance(table, dict) else set()


def _over(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return {**below, **{key: _over(below.get(key), value) for key, value in above.items()}}


def is_library(plugin: str) -> bool:
    """Return whether a plugin is given by the path of its library, not by its package."""
    pure = PurePath(plugin)
    return len(pure.parts) > 1 or pure.suffix in LIBRARY_SUFFIXES


def from_here(path: str, folder: Path | None) -> str:
    """Return a relative path as absolute; a bare name (a package, a command to look up) stays as it is."""
    return str(folder / path) if folder is not None and is_library(path) else path


def _texts(table: Mapping[str, SelectorValue], booleans: tuple[str, str] = TRUE_FALSE) -> dict[str, str]:
    return {key: text(value, booleans) for key, value in table.items()}

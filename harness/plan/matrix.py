"""The matrix: what a matrix file says, checked and in its normal form."""

from pathlib import Path

import msgspec

from harness.core.verdict import Verdict
from harness.plan.selector import Globs, Selector


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """Which models run.

    Attributes:
        suites: Names of built-in suites.
        folders: Folders of models as written; ``Matrix.folder_paths`` says where they are.
        exclude: Globs on ``suite/model`` (or on the model alone) that leave the plan.
        dimensions: Symbolic dimension -> its length, for generated inputs.
    """

    suites: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    exclude: Globs = ()
    dimensions: dict[str, int] = {}


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


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """The limit of each phase in seconds.

    Attributes:
        start: Start of the process and import of onnxruntime.
        register: Registration of a plugin library.
        create: Making of a session, compilation included.
        run: One run of a session.
        teardown: End of a session and of the process.
    """

    start: float
    register: float
    create: float
    run: float
    teardown: float


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
    timeouts_s: Timeouts
    memory_limit_mb: int | None = None


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """A tolerance for the selected cells: ``|out - golden| <= atol + rtol * |golden|``."""

    selector: Selector
    rtol: float
    atol: float


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict that the selected cells are known to have, and why."""

    selector: Selector
    verdict: Verdict
    reason: str


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """A whole matrix file.

    Attributes:
        path: The file as the caller named it.
        schema: Version of the file format.
        models: Which models run.
        axes: Axis -> values, for every target.
        targets: In the order of the file; at least one, names unique.
        exclude: Cells that leave the plan.
        tolerance: Later entries win.
        expect: Later entries win.
    """

    path: str
    schema: int
    models: Models
    axes: dict[str, tuple[str, ...]] = {}
    targets: tuple[Target, ...]
    exclude: tuple[Selector, ...] = ()
    tolerance: tuple[Tolerance, ...] = ()
    expect: tuple[Expectation, ...] = ()

    @property
    def folder_paths(self) -> tuple[Path, ...]:
        """The folders of models; relative ones start at the matrix file's folder, not at the working folder."""
        return tuple(Path(self.path).resolve().parent / folder for folder in self.models.folders)

"""The matrix: what a matrix file says, checked and in its normal form."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from harness.core.cell import Cell
from harness.core.errors import Problem, UsageError, valid_names
from harness.core.model_settings import ModelSettings
from harness.core.scenario import SCENARIOS
from harness.core.structure import Place, deviations
from harness.core.verdict import Verdict
from harness.plan.consistency import contradictions
from harness.plan.file_format import LatencyTable, MatrixFile, ModelsTable
from harness.plan.repeat_entry import RepeatRequest, repeat_request
from harness.plan.scenarios import Scenarios
from harness.plan.selector import Globs, Selector, selector_from
from harness.plan.target import Target, axes_from, one_or_more, target_from
from harness.plan.tolerance_entry import ToleranceEntry, tolerance_entry


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


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """What is said about the selected models."""

    models: Globs
    settings: ModelSettings


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict that the selected cells are known to have, and why.

    Attributes:
        selector: Which cells.
        verdicts: Any of these is expected; more than one where a fault shows in more than one way.
        reason: Why, or a link to it.
    """

    selector: Selector
    verdicts: tuple[Verdict, ...]
    reason: str


class LatencySettings(msgspec.Struct, frozen=True, kw_only=True):
    """How latency is measured.

    Attributes:
        warm_up: Runs that do not count, before the others.
        repeats: Runs that count, at most.
        budget_s: Seconds after which no further run begins, warm-up included; one run always counts.
    """

    warm_up: int
    repeats: int
    budget_s: float


class LatencyRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cells whose latency is measured, and how."""

    selector: Selector
    settings: LatencySettings


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """A whole matrix file.

    Attributes:
        path: The file as the caller named it.
        schema: Version of the file format.
        models: Which models run.
        model: Dimensions and inputs of single models; later entries win.
        axes: Axis -> values, for every target.
        scenarios: How much scenarios ask for.
        targets: In the order of the file; at least one, names unique.
        exclude: Cells that leave the plan.
        tolerance: Later entries win.
        expect: Later entries win.
        latency: Later entries win.
        repeat: Later entries win.
    """

    path: str
    schema: int
    models: Models
    model: tuple[ModelEntry, ...] = ()
    axes: dict[str, tuple[str, ...]] = {}
    scenarios: Scenarios = Scenarios()
    targets: tuple[Target, ...]
    exclude: tuple[Selector, ...] = ()
    tolerance: tuple[ToleranceEntry, ...] = ()
    expect: tuple[Expectation, ...] = ()
    latency: tuple[LatencyRequest, ...] = ()
    repeat: tuple[RepeatRequest, ...] = ()

    @property
    def folder_paths(self) -> tuple[Path, ...]:
        """The folders of models; relative ones start where the matrix file lies."""
        return tuple(Path(self.path).absolute().parent / folder for folder in self.models.folders)

    @property
    def first_providers(self) -> dict[str, str]:
        """Name of a target -> the preferred provider of its chain: what ``provider`` selects by."""
        return {target.name: target.provider[0] for target in self.targets}


def has_latency(cell: Cell) -> bool:
    """Whether there is anything to measure in a cell's scenario."""
    return SCENARIOS[cell.axis("scenario")].measurable


def load_matrix(path: Path) -> Matrix:
    """Read and check a matrix file.

    Args:
        path: A TOML file in UTF-8.

    Returns:
        The matrix in its normal form: chains, lists and option values as tuples and texts.

    Raises:
        UsageError: The file cannot be read, is no TOML, or says what it may not; every problem is in it, each
            with its place. Whether suites and folders exist is for those who open them to say.
    """
    return matrix_from(read_toml(path), path)


def matrix_from(table: dict[str, Any], path: Path) -> Matrix:
    """Check a parsed matrix, wherever it comes from.

    Args:
        table: What ``tomllib`` would make of a matrix file.
        path: Names the matrix in messages; relative folders and libraries start beside it.

    Raises:
        UsageError: The matrix says what it may not; as ``load_matrix``.
    """
    place = Place(str(path))
    folder = path.absolute().parent
    problems = [*deviations(table, msgspec.inspect.type_info(MatrixFile), place)]
    problems += contradictions(table, place, folder)
    if problems:
        raise UsageError(*problems)
    models = msgspec.convert(table.get("models", {}), ModelsTable)
    return Matrix(
        path=str(path),
        schema=table["schema"],
        models=Models(
            suites=tuple(models.suites),
            folders=tuple(models.folders),
            exclude=tuple(models.exclude),
            dimensions=models.dimensions,
        ),
        model=tuple(_model_entry(entry) for entry in table.get("model", [])),
        axes=axes_from(table.get("axes", {})),
        scenarios=msgspec.convert(table.get("scenarios", {}), Scenarios),
        targets=tuple(target_from(target, folder, table.get("axes", {})) for target in table["target"]),
        exclude=tuple(selector_from(entry) for entry in table.get("exclude", [])),
        tolerance=tuple(tolerance_entry(entry) for entry in table.get("tolerance", [])),
        expect=tuple(
            Expectation(
                selector=selector_from(entry, not_keys=("verdict", "reason")),
                verdicts=tuple(Verdict(verdict) for verdict in one_or_more(entry["verdict"])),
                reason=entry["reason"],
            )
            for entry in table.get("expect", [])
        ),
        latency=tuple(_latency_request(entry) for entry in table.get("latency", [])),
        repeat=tuple(repeat_request(entry) for entry in table.get("repeat", [])),
    )


def _model_entry(entry: dict[str, Any]) -> ModelEntry:
    said = {key: value for key, value in entry.items() if key != "model"}
    return ModelEntry(models=one_or_more(entry["model"]), settings=msgspec.convert(said, ModelSettings))


def _latency_request(entry: dict[str, Any]) -> LatencyRequest:
    keys = LatencySettings.__struct_fields__
    written = msgspec.convert({key: entry[key] for key in keys if key in entry}, LatencyTable)
    settings = LatencySettings(**{key: getattr(written, key) for key in keys})
    return LatencyRequest(selector=selector_from(entry, not_keys=keys), settings=settings)


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file as plain values.

    Raises:
        UsageError: It cannot be read, or is no TOML.
    """
    try:
        # Editors on Windows may begin a file with a byte order mark, which TOML does not know.
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        near = [file.name for file in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        hint = valid_names(path.name, sorted(near)) if near else "no *.toml file is in that folder"
        problem = Problem(where=str(path), what="no such file", hint=hint)
    except UnicodeDecodeError as error:
        what = f"not UTF-8: byte {error.object[error.start]:#04x} at offset {error.start}"
        problem = Problem(where=str(path), what=what, hint="save the file as UTF-8")
    except OSError as error:
        hint = "name the file itself" if path.is_dir() else ""
        problem = Problem(where=str(path), what=f"cannot be read: {error.strerror}", hint=hint)
    except tomllib.TOMLDecodeError as error:
        message, _, at = str(error).removesuffix(")").partition(" (at ")
        problem = Problem(where=f"{path}: {at}", what=f"not TOML: {message}")
    except (RecursionError, ValueError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else "an integer of absurd length"
        problem = Problem(where=str(path), what=f"cannot be read: {what}")
    raise UsageError(problem)

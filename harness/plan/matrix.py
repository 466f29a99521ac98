"""The matrix: the content of a matrix file, checked and in its normal form."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from harness.core.files.reading import MOST_SETTINGS, read_regular
from harness.core.files.structure import FilePlace, deviations
from harness.core.files.toml_text import toml_table
from harness.core.records.model_settings import ModelSettings
from harness.core.text.errors import UsageError, valid_names
from harness.core.text.globs import Globs
from harness.plan.baselines import Baseline
from harness.plan.consistency import contradictions
from harness.plan.expectation import Expectation, expectation_from
from harness.plan.file_format import MatrixFile
from harness.plan.runs_entry import (
    LatencySettings,
    LatencyTable,
    RepeatSettings,
    RepeatTable,
    RunsRequest,
    runs_request,
)
from harness.plan.scenarios import Scenarios
from harness.plan.selector import Selector, one_or_more, selector_from
from harness.plan.target import Target, axes_from, target_from
from harness.plan.tolerance_entry import ToleranceEntry, tolerance_entry


class ModelSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Which models run; fields as in ``ModelsTable``. ``Matrix.folder_paths`` says where the folders are."""

    suites: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    exclude: Globs = ()
    dimensions: dict[str, int] = {}


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the models that the globs select."""

    models: Globs
    settings: ModelSettings


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """A whole matrix file; fields as in ``MatrixFile``.

    Attributes:
        path: The file as the caller named it.
        axes: Axis -> values, for every target.
        targets: In the order of the file; at least one, names unique.
        baselines: The baselines with which the run is compared; not part of the file.
    """

    path: str
    schema: int
    models: ModelSelection
    model: tuple[ModelEntry, ...] = ()
    axes: dict[str, tuple[str, ...]] = {}
    scenarios: Scenarios = Scenarios()
    targets: tuple[Target, ...]
    exclude: tuple[Selector, ...] = ()
    tolerance: tuple[ToleranceEntry, ...] = ()
    expect: tuple[Expectation, ...] = ()
    latency: tuple[RunsRequest[LatencySettings], ...] = ()
    repeat: tuple[RunsRequest[RepeatSettings], ...] = ()
    baselines: tuple[Baseline, ...] | UnsetType = UNSET

    @property
    def folder_paths(self) -> tuple[Path, ...]:
        """Return the folders of models; relative paths start at the matrix file's folder."""
        return tuple(Path(self.path).absolute().parent / folder for folder in self.models.folders)

    @property
    def package_paths(self) -> tuple[Path, ...]:
        """Return the folders of model packages, likewise."""
        return tuple(Path(self.path).absolute().parent / folder for folder in self.models.packages)

    @property
    def first_providers(self) -> dict[str, str]:
        """Name of a target -> the preferred provider of its chain: what ``provider`` selects by."""
        return {target.name: target.provider[0] for target in self.targets}


def read_matrix(path: Path | str) -> Matrix:
    """Read and check a matrix file, TOML in UTF-8.

    Raises:
        UsageError: The file cannot be read, is not TOML, or is invalid. The error has every problem with its
            place. Suites and folders that do not exist are found when they are opened.
    """
    path = Path(path)
    return matrix_from(read_toml(path), path)


def matrix_from(table: dict[str, Any], path: Path) -> Matrix:
    """Check a matrix that ``tomllib`` has parsed.

    ``path`` names it in messages; relative folders and libraries start beside it.

    Raises:
        UsageError: The matrix is invalid; see ``read_matrix``.
    """
    place = FilePlace(str(path))
    folder = path.absolute().parent
    problems = [*deviations(table, msgspec.inspect.type_info(MatrixFile), place)]
    problems += contradictions(table, place, folder)
    if problems:
        raise UsageError(*problems)
    axes = table.get("axes", {})
    return Matrix(
        path=str(path),
        schema=table["schema"],
        models=msgspec.convert(table.get("models", {}), ModelSelection),
        model=tuple(map(_model_entry, table.get("model", []))),
        axes=axes_from(axes),
        scenarios=msgspec.convert(table.get("scenarios", {}), Scenarios),
        targets=tuple(target_from(target, folder, axes) for target in table["target"]),
        exclude=tuple(map(selector_from, table.get("exclude", []))),
        tolerance=tuple(map(tolerance_entry, table.get("tolerance", []))),
        expect=tuple(map(expectation_from, table.get("expect", []))),
        latency=tuple(runs_request(each, LatencyTable, LatencySettings) for each in table.get("latency", [])),
        repeat=tuple(runs_request(each, RepeatTable, RepeatSettings) for each in table.get("repeat", [])),
    )


def _model_entry(entry: dict[str, Any]) -> ModelEntry:
    settings = {key: value for key, value in entry.items() if key != "model"}
    return ModelEntry(models=one_or_more(entry["model"]), settings=msgspec.convert(settings, ModelSettings))


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file as plain values.

    Raises:
        UsageError: It cannot be read, or is not TOML.
    """
    place = FilePlace(str(path))
    try:
        return toml_table(read_regular(path, MOST_SETTINGS))
    except FileNotFoundError:
        near = [file.name for file in path.parent.glob("*.toml")] if path.parent.is_dir() else []
        hint = valid_names(path.name, sorted(near)) if near else "there is no *.toml file in that folder"
        problem = place.problem("no such file", hint)
    except UnicodeDecodeError as error:
        what = f"not UTF-8: byte {error.object[error.start]:#04x} at offset {error.start}"
        problem = place.problem(what, "save the file as UTF-8")
    except OSError as error:
        hint = "name a file in this folder" if path.is_dir() else ""
        problem = place.problem(f"cannot be read: {error.strerror}", hint)
    except tomllib.TOMLDecodeError as error:
        message, _, at = str(error).removesuffix(")").partition(" (at ")
        problem = FilePlace(str(path), at).problem(f"not TOML: {message}")
    except RecursionError:
        problem = place.problem("cannot be read: nested too deeply")
    except ValueError:
        problem = place.problem("cannot be read: an integer has too many digits")
    raise UsageError(problem)

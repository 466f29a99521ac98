"""What a trace is about: a model with its inputs, and the targets with their axes."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile

import msgspec
import numpy as np

from harness.annex.triage.lab import CellAxes
from harness.annex.triage.subject import Subject
from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.record import Record
from harness.core.text.errors import UsageError, one_line, valid_names
from harness.core.values.value import DTYPES, Tensor, Value, tensor
from harness.corpus.suites.suite import Suite
from harness.corpus.suites.suites import open_model
from harness.engine.tasks.events import Answered
from harness.plan.matrix import Matrix, read_matrix
from harness.plan.plan import Plan
from harness.plan.target import Runtime, Target
from harness.studies.ask import Notify, PlannedModels

InputSource = Literal["data set", "file", "generated"]


class ToTrace(msgspec.Struct, frozen=True, kw_only=True):
    """A model on one target.

    Attributes:
        model: Its name, for people.
        inputs: Where its inputs come from.
    """

    model: str
    subject: Subject
    inputs: InputSource
    target: Target
    axes: CellAxes = ()


def model_to_trace(name: str, inputs: Path | None, notify: Notify) -> tuple[Subject, InputSource]:
    """Return a model with its first data set, or with the inputs of a file.

    Raises:
        UsageError: The model cannot be read or has no inputs; the file does not fit it.
    """
    suite = open_model(name)
    (model,) = suite.models()
    subject, source = _read(PlannedModels.of_folder(suite), suite.name, model, notify)
    if inputs is None:
        return subject, source
    fed = dict(subject.inputs)
    fed |= _of_file(inputs, fed)
    return msgspec.structs.replace(subject, inputs=tuple(fed.items())), "file"


def target_of(text: str) -> tuple[Target, CellAxes]:
    """Return a target of a matrix file and the axes in brackets behind its name.

    Raises:
        UsageError: There is no such file or target; the text is none of a target.
    """
    file, _, name = text.rpartition(".toml:")
    name, bracket, axes = name.partition("[")
    if not file or not name or (bracket and not axes.endswith("]")):
        what = f"expected MATRIX.toml:NAME, MATRIX.toml:NAME[AXIS=VALUE,...] or a provider, got {text!r}"
        raise UsageError.at("--target", what)
    targets = {one.name: one for one in read_matrix(Path(f"{file}.toml")).targets}
    if name not in targets:
        what = f"the matrix has no target {name!r}"
        raise UsageError.at(f"--target {file}.toml", what, valid_names(name, targets))
    return targets[name], axes_of(axes.removesuffix("]"))


def axes_of(text: str) -> CellAxes:
    """Return ``AXIS=VALUE,...`` as axes of a cell.

    Raises:
        UsageError: One of them has no name or no value.
    """
    axes: dict[str, str] = {}
    for one in filter(None, text.split(",")):
        key, _, value = one.partition("=")
        if not key or not value:
            raise UsageError.at("--target", f"expected AXIS=VALUE in the brackets, got {one!r}")
        axes[key] = value
    return tuple(sorted(axes.items()))


def cells_to_trace(
    matrix: Matrix,
    suites: dict[str, Suite],
    records: tuple[Record, ...],
    cells: tuple[str, ...],
    notify: Notify,
) -> Iterator[ToTrace]:
    """Yield cells of a run with their models, in their order; of each the first data set, in a plain session.

    Raises:
        UsageError: The run has no such cell, or its model cannot be read.
    """
    known = {record.cell: record for record in records}
    targets = {target.name: target for target in matrix.targets}
    models = PlannedModels(plan=Plan(matrix=matrix, cells=()), suites=suites)
    for cell in cells:
        if cell not in known:
            raise UsageError.at(cell, "the run has no such cell", valid_names(cell, known))
        record = known[cell]
        subject, source = _read(models, record.suite, record.model, notify)
        others = {
            "scenario",
            *(axis for axis, usual in AXIS_DEFAULTS.items() if record.axes.get(axis) == usual),
        }
        yield ToTrace(
            model=f"{record.suite}/{record.model}",
            subject=subject,
            inputs=source,
            target=targets[record.target],
            axes=tuple(sorted(pair for pair in record.axes.items() if pair[0] not in others)),
        )


def _read(
    models: PlannedModels, suite: str, model: str, notify: Notify
) -> tuple[Subject, Literal["data set", "generated"]]:
    """Return a model with its first data set."""
    case = models.case(suite, model)
    given = any(one.expected for one in case.data_sets)
    if not given:
        # Of generated inputs some attempts fail on the CPU EP; it answers with those that do not.
        for event in models.answers([(suite, model)], Runtime(), notify):
            if isinstance(event, Answered) and event.case is not None:
                case = event.case
    external = case.model_path.parent if case.external else None
    content = case.model_path.read_bytes()
    subject = Subject(model=content, inputs=case.data_sets[0].inputs, external=external)
    return subject, "data set" if given else "generated"


def _of_file(path: Path, fed: dict[str, Value]) -> dict[str, Value]:
    """Return the arrays of an ``.npz`` file as inputs of a model.

    Raises:
        UsageError: It is no such file, or an array is no input or of another type.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (OSError, ValueError, BadZipFile, AttributeError) as error:
        hint = "write it by numpy.savez(FILE, INPUT=array, ...)"
        raise UsageError.at(path, f"no .npz file: {one_line(error, 120)}", hint) from error
    found: dict[str, Value] = {}
    for name, array in arrays.items():
        expected = fed.get(name)
        if expected is None:
            raise UsageError.at(f"{path}: {name}", "the model has no such input", valid_names(name, fed))
        if not isinstance(expected, Tensor):
            raise UsageError.at(f"{path}: {name}", "this input is no tensor; a file cannot have it")
        dtype = DTYPES.get(expected.dtype)
        if array.dtype != dtype:
            what = f"element type {array.dtype}, expected {expected.dtype}"
            raise UsageError.at(f"{path}: {name}", what, "convert it by array.astype")
        if array.ndim != expected.array.ndim:
            what = f"{array.ndim} dimensions, expected {expected.array.ndim}"
            raise UsageError.at(f"{path}: {name}", what)
        with contextlib.suppress(ValueError):
            found[name] = tensor(array)
    return found

"""A recording: goldens in a folder of their own, with models and inputs, in ONNX's layout.

``<suite>/<model>/model.onnx`` with its external data, and beside it ``test_data_set_N/input_M.pb`` and
``output_M.pb``. ONNX's backend tests, ``onnx_test_runner`` and this package read it as a folder of models.
``manifest.json`` has the provenance. It is written last: without it, the recording is incomplete.
"""

import datetime as dt
import hashlib
import importlib.metadata
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from harness.core.files.reading import MOST_FILE, open_regular, read_regular
from harness.core.files.writing import write_aside
from harness.core.text.errors import UsageError, one_line
from harness.core.values.value import NamedValues
from harness.corpus.beside.data_sets import GENERATED
from harness.corpus.case import Case
from harness.corpus.load_case import SEED
from harness.corpus.model.port import ValueType
from harness.corpus.model.protos import encode
from harness.golden.golden_answer import Golden
from harness.golden.provenance import cpu_features

_MANIFEST = "manifest.json"
GOLDEN_MODEL = "model.onnx"
_SCHEMA = 1


RecordingResult = Literal["same", "agrees", "differs", "cannot"]


class CrossCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of a recorded golden with another source of values.

    Attributes:
        by: Name of the other source, as it is displayed.
        result: ``same``: the same values, bit by bit. ``agrees``: within the default tolerance of the model,
            for expected data within that of the suite if it is wider. ``differs``: outside it.
            ``cannot``: the other source has no values.
        headroom: Largest error in units of that tolerance; null without values, or if it is infinite.
        message: The difference, or why there are no values; empty if they agree.
    """

    by: str
    result: RecordingResult
    headroom: float | None = None
    message: str = ""


class RecordedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model of a recording.

    Attributes:
        folder: Its folder, relative to the recording, with forward slashes.
        status: ``ok``: its outputs are there; ``refused``: the CPU EP raised an error.
        message: The error.
        disputed: Why its values cannot be used for judging; see ``harness.golden.golden_answer.Golden``.
        seed: Seed of generated inputs; None if the inputs come with the model.
        files: Path relative to ``folder`` -> SHA-256 in hex.
        cross_checks: Comparisons of its golden, made when it was recorded.
    """

    suite: str
    model: str
    folder: str
    status: Literal["ok", "refused"]
    message: str
    disputed: str
    seed: int | None
    files: dict[str, str]
    cross_checks: tuple[CrossCheck, ...] = ()


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """``manifest.json`` of a recording.

    Attributes:
        schema: Version of the format.
        created: UTC time, ISO 8601.
        provenance: What the values depend on: release of onnxruntime, machine, processor, session settings.
        packages: Name -> version of the packages that made and wrote the values.
        cpu_features: Instruction sets of the processor, separated by spaces; empty if the system lists none.
        models: Sorted by folder.
    """

    schema: int
    created: str
    provenance: dict[str, str]
    packages: dict[str, str]
    cpu_features: str
    models: tuple[RecordedModel, ...]


class Recorder:
    """Writes a recording into a new or empty folder.

    Raises:
        UsageError: It is not empty, or cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._models: list[RecordedModel] = []
        with _file_errors_of_use(folder):
            folder.mkdir(parents=True, exist_ok=True)
            empty = next(folder.iterdir(), None) is None
        if not empty:
            what = "the folder is not empty, and two recordings cannot share a folder"
            raise UsageError.at(folder, what, "choose a new folder")

    def add(
        self, suite: str, model: str, case: Case, golden: Golden, cross_checks: tuple[CrossCheck, ...] = ()
    ) -> None:
        """Write one model with its inputs and outputs, if there are any.

        Raises:
            TypeError: The CPU EP gave values of another kind than the model declares.
            TooLargeError: A value is too large for a file of ONNX's test data.
            UsageError: The folder cannot be written, or a file of the model is gone.
        """
        name = f"{suite}/{model.removesuffix('.onnx')}"
        home = self._folder / name
        values = dict(value_files(case, golden.outputs))
        with _file_errors_of_use(home):
            files = _write(home, case, values)
        self._models.append(
            RecordedModel(
                suite=suite,
                model=model,
                folder=name,
                status="ok" if golden.status == "ok" else "refused",
                message=golden.message,
                disputed=golden.disputed,
                seed=SEED if case.data_sets[0].name == GENERATED else None,
                files=files,
                cross_checks=cross_checks,
            )
        )

    def finish(self, provenance: dict[str, str]) -> None:
        """Write the manifest.

        Raises:
            UsageError: The folder cannot be written.
        """
        recording = Recording(
            schema=_SCHEMA,
            created=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            provenance=provenance,
            packages={name: importlib.metadata.version(name) for name in ("onnx", "numpy", "ml_dtypes")},
            cpu_features=cpu_features(),
            models=tuple(sorted(self._models, key=lambda one: one.folder)),
        )
        with _file_errors_of_use(self._folder):
            write_aside(self._folder / _MANIFEST, msgspec.json.format(msgspec.json.encode(recording)))


def read_recording(folder: Path) -> Recording:
    """Return the manifest of a recording.

    Raises:
        UsageError: There is none, or it cannot be read.
    """
    path = folder / _MANIFEST
    try:
        recording = msgspec.json.decode(read_regular(path, MOST_FILE), type=Recording)
    except FileNotFoundError as error:
        what = "no such file: this is not a recording, or an incomplete one"
        hint = "ep-harness golden record MATRIX --out DIR makes one"
        raise UsageError.at(path, what, hint) from error
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise UsageError.at(path, f"cannot be read: {one_line(error)}") from error
    if recording.schema != _SCHEMA:
        what = f"it has schema {recording.schema}, and this release reads {_SCHEMA}"
        raise UsageError.at(path, what)
    return recording


def altered_files(folder: Path, recorded: RecordedModel) -> Iterator[str]:
    """Yield a line for each file of a model of a recording that is no longer as it was recorded."""
    home = folder / recorded.folder
    for name, digest in recorded.files.items():
        try:
            if _digest(home / name) != digest:
                yield f"{recorded.folder}/{name} has changed"
        except OSError:
            yield f"{recorded.folder}/{name} is missing"
    for path in sorted(home.glob("test_data_set_*/*")):
        if path.relative_to(home).as_posix() not in recorded.files:
            yield f"{recorded.folder}/{path.relative_to(home).as_posix()} is new"


@contextmanager
def _file_errors_of_use(where: Path) -> Iterator[None]:
    """Turn errors of the file system into errors of use."""
    try:
        yield
    except OSError as error:
        what = f"cannot be written: {one_line(error)}"
        raise UsageError.at(where, what) from error


def value_files(case: Case, answers: Sequence[NamedValues]) -> Iterator[tuple[str, bytes]]:
    """Yield names and contents of the files with a case's inputs, and with its outputs if there are any."""
    inputs = {port.name: port.type for port in case.ports}
    outputs = dict(zip(case.outputs, case.output_types, strict=True))
    tensor = ValueType(kind="tensor")  # other inputs replace an initializer
    for number, data_set in enumerate(case.data_sets):
        for index, (name, value) in enumerate(data_set.inputs):
            content = encode(value, inputs.get(name, tensor), name)
            yield f"test_data_set_{number}/input_{index}.pb", content
        for index, (name, value) in enumerate(answers[number] if answers else ()):
            yield f"test_data_set_{number}/output_{index}.pb", encode(value, outputs[name], name)


def _write(home: Path, case: Case, values: dict[str, bytes]) -> dict[str, str]:
    """Write a model's files; return the digest of each."""
    written = [GOLDEN_MODEL, *values]
    home.mkdir(parents=True, exist_ok=True)  # other models may lie below it
    shutil.copyfile(case.model_path, home / GOLDEN_MODEL)
    for file in case.external:
        name = file.relative_to(case.model_path.parent).as_posix()
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, home / name)
        written.append(name)
    for number in range(len(case.data_sets)):
        (home / f"test_data_set_{number}").mkdir()
    for name, content in values.items():
        (home / name).write_bytes(content)
    return {name: _digest(home / name) for name in sorted(written)}


def _digest(path: Path) -> str:
    with open_regular(path, sys.maxsize) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

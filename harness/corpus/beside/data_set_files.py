"""The files of a model's data sets, in the layouts of ONNX's model zoo and of its test runners.

Beside the model: folders ``test_data_set_N``; else files ``test_data_N.npz``, the zoo's first layout; else
the same folders inside ``<model>.tar.gz``, which the zoo ships beside each model.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec

from harness.core.files.reading import read_regular
from harness.corpus.beside.data_set_archive import data_archive, read_data_set_archive
from harness.corpus.model.data_budget import MOST_DATA_BYTES
from harness.corpus.model.model_errors import blame

DATA_SET = re.compile(r"test_data_set_(\d+)")
"""Name of a folder that holds a data set."""

DATA_FILE = re.compile(r"test_data_(\d+)\.npz")
"""Name of a file that holds a whole data set in two arrays: ``inputs`` and ``outputs``."""

_VALUE_FILE = re.compile(r"(input|output)(?:_(\d+)\.(?:pb|npy)|s\.npz)")

_Role = Literal["input", "output", "both"]


class DataFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a data set.

    Attributes:
        path: The file for messages; a part of an archive is no file of its own.
        index: Position of its only value; None if the file names its values.
        folder: The folder of a tensor's external data; None within an archive.
    """

    path: Path
    role: _Role
    index: int | None
    read: Callable[[], bytes]
    folder: Path | None


class SavedSet(msgspec.Struct, frozen=True, kw_only=True):
    """A saved data set: its folder or file for messages, its files with values, the names of all files."""

    name: str
    path: Path
    files: tuple[DataFile, ...]
    names: tuple[str, ...]


def find_data_sets(model: Path, home: Path) -> tuple[SavedSet, ...]:
    """Return the saved data sets of a model by number, from a folder, which need not exist.

    Raises:
        ModelError: A folder or an archive cannot be read.
    """
    with blame(home):
        entries = sorted(home.iterdir()) if home.is_dir() else []
        if folders := _numbered(DATA_SET, entries):
            return tuple(map(_from_folder, folders))
        if whole := _numbered(DATA_FILE, entries):
            return tuple(map(_from_file, whole))
    archive = data_archive(model)
    with blame(archive):
        found = read_data_set_archive(archive)
    ordered = sorted(found, key=lambda name: int(name.rpartition("_")[2]))
    return tuple(_from_archive(archive / name, found[name]) for name in ordered)


def _numbered(pattern: re.Pattern[str], entries: Iterable[Path]) -> list[Path]:
    numbered = [(int(match[1]), one) for one in entries if (match := pattern.fullmatch(one.name))]
    return [path for _, path in sorted(numbered)]


def _from_folder(folder: Path) -> SavedSet:
    with blame(folder):
        paths = sorted(folder.iterdir())
    files = (_value_file(path, partial(read_regular, path, MOST_DATA_BYTES), folder) for path in paths)
    return _saved(folder, files, [path.name for path in paths])


def _from_file(path: Path) -> SavedSet:
    file = DataFile(
        path=path, role="both", index=None, read=partial(read_regular, path, MOST_DATA_BYTES), folder=None
    )
    return SavedSet(name=path.stem, path=path, files=(file,), names=(path.name,))


def _from_archive(place: Path, members: dict[str, bytes]) -> SavedSet:
    files = (_value_file(place / name, partial(members.__getitem__, name), None) for name in sorted(members))
    return _saved(place, files, sorted(members))


def _saved(place: Path, files: Iterable[DataFile | None], names: list[str]) -> SavedSet:
    known = [file for file in files if file is not None]
    known.sort(key=lambda file: (file.role, -1 if file.index is None else file.index))
    return SavedSet(name=place.name, path=place, files=tuple(known), names=tuple(names))


def _value_file(path: Path, read: Callable[[], bytes], folder: Path | None) -> DataFile | None:
    match = _VALUE_FILE.fullmatch(path.name)
    if match is None:
        return None
    role: _Role = "input" if match[1] == "input" else "output"
    return DataFile(path=path, role=role, index=int(match[2]) if match[2] else None, read=read, folder=folder)

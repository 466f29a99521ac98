"""The models below a folder; none of them is opened."""

import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from harness.core.text.errors import Problem, UsageError, one_line
from harness.corpus.beside.data_set_archive import ARCHIVE_SUFFIX

MODEL_SUFFIXES = _MODEL_SUFFIX, _ORT_SUFFIX = ".onnx", ".ort"
"""Suffixes of models in ONNX's format, and in onnxruntime's own."""

_NOT_MODELS = (frozenset({"run.json", "records.jsonl"}), frozenset({"pyvenv.cfg"}))
"""Marker files of folders that a search skips: a run folder, with its bundles, and a virtual environment."""

_MOST_LEVELS = 3
"""Number of levels below a folder that ``model_folders`` searches."""


def is_text(name: str) -> bool:
    """Return whether a file name is valid Unicode; other names have surrogates, which records cannot hold."""
    return not any("\ud800" <= character <= "\udfff" for character in name)


def find_models(root: Path) -> tuple[str, ...]:
    """Return the relative paths of all ``.onnx`` files below a folder, with forward slashes, sorted.

    ``.ort`` files are included; see ``models_among``.

    Links to folders are followed after all real folders, and each folder is entered once. So a loop ends, and
    a model that can be reached both ways has its real name. A link to a file is a model too. Names that start
    with ``._`` are not models: macOS keeps a file's attributes there, on disks without a place for them. Run
    folders and virtual environments below the folder hold no models of its owner.

    Raises:
        UsageError: There is no such folder, a part of it cannot be read, its name is not text, or it has no
            model.
    """
    if not _is_folder(root):
        raise UsageError(_not_a_folder(root))
    if not is_text(str(root)):
        raise UsageError.at(ascii(str(root)), "the name of the folder is not UTF-8", "rename it")
    problems: list[Problem] = []
    files = [path for path in _files(root, problems) if not _is_of_macos(path)]
    found = models_among(files)
    if not found and not problems:
        archives = sum(path.endswith(ARCHIVE_SUFFIX) for path in files)
        hint = "name a folder that holds models, such as resnet/model.onnx"
        if archives:
            hint = f"unpack the {ARCHIVE_SUFFIX} files that are there: {archives}"
        what = f"there is no {_MODEL_SUFFIX} file in this folder or below"
        problems.append(Problem(where=str(root), what=what, hint=hint))
    if problems:
        raise UsageError(*problems)
    return tuple(sorted(found))


def models_among(files: Iterable[str]) -> list[str]:
    """Return the models among relative paths: ``.onnx`` files, and ``.ort`` files.

    An ``.ort`` file beside an ``.onnx`` file of the same name is a copy of it and no model.
    """
    plain = [path for path in files if not _is_of_macos(path)]
    found = [path for path in plain if path.lower().endswith(_MODEL_SUFFIX)]
    stems = {path[: -len(_MODEL_SUFFIX)] for path in found}
    ort = (path for path in plain if path.lower().endswith(_ORT_SUFFIX))
    return [*found, *(path for path in ort if path[: -len(_ORT_SUFFIX)] not in stems)]


def _is_of_macos(path: str) -> bool:
    return path.rpartition("/")[2].startswith("._")


def model_folders(root: Path) -> tuple[str, ...]:
    """Return the names in a matrix for the models of a working folder: ``.``, or folders directly below.

    It is ``.`` if models are in the folder itself. Otherwise these are its folders with models at most two
    levels further down, without hidden ones. Nothing is opened, and unreadable parts are skipped.
    """
    entries = list(_entries(root))
    if any(_is_model(entry) for entry in entries):
        return (".",)
    below = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return tuple(sorted(name for name in below if is_text(name) and _has_models(root / name, _MOST_LEVELS)))


def _has_models(folder: Path, levels: int) -> bool:
    entries = list(_entries(folder))
    if folder.name.startswith(".") or _holds_none({entry.name for entry in entries}):
        return False
    below = (Path(one.path) for one in entries if levels > 1 and one.is_dir(follow_symlinks=False))
    return any(map(_is_model, entries)) or any(_has_models(one, levels - 1) for one in below)


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as listing:
            yield from listing
    except OSError:
        return


def _is_model(entry: "os.DirEntry[str]") -> bool:
    name = entry.name
    return name.lower().endswith(MODEL_SUFFIXES) and not _is_of_macos(name) and entry.is_file()


def _holds_none(names: set[str]) -> bool:
    return any(marks <= names for marks in _NOT_MODELS)


def _files(root: Path, problems: list[Problem]) -> Iterator[str]:
    """Yield the relative paths of all files; folders that cannot be read become problems."""
    entered: set[tuple[int, int]] = set()
    real, linked = deque([""]), deque[str]()
    while real or linked:
        relative = (real or linked).popleft()
        try:
            status = (root / relative).stat()
            if (status.st_dev, status.st_ino) in entered:
                continue
            entered.add((status.st_dev, status.st_ino))
            with os.scandir(root / relative) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            what = f"the folder cannot be read: {one_line(error)}"
            problems.append(Problem(where=str(root / relative), what=what))
            continue
        if relative and _holds_none({entry.name for entry in entries}):
            continue
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            if _is_folder(root / path) if entry.is_symlink() else entry.is_dir():
                (linked if entry.is_symlink() else real).append(path)
            else:
                yield path


def _is_folder(path: Path) -> bool:
    # Path.is_dir() raises if a parent is closed, and os.DirEntry.is_dir() for a link to itself.
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except OSError:
        return False


def _not_a_folder(root: Path) -> Problem:
    try:
        root.stat()
    except OSError as error:
        what = "there is no such folder" if isinstance(error, FileNotFoundError) else one_line(error.strerror)
        return Problem(where=str(root), what=what, hint="check the path")
    what = "this is a file, not a folder"
    return Problem(where=str(root), what=what, hint=f"name its folder: {root.parent}")

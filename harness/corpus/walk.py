"""The models below a folder, by name only."""

import os
import stat
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from harness.core.errors import Problem, UsageError, one_line
from harness.corpus.archive import ARCHIVE_SUFFIX

MODEL_SUFFIX = ".onnx"


def find_models(root: Path) -> tuple[str, ...]:
    """The relative paths of all ``.onnx`` files below a folder, with forward slashes, sorted.

    Links to folders are followed once all real folders were seen, and each folder is entered once: a loop
    ends, and a model that can be reached both ways goes by its real name. A link to a file is a model too.
    What begins with ``._`` is none: there macOS keeps a file's attributes, on disks without a place for them.

    Raises:
        UsageError: No such folder, a part of it cannot be read, a name that is not text, or no model at all.
    """
    if not _is_folder(root):
        raise UsageError(_not_a_folder(root))
    problems: list[Problem] = []
    files = [path for path in _files(root, problems) if not path.rpartition("/")[2].startswith("._")]
    found = [path for path in files if path.lower().endswith(MODEL_SUFFIX)]
    problems.extend(_not_text(root, path) for path in found if not _is_text(path))
    if not found and not problems:
        archives = sum(path.endswith(ARCHIVE_SUFFIX) for path in files)
        problems.append(_no_model(root, archives))
    if problems:
        raise UsageError(*problems)
    return tuple(sorted(found))


def _files(root: Path, problems: list[Problem]) -> Iterator[str]:
    """The relative paths of everything that is no folder; folders that cannot be read become problems."""
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
            problems.append(
                Problem(where=str(root / relative), what=f"the folder cannot be read: {one_line(error)}")
            )
            continue
        for entry in entries:
            path = f"{relative}/{entry.name}" if relative else entry.name
            if _is_folder(root / path) if entry.is_symlink() else entry.is_dir():
                (linked if entry.is_symlink() else real).append(path)
            else:
                yield path


def _no_model(root: Path, archives: int) -> Problem:
    hint = "name a folder that holds models, such as resnet/model.onnx"
    if archives:
        hint = f"unpack the {ARCHIVE_SUFFIX} files that are there: {archives}"
    what = f"there is no {MODEL_SUFFIX} file in this folder or below"
    return Problem(where=str(root), what=what, hint=hint)


def _is_folder(path: Path) -> bool:
    # Path.is_dir() raises where a parent is closed to us, and os.DirEntry.is_dir() on a link to itself.
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
    return Problem(
        where=str(root), what="this is a file, not a folder", hint=f"name its folder: {root.parent}"
    )


def _is_text(path: str) -> bool:
    # A file name that is not UTF-8 arrives with surrogates, which no cell id, record or report could hold.
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _not_text(root: Path, path: str) -> Problem:
    return Problem(where=str(root), what=f"the file name {path!a} is not valid UTF-8", hint="rename the file")

"""The state of files, from their status alone: shows whether they have changed, as git and make do.

A file counts as unchanged while its size, its time of modification, its identity and, if the system has it,
the time of its last change of any kind are the same. Clocks of file systems are coarse: a file may change
twice within one tick and look the same after both. So only a file older than ``SETTLED_NS`` is trusted.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

import msgspec

from harness.corpus.beside.data_set_archive import data_archive
from harness.corpus.beside.data_set_files import DATA_FILE, DATA_SET
from harness.corpus.beside.genai_config import CONFIG_NAME
from harness.corpus.beside.side_file import side_file
from harness.corpus.beside.tolerance_file import TOLERANCE_FILES
from harness.corpus.beside.unused_data import unused_data

SETTLED_NS = 2_000_000_000
"""Age from which a file is trusted, in nanoseconds; the coarsest clock, that of FAT, ticks every 2 s."""


class FileState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of some files together.

    Attributes:
        text: Equal texts mean that no file was changed, added or removed.
        newest_ns: Time of the last change, in nanoseconds since 1970; 0 for no files.
    """

    text: str
    newest_ns: int

    def settled(self, now_ns: int) -> bool:
        """Return whether the last change was long enough ago at a time."""
        return self.newest_ns < now_ns - SETTLED_NS


def cached_state(file: str | Path, *others: str) -> FileState | None:
    """Return the state of an entry of the cache by some of its files; None if the first does not exist.

    Such an entry is written once, so size and time are enough. They survive in copies and archives of caches.
    """
    first = _size_and_time(file)
    if first is None:
        return None
    return FileState(text=f"{[first, *map(_size_and_time, others)]}", newest_ns=0)


def model_state(model: Path, home: Path) -> FileState | None:
    """Return the state of a model's file, its settings, its test data and their tolerance.

    External data is not included. The folder ``home``, which need not exist, has its ``test_data_set_N`` and
    ``data.json``.

    Data where nothing reads them count by their name alone.

    Returns:
        None if it is unknown: a file is missing or closed, or a data set has folders inside.
    """
    try:
        folders, files = _test_data(home)
        others = (side_file(model), data_archive(model), model.with_name(CONFIG_NAME))
        beside = [one for one in others if os.path.lexists(one)]
    except OSError:
        return None
    state = files_state([model, *beside, *files])
    # The folders by name, because an empty one is also a data set.
    unused = [str(path) for path in unused_data(model, home)]
    return state and msgspec.structs.replace(state, text=f"{folders} {unused} {state.text}")


def files_state(files: Iterable[str | Path]) -> FileState | None:
    """Return the state of files, links followed; None if one is missing, closed, or no regular file."""
    marks = []
    newest = 0
    try:
        for file in files:
            status = os.stat(file)  # noqa: PTH116 - as below
            if not stat.S_ISREG(status.st_mode):
                return None
            identity = (status.st_dev, status.st_ino)
            marks.append((str(file), status.st_size, status.st_mtime_ns, status.st_ctime_ns, identity))
            newest = max(newest, status.st_mtime_ns, status.st_ctime_ns)
    except (OSError, ValueError):  # ValueError: a name with a null character
        return None
    return FileState(text=repr(marks), newest_ns=newest)


def _size_and_time(file: str | Path) -> tuple[int, int] | None:
    try:
        status = os.stat(file)  # noqa: PTH116 - for every cell, and pathlib takes several times as long
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def _test_data(home: Path) -> tuple[list[str], list[str]]:
    """Return the folders of data sets, and every file that reading them may open."""
    try:
        entries = _listing(str(home))
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    folders = [path for name, path in entries if DATA_SET.fullmatch(name)]
    files = [path for name, path in entries if name in TOLERANCE_FILES or DATA_FILE.fullmatch(name)]
    for folder in folders:
        files += [path for _, path in _listing(folder)]
    return folders, files


def _listing(folder: str) -> list[tuple[str, str]]:
    with os.scandir(folder) as entries:
        return sorted((entry.name, entry.path) for entry in entries)

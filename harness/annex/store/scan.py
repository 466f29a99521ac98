"""The runs of a folder, and how to detect changes, from file sizes and times alone."""

import hashlib
import time
from pathlib import Path

import msgspec

from harness.core.files.reading import MOST_RECORDS, open_regular
from harness.core.text.errors import UsageError

_FILES = ("run.json", "plan.txt", "records.jsonl")
_SETTLED_NS = 2_000_000_000
"""A file younger than this may change again within one step of the file system's clock, which is 2 s on
FAT: https://git-scm.com/docs/racy-git."""


class FoundRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a folder: a run folder, or a folder of run folders, which count as one.

    Attributes:
        state: Digest of sizes and times of its files; empty if one was written just now.
    """

    name: str
    path: Path
    parts: tuple[Path, ...]
    state: str


def scan(folder: Path) -> tuple[FoundRun, ...]:
    """Return the runs of a folder, by name; the folder itself, if it is a run.

    Raises:
        UsageError: The folder does not exist, cannot be read, or has no run in it.
    """
    hint = "give a folder of run folders, or the --out of a run"
    if not folder.is_dir():
        raise UsageError.at(folder, "there is no such folder", hint)
    try:
        found = tuple(_runs(folder))
    except OSError as error:
        raise UsageError.at(folder, f"the folder cannot be read: {error.strerror or error}") from error
    if not found:
        raise UsageError.at(folder, "no run: neither run.json nor folders with one", hint)
    return found


def content(run: FoundRun) -> str:
    """Return a digest of the run's files; it stays the same if they are copied or touched.

    Raises:
        OSError: A file cannot be read.
    """
    digest = hashlib.sha256()
    for part in run.parts:
        for name in _FILES:
            digest.update(f"{_relative(run, part)}/{name}\0".encode())
            if (part / name).exists():
                with open_regular(part / name, MOST_RECORDS) as file:
                    digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def _runs(folder: Path) -> list[FoundRun]:
    if _is_run(folder):
        return [_found(folder.absolute(), (folder,))]
    entries = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    found = []
    for entry in entries:
        parts = (
            (entry,) if _is_run(entry) else tuple(sorted(part.parent for part in entry.glob("*/run.json")))
        )
        if parts:
            found.append(_found(entry, parts))
    return found


def _is_run(folder: Path) -> bool:
    return (folder / "run.json").exists() or (folder / "records.jsonl").exists()


def _found(path: Path, parts: tuple[Path, ...]) -> FoundRun:
    state = hashlib.sha256()
    newest_ns = 0
    now_ns = time.time_ns()
    for part in parts:
        state.update(f"{part.name}\0".encode(errors="surrogateescape"))
        for name in _FILES:
            try:
                about = (part / name).stat()
            except FileNotFoundError:
                state.update(b"-\0")
                continue
            newest_ns = max(newest_ns, about.st_mtime_ns, about.st_ctime_ns)
            state.update(f"{about.st_size} {about.st_mtime_ns} {about.st_ctime_ns}\0".encode())
    return FoundRun(
        name=_text(path.name),
        path=path,
        parts=parts,
        state=state.hexdigest() if newest_ns + _SETTLED_NS < now_ns else "",
    )


def _relative(run: FoundRun, part: Path) -> str:
    return _text(part.name) if part != run.path else "."


def _text(name: str) -> str:
    """Return a file's name as text that UTF-8 can carry."""
    return name.encode(errors="surrogateescape").decode(errors="backslashreplace")

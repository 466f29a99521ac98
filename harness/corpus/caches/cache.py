"""The cache folder, and entries that are filled once, as a whole."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from harness.core.text.errors import UsageError, one_line
from harness.corpus.caches.intact import find_damaged, write_digests

ENVIRONMENT = "EP_HARNESS_CACHE"
"""The environment variable that names another folder."""


def cache_root() -> Path:
    """Return the folder of cached data: ``EP_HARNESS_CACHE``, or the operating system's place for caches."""
    chosen = os.environ.get(ENVIRONMENT)
    if chosen:
        return Path(chosen).absolute()
    import platformdirs

    return platformdirs.user_cache_path("ort-ep-harness", appauthor=False)


def fill_once(entry: Path, build: Callable[[Path], None], *, with_digests: bool = False) -> Path:
    """Return a folder of the cache, and fill it if it does not exist yet.

    The content is built beside the entry and renamed into place, under a lock. Other processes see the whole
    entry or none, and wait for it. The name of an entry derives from everything that its content depends on,
    so an entry is valid for ever. ``build`` fills an empty folder; if it raises, there is no entry. The
    digests of ``harness.corpus.caches.intact`` are written with it on request.

    Raises:
        UsageError: The cache cannot be written, for example because the disk is full.
    """
    if entry.is_dir():
        return entry
    import filelock

    try:
        entry.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(entry.with_name(f"{entry.name}.lock")):
            if not entry.is_dir():
                _fill(entry, build, with_digests=with_digests)
    except OSError as error:
        what = f"the cache cannot be filled: {one_line(error)}"
        hint = f"free some space, or set {ENVIRONMENT} to a folder that can be written"
        raise UsageError.at(entry, what, hint) from error
    return entry


def fill_intact(entry: Path, build: Callable[[Path], None]) -> Path:
    """Return a folder of the cache as ``fill_once`` does; fill it again if a file in it is damaged.

    This reads every file in it.

    Raises:
        UsageError: The cache cannot be written.
    """
    if entry.is_dir() and find_damaged(entry) is not None:
        remove_entry(entry)
    return fill_once(entry, build, with_digests=True)


def remove_entry(entry: Path) -> bool:
    """Remove a folder of the cache, unless another process fills it. Return whether it was removed."""
    import filelock

    try:
        with filelock.FileLock(entry.with_name(f"{entry.name}.lock"), timeout=0):
            # Renamed first: an entry exists as a whole or not at all.
            going = entry.rename(entry.with_name(f".{entry.name}.pruned"))
            shutil.rmtree(going, ignore_errors=True)
    except OSError:  # a lock that is taken raises one, too
        return False
    return True


def _fill(entry: Path, build: Callable[[Path], None], *, with_digests: bool) -> None:
    prefix = f".{entry.name}."
    for orphan in entry.parent.glob(f"{prefix}*"):
        # This process holds the lock, so the process that began this folder died.
        shutil.rmtree(orphan, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=entry.parent) as scratch:
        # The inner folder has ordinary permissions; the outer one is closed to other users.
        content = Path(scratch) / "content"
        content.mkdir()
        build(content)
        if with_digests:
            write_digests(content)
        content.rename(entry)

"""Models that the cache keeps because others were made from them, and how they go when nobody uses them."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from harness.corpus.cache import cache_root, remove_entry

DERIVED = ("external-data", "float64", "precision", "revealed", "zeroed")
"""Folders of the cache with models that can be made again at any time from those that they come from."""


def prune_derived(*, older_than_s: float) -> Iterator[int]:
    """Remove the models that were made, or last used where that is noted, so many seconds ago or more.

    Yields:
        The bytes that each took.
    """
    now = time.time()
    for kind in DERIVED:
        for entry, nbytes, used_at in list(_entries(cache_root() / kind)):
            if now - used_at >= older_than_s and remove_entry(entry):
                yield nbytes


def _entries(root: Path) -> Iterator[tuple[Path, int, float]]:
    """Folder, size, and time of the last use of each model: the folders that hold files, less their locks."""
    for folder, _, names in os.walk(root):
        files = [Path(folder, name) for name in names if not name.endswith(".lock")]
        if files and not Path(folder).name.startswith("."):
            try:
                yield Path(folder), sum(file.stat().st_size for file in files), Path(folder).stat().st_mtime
            except OSError:  # another process has just removed it
                continue

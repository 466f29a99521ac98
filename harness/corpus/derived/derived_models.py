"""Models that are derived from others and kept in the cache; unused ones can be removed."""

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from harness.corpus.caches.cache import cache_root, fill_intact, remove_entry
from harness.corpus.case import Case
from harness.corpus.model.lean_model import LEAST_WEIGHT_BYTES, WEIGHTS_FILE
from harness.corpus.model.model_errors import blame
from harness.corpus.model.model_file import load_lean, load_model
from harness.corpus.model.ort_format.onnx_copy import COPIES_FOLDER

if TYPE_CHECKING:
    import onnx

MODEL_FILE = "model.onnx"
"""The file of a derived model in its folder of the cache."""

COMPOSED_FOLDER = "composed"
"""Folder of the cache with folders of several sessions, as one model each."""

LOOPED_FOLDER = "looped"
"""Folder of the cache with models in a loop."""

_PRUNED = (
    COMPOSED_FOLDER,
    "external-data",
    "float64",
    LOOPED_FOLDER,
    COPIES_FOLDER,
    "lora",
    "precision",
    "revealed",
    "settled",
    "zeroed",
)
"""Folders of the cache with models that can be made again at any time."""


def derive(
    case: Case,
    kind: str,
    name: str,
    make: "Callable[[onnx.ModelProto], Mapping[str, bytes]]",
    *,
    with_file: bool = False,
) -> Path:
    """Return the folder of the cache with the files derived from a case's model; they are made once.

    The name of the folder derives from everything that its content depends on. ``make`` returns the content
    of each file by its name. On request a copy of the model's file is among them, as ``WEIGHTS_FILE``, from
    which the model that ``make`` gets reads its large weights.

    Raises:
        ModelError: The model is broken or missing.
        UsageError: The cache cannot be written.
    """

    def read(path: Path) -> "onnx.ModelProto":
        return load_lean(path, LEAST_WEIGHT_BYTES, WEIGHTS_FILE) if with_file else load_model(path)

    def build(folder: Path) -> None:
        with blame(case.model_path):
            files = make(read(case.model_path))
        for file, content in files.items():
            (folder / file).write_bytes(content)
        if with_file:
            shutil.copyfile(case.model_path, folder / WEIGHTS_FILE)

    return fill_intact(cache_root() / kind / name, build)


def digest_of(*parts: object) -> str:
    """Return the SHA-256 of texts and numbers with blanks between them, in hex."""
    return hashlib.sha256(" ".join(map(str, parts)).encode()).hexdigest()


def prune_derived(*, older_than_s: float) -> Iterator[int]:
    """Remove models that were made (or last used, if recorded) at least so many seconds ago.

    Yields:
        Return the bytes that each took.
    """
    now = time.time()
    for kind in _PRUNED:
        for entry, nbytes, used_at in list(_entries(cache_root() / kind)):
            if now - used_at >= older_than_s and remove_entry(entry):
                yield nbytes


def _entries(root: Path) -> Iterator[tuple[Path, int, float]]:
    """Yield folder, size, and time of the last use of each model: the folders with files other than locks."""
    for folder, _, names in os.walk(root):
        files = [Path(folder, name) for name in names if not name.endswith(".lock")]
        if files and not Path(folder).name.startswith("."):
            try:
                yield Path(folder), sum(file.stat().st_size for file in files), Path(folder).stat().st_mtime
            except OSError:  # another process has just removed it
                continue

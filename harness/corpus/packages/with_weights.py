"""A model whose weights lie in another folder of its package: both in one folder of the cache.

onnxruntime is told the folder by a session configuration entry. All else that reads models looks for external
data beside them.
"""

import hashlib
import os
import shutil
from pathlib import Path

from harness.corpus.caches.cache import cache_root, fill_once
from harness.corpus.packages.confined_path import leads_out

WEIGHTS_OPTION = "session.model_external_initializers_file_folder_path"


def with_weights(model: Path, weights: Path) -> Path:
    """Return the path of a model in the cache, beside the files of the folder ``weights``.

    Files are linked where the file system can do that, else copied.

    Raises:
        UsageError: The cache cannot be written.
        OSError: The model or the folder cannot be read.
    """
    inside = os.path.realpath(weights)
    files = {
        path.relative_to(weights).as_posix(): path
        for path in sorted(weights.rglob("*"))
        if path.is_file() and not leads_out(inside, path)
    }
    files[model.name] = model
    states = [(name, str(path), path.stat().st_size, path.stat().st_mtime_ns) for name, path in files.items()]
    key = hashlib.sha256(repr(states).encode()).hexdigest()

    def build(folder: Path) -> None:
        for name, path in files.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                os.link(path, place)
            except OSError:
                shutil.copyfile(path, place)

    return fill_once(cache_root() / "packages" / key, build) / model.name

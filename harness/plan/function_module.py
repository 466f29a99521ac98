"""The module of a function that a matrix names: beside the matrix, or on the harness's own path."""

import importlib.util
from pathlib import Path


def has_module(name: str, folder: Path) -> bool:
    """Return whether there is a module or package of that name; none of its code is run."""
    if (folder / f"{name}.py").is_file() or (folder / name).is_dir():
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False

"""The matrix files named on pytest's command line."""

import os
from pathlib import Path

import pytest

MATRICES = pytest.StashKey[tuple[Path, ...]]()
"""The matrix files named on the command line, absolute, in its order."""


def named_matrices(config: pytest.Config) -> tuple[Path, ...]:
    """Return the matrix files among the arguments, each once; an argument may end with ``::cell``."""
    paths: dict[Path, None] = {}
    for argument in config.args:
        base = argument.partition("[")[0].partition("::")[0]
        if base.endswith(".toml"):
            path = Path(os.path.abspath(config.invocation_params.dir / base))  # noqa: PTH100 - no links resolved
            if is_matrix(path):
                paths[path] = None
    return tuple(paths)


def only_matrices(config: pytest.Config) -> bool:
    """Return whether the session is about matrix files alone."""
    return len(config.args) == len(config.stash[MATRICES])


def is_matrix(path: Path) -> bool:
    """Whether a TOML file is a matrix; one that is not valid TOML is, if it has a ``[[target]]`` line."""
    # A session that names none loads as little as it can.
    from harness.core.files.reading import MOST_SETTINGS, read_regular
    from harness.core.files.toml_text import toml_table

    try:
        content = read_regular(path, MOST_SETTINGS)
    except OSError:
        return False
    try:
        table = toml_table(content)
    except (ValueError, RecursionError):
        return b"[[target]]" in content
    return "schema" in table and isinstance(table.get("target"), list)

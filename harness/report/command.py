"""The shell command that runs one cell again."""

import re
import shlex
from functools import lru_cache

from harness.core.cell import parse_cell_id
from harness.core.record import Record

_GLOB = re.compile(r"[*?\[]")


def command_of(record: Record, matrix_path: str) -> str:
    """Return ``ep-harness run MATRIX --target NAME --model SUITE/MODEL``, quoted, for one cell's model."""
    model = _literal(f"{record.suite}/{record.model}")
    return f"{_beginning(matrix_path, _target(record))} --model {shlex.quote(model)}"


@lru_cache
def _beginning(matrix_path: str, target: str) -> str:
    return shlex.join(["ep-harness", "run", matrix_path, "--target", _literal(target)])


def _target(record: Record) -> str:
    # If runs contradict each other, the target is named with its run; the id has the matrix's name.
    if " @ " not in record.target:
        return record.target
    try:
        return parse_cell_id(record.cell)[2]
    except ValueError:
        return record.target


def _literal(name: str) -> str:
    """Return a glob that matches only this name."""
    return _GLOB.sub(r"[\g<0>]", name)

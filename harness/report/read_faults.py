"""The faults of a triaged run, read back from ``triage/faults.jsonl``."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.core.errors import Problem
from harness.core.fault import SCHEMA, Fault, decode_fault

TRIAGE = "triage"
"""Where triage writes in a run folder, unless it is told otherwise."""


def read_faults(run_folder: Path) -> tuple[tuple[Fault, ...], tuple[Problem, ...]]:
    """Return the faults of a run, and the lines that are none; both empty if it was not triaged.

    Of two faults with one representative the later counts: its cell was triaged again. A file that cannot be
    read costs the faults, never the report.
    """
    path = run_folder / TRIAGE / "faults.jsonl"
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return (), ()
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        return (), (Problem(where=str(path), what=what),)
    found: dict[str, Fault] = {}
    damaged: list[Problem] = []
    for fault in _decoded(lines, path):
        if isinstance(fault, Problem):
            damaged.append(fault)
        else:
            found[fault.representative] = fault
    return tuple(found.values()), tuple(damaged)


def _decoded(lines: list[bytes], path: Path) -> Iterator[Fault | Problem]:
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        where = f"{path}: line {number}"
        try:
            fault = decode_fault(line)
        except msgspec.ValidationError as error:
            yield Problem(where=where, what=f"not a fault: {error}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            yield Problem(where=where, what=f"not JSON: {error}")
        else:
            other = f"schema {fault.schema}, but this version reads schema {SCHEMA}"
            yield fault if fault.schema == SCHEMA else Problem(where=where, what=other)

"""The faults of a triaged run, read back from ``triage/faults.jsonl``."""

from pathlib import Path

from harness.core.errors import Problem
from harness.core.fault import FAULTS_FILE, TRIAGE_FOLDER, Fault, decode_faults


def read_faults(run_folder: Path) -> tuple[tuple[Fault, ...], tuple[Problem, ...]]:
    """Return the faults of a run, and the lines that are none; both empty if it was not triaged.

    Of two faults with one representative the later counts: its cell was triaged again. A file that cannot be
    read costs the faults, never the report.
    """
    path = run_folder / TRIAGE_FOLDER / FAULTS_FILE
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return (), ()
    except OSError as error:
        what = f"the file cannot be read: {error.strerror or error}"
        return (), (Problem(where=str(path), what=what),)
    found: dict[str, Fault] = {}
    damaged: list[Problem] = []
    for number, fault in decode_faults(content):
        if isinstance(fault, str):
            damaged.append(Problem(where=f"{path}: line {number}", what=fault))
        else:
            found[fault.representative] = fault
    return tuple(found.values()), tuple(damaged)

"""`fuzz.json` of a run folder: the state for a later session, and the totals of cells that were not kept."""

from pathlib import Path

import msgspec

from harness.annex.made.fuzz_suite import GENERATOR
from harness.core.files.reading import MOST_FILE, read_regular
from harness.core.files.writing import write_aside, writing
from harness.core.records.cell import AXIS_DEFAULTS, Cell, parse_cell_id
from harness.core.text.errors import UsageError, one_line
from harness.run.run_folder import PLAN

STATE_FILE = "fuzz.json"


class FuzzState(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of fuzzing.

    Attributes:
        generator: Version of the generator.
        next: The first number that has not been examined.
        suite: Models of the suite that the plan on disk is a part of.
        operators: Operators in use; all if there are none.
        models: Models that were made.
        cells: Cells that were judged, kept or not.
        verdicts: Target -> verdict -> number of cells.
        passed_over: Cells that were skipped because they would have shown nothing new.
    """

    generator: int = GENERATOR
    seed: int
    next: int = 0
    suite: int = 1
    operators: tuple[str, ...] = ()
    models: int = 0
    cells: int = 0
    verdicts: dict[str, dict[str, int]] = {}
    passed_over: int = 0


def write_state(folder: Path, state: FuzzState) -> None:
    """Write the state; readers see the old or the new one.

    Raises:
        UsageError: It cannot be written.
    """
    with writing(folder / STATE_FILE):
        write_aside(folder / STATE_FILE, msgspec.json.format(msgspec.json.encode(state)) + b"\n")


def planned_cells(folder: Path) -> tuple[Cell, ...]:
    """Return the cells of the plan in a run folder, at the axes of fuzzing.

    A plan with other axes, which only a stranger can have written, then differs from that of ``run.json``.

    Raises:
        UsageError: It cannot be read.
    """
    path = folder / PLAN
    try:
        ids = read_regular(path, MOST_FILE).decode("ascii").splitlines()
        parts = [parse_cell_id(one) for one in ids]
    except (OSError, ValueError) as error:
        raise UsageError.at(path, f"cannot be read: {one_line(error)}") from error
    return tuple(
        Cell(suite=suite, model=model, target=target, axes=tuple(sorted(AXIS_DEFAULTS.items())))
        for suite, model, target, _ in parts
    )


def read_state(folder: Path) -> FuzzState:
    """Return the state of a run folder.

    Raises:
        UsageError: There is none, or another version of the generator made it.
    """
    path = folder / STATE_FILE
    try:
        state = msgspec.json.decode(read_regular(path, MOST_FILE), type=FuzzState)
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise UsageError.at(path, what, "begin anew, without --resume") from error
    except msgspec.MsgspecError as error:
        raise UsageError.at(path, f"is damaged: {error}") from error
    if state.generator != GENERATOR:
        what = f"generator {state.generator} made these models; this one is {GENERATOR}"
        raise UsageError.at(path, what, "begin anew, without --resume")
    return state

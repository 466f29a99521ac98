"""Several runs as one, where no cell has two results."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.core.errors import Problem, UsageError
from harness.core.record import Record
from harness.report.read import RunData

_SHOWN_CONFLICTS = 5


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment in which a target ran, with the name of the run folder it comes from."""

    target: str
    run: str
    fingerprint: dict[str, object]


class MergedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One or more runs with their cells side by side.

    Attributes:
        matrix: The matrix of the first run, as it was read.
        folders: The run folders.
        records: ``(run folder, record)`` pairs, in the order of the runs.
        planned: Cells planned in all runs together, each counted once.
        complete: True where every run says so and no planned cell is without a record.
        environments: One entry per target; several where runs differ in it.
        notices: What a reader must know about the data, one sentence each.
    """

    matrix: dict[str, object]
    folders: tuple[Path, ...]
    records: tuple[tuple[Path, Record], ...]
    planned: int
    complete: bool
    environments: tuple[Environment, ...]
    notices: tuple[str, ...]


def merge(runs: Sequence[RunData]) -> MergedRun:
    """Put the cells of several runs side by side.

    Shards of one plan (equal digests) count its cells once; other plans add up.

    Raises:
        UsageError: Two runs hold different records of one cell.
    """
    records: dict[str, tuple[Path, Record]] = {}
    conflicts = [
        record.cell
        for run in runs
        for record in run.records
        if records.setdefault(record.cell, (run.folder, record))[1] != record
    ]
    if conflicts:
        raise UsageError(_conflict(conflicts))
    missing = _missing(runs)
    return MergedRun(
        matrix=runs[0].info.matrix,
        folders=tuple(run.folder for run in runs),
        records=tuple(records.values()),
        planned=len(records) + missing,
        complete=not missing and all(run.info.complete and not run.torn for run in runs),
        environments=_environments(runs),
        notices=tuple(_notices(runs)),
    )


def _missing(runs: Sequence[RunData]) -> int:
    """Planned cells without a record, over all plans."""
    recorded: dict[str, set[str]] = {}
    planned: dict[str, int] = {}
    for run in runs:
        recorded.setdefault(run.info.plan, set()).update(record.cell for record in run.records)
        planned[run.info.plan] = max(planned.get(run.info.plan, 0), run.info.cells)
    return sum(max(0, cells - len(recorded[plan])) for plan, cells in planned.items())


def _environments(runs: Sequence[RunData]) -> tuple[Environment, ...]:
    found: list[Environment] = []
    for run in runs:
        for target, fingerprint in run.info.targets.items():
            if not any(e.target == target and e.fingerprint == fingerprint for e in found):
                found.append(Environment(target=target, run=run.folder.name, fingerprint=fingerprint))
    return tuple(found)


def _notices(runs: Sequence[RunData]) -> list[str]:
    notices = []
    for run in runs:
        name = run.folder.name or str(run.folder)
        if run.torn:
            notices.append(
                f"{name}: the last line of records.jsonl is torn, the run was cut off while writing it; "
                f"that cell counts as not run."
            )
        if len(run.records) > run.info.cells:
            notices.append(
                f"{name}: records.jsonl holds {len(run.records):,} cells, more than the "
                f"{run.info.cells:,} that were planned."
            )
    return notices


def _conflict(cells: Sequence[str]) -> Problem:
    shown = ", ".join(repr(cell) for cell in cells[:_SHOWN_CONFLICTS])
    more = f" and {len(cells) - _SHOWN_CONFLICTS:,} more" if len(cells) > _SHOWN_CONFLICTS else ""
    return Problem(
        where="report",
        what=f"the runs hold different records of the same cells: {shown}{more}",
        hint="merging conflicting runs is not possible; render them one by one",
    )

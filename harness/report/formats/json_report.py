"""The report as one JSON file with a schema."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from harness.core.records.fault import Fault
from harness.core.records.run_info import TargetExit
from harness.core.records.verdict import Verdict
from harness.report.formats.cell_columns import CellRow
from harness.report.formats.generation_rows import SpeedRow, WayRow, speed_rows, way_rows
from harness.report.formats.rows import TargetRow
from harness.report.runs.merged_run import Conflict, RunEnvironment
from harness.report.view import Report
from harness.report.words.inert import inert_json

_COPIED = ("name", "first", "last", "recorded", "not_run", "complete", "unexpected")


class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that triage found.

    Attributes:
        fault: As in ``faults.jsonl``; ``cells`` are those of all representatives of the same fault.
        runs: Names of the runs in which it was found.
        targets: Targets on which it was found.
    """

    fault: Fault
    runs: tuple[str, ...]
    targets: tuple[str, ...]


class ReportFile(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of ``report.json``.

    Attributes:
        name: The matrix file's name.
        runs: Names of the run folders.
        first: UTC time of the first cell, ISO 8601; empty if no record has a time.
        last: The same for the cell that started last.
        planned: Cells planned.
        recorded: Cells with a result.
        not_run: Planned cells without a result.
        complete: Whether no result is missing and every run ended by itself.
        unexpected: Cells whose verdict is not what the matrix expects.
        flaky: Failures that had another verdict when tried again.
        notices: Problems in the data, one sentence each.
        verdicts: Verdict -> cells.
        conflicts: Cells with different results in several runs.
        environments: Environment of each target.
        targets: Counts.
        cells: Every planned cell whose name is known.
        faults: What triage found out about failing cells.
        ways: Each way of generating text, for each cell that generates text.
        speed: How fast these cells generate it.
        exits: Target -> how its processes ended that were asked to.
    """

    schema: Literal[1]
    name: str
    runs: tuple[str, ...]
    first: str
    last: str
    planned: int
    recorded: int
    not_run: int
    complete: bool
    unexpected: int
    flaky: int
    notices: tuple[str, ...]
    verdicts: dict[Verdict, int]
    conflicts: tuple[Conflict, ...]
    environments: tuple[RunEnvironment, ...]
    targets: tuple[TargetRow, ...]
    cells: tuple[CellRow, ...]
    faults: tuple[FaultRow, ...]
    ways: tuple[WayRow, ...] = ()
    speed: tuple[SpeedRow, ...] = ()
    exits: dict[str, TargetExit] = {}


def to_json(report: Report, targets: tuple[TargetRow, ...], cells: Iterable[CellRow]) -> bytes:
    """Render the file."""
    run = report.run
    content = ReportFile(
        schema=1,
        **{name: getattr(report, name) for name in _COPIED},
        runs=run.names,
        planned=run.planned,
        flaky=len(report.flaky),
        notices=run.notices,
        verdicts=dict(report.verdicts),
        conflicts=run.conflicts,
        environments=run.environments,
        targets=targets,
        cells=tuple(cells),
        faults=tuple(
            FaultRow(
                fault=msgspec.structs.replace(shown.fault, cells=tuple(each.cell for each in shown.cells)),
                runs=shown.runs,
                targets=shown.targets,
            )
            for shown in report.faults
        ),
        ways=tuple(way_rows(run)),
        speed=tuple(speed_rows(run)),
        exits=run.exits,
    )
    return inert_json(content)

"""Records -> everything the report says, in whatever format. Pure: every number of it comes from here."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.core.errors import one_line
from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.cell import ReportCell
from harness.report.conversion import LaneConversion, lane_conversion
from harness.report.details import CapturedOutput, DetailPage, detail_pages, hrefs, wants_details
from harness.report.diff import Diff
from harness.report.effect import LaneEffect, lane_effects
from harness.report.environment import EnvironmentTable, environment_table
from harness.report.failing import FailingOperator, failing_operators
from harness.report.flaky import FlakyCells, flaky_cells
from harness.report.grid import GridPage, LaneFilter, grid, lane_filters
from harness.report.groups import Groups, grouped
from harness.report.headroom import CloseCell, LaneHeadroom, closest, lane_headroom
from harness.report.lane import Lane, lane_of, lanes
from harness.report.memory import TargetMemory, target_memory
from harness.report.merge import Conflict, MergedRun
from harness.report.noise import FarCell, LaneNoise, farthest, lane_noise, without_noise
from harness.report.operators import Documented, OperatorTable, operator_table
from harness.report.performance import Performance, performance
from harness.report.precision import LanePrecision, delivered
from harness.report.summary import LaneSummary, summarise

_SHOWN_REASONS = 5


class Unavailable(msgspec.Struct, frozen=True, kw_only=True):
    """A lane of which nothing was tried, and why."""

    lane: Lane
    cause: str
    reason: str
    count: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole report.

    Attributes:
        name: The matrix file's name, or the run folder's where the run does not say.
        matrix_path: The matrix file as the run was given it, for commands; ``MATRIX`` where it does not say.
        runs: Names of the run folders.
        first: UTC time of the first cell, ISO 8601; empty where no record says.
        last: The same for the cell that started last.
        planned: Cells planned.
        recorded: Cells with a record of a result.
        not_run: Planned cells without a result.
        complete: True where nothing is missing and the run ended by itself.
        notices: What a reader must know about the data.
        conflicts: Cells of which runs hold different results.
        verdicts: How often each verdict occurred, in the order of the verdicts.
        unexpected_failures: Failures that the matrix does not expect.
        unexpected_others: Verdicts that are no failure where the matrix expects another verdict.
        expected_failures: Failures that the matrix expects.
        flaky: Failures that gave another verdict when they were tried again.
        effects: Of options that should change what is computed; empty where no cell has any.
        memory: The processes of each target that ran in any.
        performance: How fast models ran; null where nothing was measured.
        operators: What each lane computes, from evidence.
        failing_operators: Operators whose models fail.
        headroom: Error relative to the allowed error, by lane.
        closest: Right answers closest to their limit.
        noise: Error relative to the rounding noise of the models, by lane; empty where no record has any.
        far: Cells that this noise does not explain.
        without_noise: Why noise that was to judge is not known: ``(reason, cells)``.
        conversion: What converted models lose, by lane; empty where none was converted.
        lane_filters: What the lanes differ in.
        models: The table of models by lanes, in pages; one at least.
        details: Cells in full, in pages; none where no cell needs any.
        details_left_out: Cells that would have details but for the number of pages.
        changes: What changed since an older run; null without one.
    """

    name: str
    matrix_path: str
    runs: tuple[str, ...]
    first: str
    last: str
    planned: int
    recorded: int
    not_run: int
    complete: bool
    notices: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    lanes: tuple[Lane, ...]
    verdicts: tuple[tuple[Verdict, int], ...]
    summary: tuple[LaneSummary, ...]
    precision: tuple[LanePrecision, ...]
    effects: tuple[LaneEffect, ...]
    unavailable: tuple[Unavailable, ...]
    unexpected_failures: Groups
    unexpected_others: Groups
    expected_failures: Groups
    flaky: FlakyCells
    memory: tuple[TargetMemory, ...]
    performance: Performance | None
    operators: OperatorTable
    failing_operators: tuple[FailingOperator, ...]
    headroom: tuple[LaneHeadroom, ...]
    closest: tuple[CloseCell, ...]
    noise: tuple[LaneNoise, ...]
    far: tuple[FarCell, ...]
    without_noise: tuple[tuple[str, int], ...]
    conversion: tuple[LaneConversion, ...]
    lane_filters: tuple[LaneFilter, ...]
    models: tuple[GridPage, ...]
    details: tuple[DetailPage, ...]
    details_left_out: int
    environments: EnvironmentTable
    changes: Diff | None = None

    @property
    def named(self) -> bool:
        """Whether every planned cell stands in the rows of its target, those that were not run included."""
        return sum(row.cells for row in self.summary) == self.planned

    @property
    def unexpected(self) -> int:
        """Cells whose verdict is not what the matrix expects."""
        return self.unexpected_failures.count + self.unexpected_others.count

    @property
    def without_effect(self) -> tuple[str, ...]:
        """Options that changed no cell of a target."""
        rows = [f"{', '.join(row.options)} on {row.lane.label}" for row in self.effects if not row.seen]
        more = (f"{len(rows) - _SHOWN_REASONS:,} more",) if len(rows) > _SHOWN_REASONS else ()
        return (*rows[:_SHOWN_REASONS], *more)

    @property
    def leaking(self) -> tuple[str, ...]:
        """Targets whose processes leak."""
        return tuple(row.target for row in self.memory if row.leaks)


def build_report(
    run: MergedRun, captured: CapturedOutput, documented: Documented, *, changes: Diff | None = None
) -> Report:
    """Build the view model.

    Args:
        run: The run, or the runs.
        captured: Gives the excerpt of a cell's captured output.
        documented: What documents list of the operators of each provider.
        changes: What changed since an older run, where there is one to compare with.
    """
    cells = _placed(run.records)
    records = [record for _, record in run.records]
    columns = lanes((cell.lane for cell in cells), _target_order(run))
    by_lane: Mapping[Lane, list[Record]] = defaultdict(list)
    # In the order in which they were written: memory grows along it.
    lane_by_record = {id(cell.record): cell.lane for cell in cells}
    for record in records:
        by_lane[lane_by_record[id(record)]].append(record)
    path = _matrix_path(run)
    verdicts = Counter(record.verdict for record in records)
    unrecorded = run.planned - len(records)
    failed = [cell for cell in cells if cell.record.verdict.family is Family.FAILED]
    started = sorted(record.started for record in records if record.started)
    without_details = sum(not cell.href and wants_details(cell.record) is not None for cell in cells)
    complete = run.complete and not verdicts[Verdict.NOT_RUN]
    operators = operator_table(columns, cells, documented, complete=complete)
    return Report(
        # The last part of a path of either kind of system.
        name=one_line(re.split(r"[/\\]", path)[-1] if path != "MATRIX" else run.folders[0].name, 120),
        matrix_path=path,
        runs=run.names,
        first=started[0] if started else "",
        last=started[-1] if started else "",
        planned=run.planned,
        recorded=len(records) - verdicts[Verdict.NOT_RUN],
        not_run=unrecorded + verdicts[Verdict.NOT_RUN],
        complete=complete,
        notices=run.notices,
        conflicts=run.conflicts,
        lanes=columns,
        verdicts=tuple((verdict, verdicts[verdict]) for verdict in Verdict if verdicts[verdict]),
        summary=tuple(summarise(lane, by_lane[lane], complete=complete) for lane in columns),
        precision=tuple(delivered(lane, by_lane[lane]) for lane in columns),
        effects=tuple(effect for lane in columns for effect in lane_effects(lane, by_lane[lane])),
        unavailable=tuple(u for lane in columns for u in _unavailable(lane, by_lane[lane])),
        unexpected_failures=grouped((cell for cell in failed if not cell.record.expected), path),
        unexpected_others=grouped(
            (
                cell
                for cell in cells
                if not cell.record.expected and cell.record.verdict.family is not Family.FAILED
            ),
            path,
        ),
        expected_failures=grouped((cell for cell in failed if cell.record.expected), path),
        flaky=flaky_cells(cells),
        memory=_memory(columns, records),
        performance=performance(cells, columns),
        operators=operators,
        failing_operators=failing_operators(operators, cells, complete=complete),
        headroom=tuple(lane_headroom(lane, by_lane[lane]) for lane in columns),
        closest=closest(cells),
        noise=tuple(row for lane in columns for row in lane_noise(lane, by_lane[lane])),
        far=farthest(cells),
        without_noise=without_noise(records),
        conversion=tuple(
            row for lane in columns if (row := lane_conversion(lane, by_lane[lane])) is not None
        ),
        lane_filters=lane_filters(columns),
        models=grid(cells, columns, complete=complete),
        details=detail_pages(cells, path, captured),
        details_left_out=without_details,
        environments=environment_table(run.environments),
        changes=changes,
    )


def _placed(records: Sequence[tuple[Path, Record]]) -> tuple[ReportCell, ...]:
    """The cells sorted by suite, model and lane, the most urgent ones with a place for their details."""
    ordered = sorted(records, key=lambda pair: (pair[1].suite, pair[1].model, pair[1].cell))
    places = hrefs(record for _, record in ordered)
    # A run has many cells and few lanes: equal ones are one object.
    known: dict[Lane, Lane] = {}
    cells = []
    for index, (folder, record) in enumerate(ordered):
        lane = lane_of(record)
        lane = known.setdefault(lane, lane)
        cells.append(ReportCell(record=record, lane=lane, folder=folder, href=places.get(index, "")))
    return tuple(cells)


def _memory(columns: Sequence[Lane], records: Iterable[Record]) -> tuple[TargetMemory, ...]:
    """By target, in the order of its lanes: one process serves all of them."""
    by_target: dict[str, list[Record]] = {lane.target: [] for lane in columns}
    for record in records:
        by_target[record.target].append(record)
    found = (target_memory(target, its) for target, its in by_target.items())
    return tuple(row for row in found if row is not None)


def _unavailable(lane: Lane, records: Iterable[Record]) -> Iterable[Unavailable]:
    counts = Counter((r.cause, r.reason) for r in records if r.verdict is Verdict.UNAVAILABLE)
    shown = counts.most_common(_SHOWN_REASONS)
    for (cause, reason), count in shown:
        yield Unavailable(lane=lane, cause=cause, reason=reason, count=count)
    if len(counts) > len(shown):
        rest = counts.total() - sum(count for _, count in shown)
        reason = f"{len(counts) - len(shown):,} other reasons"
        yield Unavailable(lane=lane, cause="", reason=reason, count=rest)


def _target_order(run: MergedRun) -> list[str]:
    """Targets as the matrix lists them, then as the environments do; repeats do no harm."""
    listed = run.matrix.get("targets")
    names = [t.get("name") for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []
    return list(
        dict.fromkeys([*(n for n in names if isinstance(n, str)), *(e.target for e in run.environments)])
    )


def _matrix_path(run: MergedRun) -> str:
    path = run.matrix.get("path")
    return path if isinstance(path, str) and path else "MATRIX"

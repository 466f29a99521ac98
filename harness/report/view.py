"""The data that all formats and pages of the report share, computed once from the records. Pure.

A page computes the data that only it shows; :mod:`harness.report.site` has the table of pages.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from harness.core.findings.lacking import Lacking, lacks_of
from harness.core.records.record import Record
from harness.core.records.run_info import TargetExit
from harness.core.records.verdict import Family, Verdict, says_nothing
from harness.core.text.errors import one_line
from harness.report.cells.cell_groups import Groups, grouped
from harness.report.cells.column import Column, columns_in_order
from harness.report.cells.column_counts import ColumnSummary, summarise
from harness.report.cells.column_precision import ColumnPrecision, measure_column
from harness.report.cells.conversion import ColumnConversion, column_conversion
from harness.report.cells.noise_errors import ColumnNoise, column_noise
from harness.report.cells.report_cell import UNKNOWN_MATRIX, ReportCell, sorted_cells
from harness.report.changes.run_diff import Diff
from harness.report.history.nights import Nights
from harness.report.history.trend_points import Failing
from harness.report.runs.fault_bundle import BundleOf, no_bundle
from harness.report.runs.fault_merge import KnownFaults, ReportFault
from harness.report.runs.merged_run import MergedRun, target_settings
from harness.report.runs.results_beside import ResultsBeside
from harness.report.runs.target_identity import Identity, identities

_SHOWN_REASONS = 5

CapturedOutput = Callable[[Path, Record], str]
"""``(run folder, record) -> excerpt`` of what the cell wrote while it ran; empty if there is none."""

Documented = Mapping[str, Mapping[str, str]]
"""Provider -> operator -> its restrictions. A provider without documented operators has no entry."""


class UnavailableCells(msgspec.Struct, frozen=True, kw_only=True):
    """Cells of a column in which nothing was tried, by cause and reason."""

    column: Column
    cause: str
    reason: str
    count: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The whole report, except for data that only one page shows.

    Attributes:
        name: The matrix file's name; the run folder's if the run has none.
        matrix_path: The matrix file as the run was given it, for commands; ``MATRIX`` if unknown.
        first: UTC time of the first cell, ISO 8601; empty if no record has a time.
        last: The same for the cell that started last.
        recorded: Cells with a record of a result.
        complete: True if no result is missing and the run ended by itself.
        cells: All cells, sorted by suite, model and column.
        identities: The identity of each target when it ran, one entry for each environment.
        by_column: Their records, in the order in which they were written.
        verdicts: How often each verdict occurred, in the order of the verdicts.
        noise: Error relative to the rounding noise of the models; empty if no record has any.
        conversion: The losses of converted models; empty if none was converted.
        unexpected_others: Verdicts other than failures for which the matrix expects another verdict.
        flaky: Failures that had another verdict when tried again; the first verdict counts.
        changes: The changes since an older run; null without one.
        faults: The faults that triage found; empty if no run was triaged.
        nights: The runs of a history side by side; null without a history.
        beside: Results of other tools, for the page *Compare*.
        failing: Cells that fail in the newest run of a history, by their ids; null without a history.
    """

    run: MergedRun
    name: str
    matrix_path: str
    first: str
    last: str
    recorded: int
    not_run: int
    complete: bool
    cells: tuple[ReportCell, ...]
    columns: tuple[Column, ...]
    identities: tuple[Identity, ...]
    by_column: Mapping[Column, Sequence[Record]]
    verdicts: tuple[tuple[Verdict, int], ...]
    summary: tuple[ColumnSummary, ...]
    precision: tuple[ColumnPrecision, ...]
    noise: tuple[ColumnNoise, ...]
    conversion: tuple[ColumnConversion, ...]
    unavailable: tuple[UnavailableCells, ...]
    unexpected_failures: Groups
    unexpected_others: Groups
    expected_failures: Groups
    flaky: tuple[ReportCell, ...]
    captured: CapturedOutput
    documented: Documented
    changes: Diff | None = None
    faults: tuple[ReportFault, ...] = ()
    failing: Mapping[str, Failing] | None = None
    nights: Nights | None = None
    beside: tuple[ResultsBeside, ...] = ()

    @property
    def named(self) -> bool:
        """Return whether the rows of the targets contain every planned cell, including those not run."""
        return sum(row.cells for row in self.summary) == self.run.planned

    @property
    def unexpected(self) -> int:
        """Cells whose verdict is not what the matrix expects."""
        return self.unexpected_failures.count + self.unexpected_others.count

    @property
    def unclean(self) -> tuple[tuple[str, TargetExit], ...]:
        """Targets with a process that was asked to end and died or did not end, unexpected ones first."""
        found = [(target, one) for target, one in self.run.exits.items() if one.unclean]
        return tuple(sorted(found, key=lambda each: each[1].expected))

    @property
    def unexpected_exits(self) -> tuple[tuple[str, TargetExit], ...]:
        """Targets whose processes did not end as the matrix expects."""
        return tuple((target, one) for target, one in self.run.exits.items() if not one.expected)

    @property
    def lacking(self) -> tuple[Lacking, ...]:
        """What the devices of targets lack, each feature once."""
        return lacks_of(record for _, record in self.run.records)

    @property
    def says_nothing(self) -> bool:
        """Return whether cells were tried, and none of them says anything about a provider."""
        return says_nothing([verdict for verdict, _ in self.verdicts])


def build_report(
    run: MergedRun,
    captured: CapturedOutput,
    documented: Documented,
    *,
    changes: Diff | None = None,
    bundle_of: BundleOf = no_bundle,
    failing: Mapping[str, Failing] | None = None,
    nights: Nights | None = None,
) -> Report:
    """Build the view model; the arguments are as in ``Report``."""
    known = KnownFaults(run)
    cells = sorted_cells(run.records, known.link, run.known)
    # As the matrix lists them, then as the environments do; repeats do no harm.
    targets = dict.fromkeys([*target_settings(run.matrix), *(each.target for each in run.environments)])
    columns = columns_in_order((cell.column for cell in cells), list(targets))
    records = [record for _, record in run.records]
    by_column = _by_column(records, cells)
    path = run.matrix_path or UNKNOWN_MATRIX
    verdicts = Counter(record.verdict for record in records)
    failed = [cell for cell in cells if cell.record.verdict.family is Family.FAILED]
    others = [cell for cell in cells if cell.record.verdict.family is not Family.FAILED]
    started = sorted(record.started for record in records if record.started) or [""]
    complete = run.complete and not verdicts[Verdict.NOT_RUN]
    return Report(
        run=run,
        name=one_line(run.matrix_file or run.folders[0].name, 120),
        matrix_path=path,
        first=started[0],
        last=started[-1],
        recorded=len(records) - verdicts[Verdict.NOT_RUN],
        not_run=run.planned - len(records) + verdicts[Verdict.NOT_RUN],
        complete=complete,
        cells=cells,
        columns=columns,
        identities=identities(run),
        by_column=by_column,
        verdicts=tuple((verdict, verdicts[verdict]) for verdict in Verdict if verdicts[verdict]),
        summary=tuple(summarise(column, by_column[column], complete=complete) for column in columns),
        precision=tuple(measure_column(column, by_column[column]) for column in columns),
        noise=tuple(row for column in columns for row in column_noise(column, by_column[column])),
        conversion=tuple(filter(None, (column_conversion(one, by_column[one]) for one in columns))),
        unavailable=tuple(row for column in columns for row in _unavailable(column, by_column[column])),
        unexpected_failures=grouped((cell for cell in failed if not cell.record.expected), path),
        unexpected_others=grouped((cell for cell in others if not cell.record.expected), path),
        expected_failures=grouped((cell for cell in failed if cell.record.expected), path),
        flaky=tuple(cell for cell in cells if cell.record.flaky),
        captured=captured,
        documented=documented,
        changes=changes,
        faults=tuple(known.shown(cells, bundle_of)),
        failing=failing,
        nights=nights,
    )


def _by_column(records: Iterable[Record], cells: Iterable[ReportCell]) -> Mapping[Column, list[Record]]:
    """Return the records of each column in their own order; a column without one is empty."""
    columns = {id(cell.record): cell.column for cell in cells}
    found: Mapping[Column, list[Record]] = defaultdict(list)
    for record in records:
        found[columns[id(record)]].append(record)
    return found


def _unavailable(column: Column, records: Iterable[Record]) -> Iterable[UnavailableCells]:
    counts = Counter((r.cause, r.reason) for r in records if r.verdict is Verdict.UNAVAILABLE)
    shown = counts.most_common(_SHOWN_REASONS)
    for (cause, reason), count in shown:
        yield UnavailableCells(column=column, cause=cause, reason=reason, count=count)
    if len(counts) > len(shown):
        rest = counts.total() - sum(count for _, count in shown)
        reason = f"{len(counts) - len(shown):,} other reasons"
        yield UnavailableCells(column=column, cause="", reason=reason, count=rest)

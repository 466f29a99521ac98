"""`ep-harness report`: run folders to files of the requested formats."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from harness.core.collector import without_collector
from harness.core.files.writing import aside, write_aside
from harness.core.text.errors import Problem, UsageError, valid_names
from harness.report.changes.diff import compare_merged
from harness.report.changes.run_comparison import read_side
from harness.report.formats.badge import badge_svg, badges
from harness.report.formats.cell_columns import CellRow
from harness.report.formats.comma_separated import axis_names, write_table
from harness.report.formats.ctrf import to_ctrf
from harness.report.formats.generation_rows import SpeedRow, WayRow, speed_rows, way_rows
from harness.report.formats.json_report import to_json
from harness.report.formats.junit import to_junit
from harness.report.formats.markdown import to_markdown
from harness.report.formats.open_metrics import to_open_metrics
from harness.report.formats.rows import TargetRow, cell_rows, target_rows
from harness.report.formats.sarif import to_sarif
from harness.report.formats.wpt_writer import to_wpt
from harness.report.history.nights import nights_of
from harness.report.history.trend import TrendDatabase, failing_cells
from harness.report.pages.operator_pages import documented_operators
from harness.report.runs.fault_bundle import bundles_for
from harness.report.runs.merge import merge
from harness.report.runs.read import RunData, captured_output, read_run, run_folders
from harness.report.runs.results_beside import read_results_beside
from harness.report.site import write_site
from harness.report.view import Report, build_report
from harness.report.words.inert import inert_json
from harness.report.words.target_file_names import target_file_names


class ReportContent(msgspec.Struct, frozen=True, kw_only=True):
    """The data from which every format is rendered."""

    report: Report
    targets: tuple[TargetRow, ...]
    templates: Path | None

    def cells(self) -> Iterator[CellRow]:
        """Return the rows of the cells; they are not kept, because 100,000 of them are large."""
        return cell_rows(self.report.run)


@without_collector()
def write_report(  # noqa: PLR0913 - one for each option of the command
    runs: Path | str | Sequence[Path | str],
    out: Path | str,
    formats: str | Sequence[str] = ("html",),
    *,
    templates: Path | str | None = None,
    baseline: Path | str | None = None,
    history: TrendDatabase | None = None,
    trends: str = "",
    beside: Sequence[Path | str] = (),
) -> tuple[Path, ...]:
    """Render one run, or several as one.

    Args:
        runs: A run folder, a folder of run folders, or several of these.
        out: Folder of the report; created if it does not exist.
        formats: Of ``FORMATS``.
        templates: Folder with HTML templates that replace the shipped ones of the same name.
        baseline: A run, or a folder of runs, with which the HTML report compares.
        history: A history, or a store of many runs, from which the age of cells and faults is read.
        trends: Link to a page with trends, from the pages of the report.
        beside: Files with results of other tools, for the page *Compare*: see docs/reference/formats.md.

    Returns:
        The first file of each format, or its folder.

    Raises:
        UsageError: A run folder, the history or a file beside is missing or damaged, a format is unknown, or
            ``out`` cannot be written.
    """
    folders = [Path(runs)] if isinstance(runs, str | Path) else [*map(Path, runs)]
    formats = [formats] if isinstance(formats, str) else formats
    out = Path(out)
    if not folders:
        raise UsageError.at("report", "no run folder given", "ep-harness report RUN...")
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        problem = f"there is no format {unknown[0]!r}"
        raise UsageError.at("--format", problem, valid_names(unknown[0], FORMATS))
    read = _read_all(folders)
    run = merge(read)
    changes = None
    if baseline:
        as_one = merge(read, as_one=True) if run.conflicts else run
        changes = compare_merged(read_side(Path(baseline)), as_one, names=(str(baseline), "this run"))
    matrix = run.matrix_file or run.names[0]
    report = build_report(
        run,
        captured_output,
        documented_operators(),
        changes=changes,
        bundle_of=bundles_for(out),
        failing=None if history is None else failing_cells(history, matrix),
        nights=None if history is None else nights_of(history, matrix, trends=trends),
    )
    others = tuple(each for path in beside for each in read_results_beside(Path(path)))
    report = msgspec.structs.replace(report, beside=others)
    replaced = None if templates is None else Path(templates)
    content = ReportContent(report=report, targets=target_rows(report), templates=replaced)
    try:
        out.mkdir(parents=True, exist_ok=True)
        return tuple(FORMATS[name](content, out) for name in dict.fromkeys(formats))
    except OSError as error:
        problem = f"the report cannot be written: {error.strerror or error}"
        where = str(error.filename or out)
        raise UsageError.at(where, problem, "choose another --out") from error


def _read_all(paths: Sequence[Path]) -> list[RunData]:
    runs: list[RunData] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            runs.extend(read_run(folder, compact=True) for folder in run_folders(path))
        except UsageError as error:
            problems.extend(error.problems)
    if problems:
        raise UsageError(*problems)
    return runs


def _markdown(content: ReportContent, out: Path) -> Path:
    path = out / "report.md"
    write_aside(path, to_markdown(content.report, content.targets))
    return path


def _csv(content: ReportContent, out: Path) -> Path:
    run = content.report.run
    cells, ways = out / "cells.csv", out / "generation.csv"
    write_table(out / "targets.csv", TargetRow, content.targets)
    write_table(cells, CellRow, content.cells(), axis_names(content.cells()))
    # A table of an earlier report must not stay as it was.
    if ways.exists() or any(record.generation is not None for _, record in run.records):
        write_table(ways, WayRow, way_rows(run))
        write_table(out / "generation-speed.csv", SpeedRow, speed_rows(run))
    return cells


def _json(content: ReportContent, out: Path) -> Path:
    path = out / "report.json"
    write_aside(path, to_json(content.report, content.targets, content.cells()))
    return path


def _junit(content: ReportContent, out: Path) -> Path:
    path = out / "junit.xml"
    with aside(path) as fresh, fresh.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(to_junit(content.report, content.targets, content.cells()))
    return path


def _ctrf(content: ReportContent, out: Path) -> Path:
    path = out / "ctrf-report.json"
    write_aside(path, to_ctrf(content.report, content.targets, content.cells()))
    return path


def _sarif(content: ReportContent, out: Path) -> Path:
    path = out / "report.sarif"
    write_aside(path, to_sarif(content.report))
    return path


def _open_metrics(content: ReportContent, out: Path) -> Path:
    path = out / "metrics.txt"
    write_aside(path, to_open_metrics(content.report, content.targets))
    return path


def _badge(content: ReportContent, out: Path) -> Path:
    (out / "badges").mkdir(exist_ok=True)
    for name, badge in badges(content.report, content.targets):
        write_aside(out / name, inert_json(badge))
        write_aside((out / name).with_suffix(".svg"), badge_svg(badge))
    return out / "badge.json"


def _wpt(content: ReportContent, out: Path) -> Path:
    (out / "wpt").mkdir(exist_ok=True)
    by_target: dict[str, list[CellRow]] = {row.label: [] for row in content.targets}
    for cell in content.cells():
        by_target[cell.label].append(cell)
    for row, name in zip(content.targets, target_file_names(by_target), strict=True):
        report = content.report
        text = to_wpt(row, by_target[row.label], first=report.first, last=report.last)
        write_aside(out / "wpt" / f"{name}.json", text)
    return out / "wpt"


FORMATS: dict[str, Callable[[ReportContent, Path], Path]] = {
    "html": lambda content, out: write_site(content.report, out, templates=content.templates),
    "markdown": _markdown,
    "csv": _csv,
    "json": _json,
    "junit": _junit,
    "ctrf": _ctrf,
    "sarif": _sarif,
    "openmetrics": _open_metrics,
    "badge": _badge,
    "wpt": _wpt,
}
"""Name -> function that writes the format and returns its first file."""

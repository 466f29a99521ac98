"""`ep-harness history`: keep runs in a database, and show how results develop."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.annex.store.command_query import note_unreadable
from harness.annex.store.store import open_store
from harness.cli.output import notify, print_lines, print_result
from harness.core.records.verdict import Verdict
from harness.core.text.counted import plural
from harness.core.text.errors import EXIT_OK, EXIT_UNEXPECTED
from harness.report.changes.run_comparison import read_side
from harness.report.changes.run_diff import CellChangeKind
from harness.report.history.history_file import History
from harness.report.history.nights import with_nights
from harness.report.history.trend import TrendDatabase, cell_points, trends
from harness.report.history.trend_points import CellPoint, Failing, Flake, LatencyStep, Series, Trends, Turned
from harness.report.words.figures import brief
from harness.report.words.inert import plain_line

_SHOWN = 20
"""Runs, cells or warnings listed at most."""


def add(runs: Sequence[Path], database: Path) -> int:
    """Add runs to the history; runs that are already there stay.

    A run is a run folder, or a folder of runs that count as one.

    Returns:
        0, or 1 if a run has cells with different verdicts, which count as not run.
    """
    conflicts = 0
    with History(database, create=True) as history:
        for run in runs:
            merged = read_side(run)
            state = "added" if history.add(run, notify, merged) else "already there"
            conflicts += sum(conflict.is_open for conflict in merged.conflicts)
            print_lines([f"{state:<14} {run}"])
    return EXIT_UNEXPECTED if conflicts else EXIT_OK


def show_history(
    runs: Path | None,
    *,
    database: Path,
    store: Path | None,
    target: str | None,
    cell: str | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Print trends of targets, failing cells and rising errors; or all results of one cell."""
    if runs is None:
        with History(database) as history:
            return _show(history, target=target, cell=cell, out=out, as_json=as_json)
    with open_store(runs, store, notify) as opened:
        note_unreadable(opened)
        return _show(opened, target=target, cell=cell, out=out, as_json=as_json)


def _show(
    history: TrendDatabase, *, target: str | None, cell: str | None, out: Path | None, as_json: bool
) -> int:
    if cell is not None:
        points = cell_points(history, cell)
        print_result(points, _cell_lines(cell, points), as_json=as_json)
        return EXIT_OK
    found, nights = with_nights(history, trends(history, target), target)
    lines = _lines(found)
    if out is not None:
        from harness.report.pages.history_page import write_history_page  # its templates take 0.1 s to import

        lines = iter([str(write_history_page(found, nights, out))])
    print_result(found, lines, as_json=as_json)
    return EXIT_OK


def _lines(found: Trends) -> Iterator[str]:
    if not found.runs:
        yield "the history is empty: ep-harness history add RUN"
        return
    yield f"{plural(len(found.runs), 'run')}, {found.runs[0].first} to {found.runs[-1].first}"
    for series in found.series:
        yield from _series_lines(series)
    yield from turned_lines(found.turned)
    if found.rising:
        yield ""
        yield f"WARNING: the error comes close to its limit in {plural(len(found.rising), 'cell')}"
        for each in found.rising[:_SHOWN]:
            yield f"    {plain_line(each.cell)}"
            yield f"        {brief(each.before)} -> {brief(each.now)} of the allowed error"
        yield from _more(len(found.rising))
    yield from _step_lines(found.steps)
    yield from _flake_lines(found.flakes)
    if found.failing:
        yield ""
        yield f"failing: {plural(len(found.failing), 'cell')}, the newest failures first"
        for failing in found.failing[:_SHOWN]:
            yield from _failing_lines(failing)
        yield from _more(len(found.failing))


def _series_lines(series: Series) -> Iterator[str]:
    yield ""
    yield f"{plain_line(series.label)}  ({plain_line(series.matrix)})"
    yield f"    {'first cell (UTC)':<21}{'passed, of the tried':<28} {'bits':>5} {'error':>8} {'p50':>10}"
    for point in series.points[-_SHOWN:]:
        bits, used = brief(point.median_bits), brief(point.headroom_high)
        shown = f"{point.share.text:<28} {bits:>5} {used:>8} {point.latency_text:>10}"
        yield f"    {point.run.first:<21}{shown}"
        if point.unavailable:
            yield f"        unavailable: {plain_line(point.unavailable, 120)}"
        if point.not_run:
            yield f"        INCOMPLETE: {point.not_run:,} of {point.cells:,} not run"
        yield from (f"        environment: {plain_line(change, 60)}" for change in point.changed)


def _step_lines(steps: Sequence[LatencyStep]) -> Iterator[str]:
    if not steps:
        return
    yield ""
    yield f"latency stepped: {plural(len(steps), 'time')}, the newest first"
    for step in steps[:_SHOWN]:
        yield f"    {plain_line(step.cell)}"
        yield f"        {plain_line(step.text, 400)}"
    yield from _more(len(steps))


def _flake_lines(flakes: Sequence[Flake]) -> Iterator[str]:
    if not flakes:
        return
    yield ""
    yield f"flaky: {plural(len(flakes), 'cell')}, the flakiest first"
    for flake in flakes[:_SHOWN]:
        yield f"    {plain_line(flake.cell)}"
        yield f"        another verdict in {flake.nights:,} of {plural(flake.judged, 'run')}"
    yield from _more(len(flakes))


def turned_lines(turned: Sequence[Turned]) -> Iterator[str]:
    """Yield the lines about cells whose verdict differs from the previous run."""
    if not turned:
        return
    counts = Counter(one.kind for one in turned)
    listed = ", ".join(
        f"{counts[kind]:,} {kind.value.replace('_', ' ')}" for kind in CellChangeKind if counts[kind]
    )
    yield ""
    yield f"since the run before: {listed}"
    lost = Counter(one.label for one in turned if one.after is Verdict.UNAVAILABLE)
    for label, count in lost.items():
        yield f"    {plain_line(label)}: unavailable, {plural(count, 'cell')} not tried; the reason is above"
    turned = [one for one in turned if one.after is not Verdict.UNAVAILABLE]
    for one in turned[:_SHOWN]:
        before, after = (verdict.value if verdict else "not planned" for verdict in (one.before, one.after))
        yield f"    {plain_line(one.cell)}"
        yield f"        {one.kind.value.replace('_', ' ')}: {before} -> {after}"
        yield from (f"        {plain_line(fact)}" for fact in one.facts)
    yield from _more(len(turned))


def _failing_lines(failing: Failing) -> Iterator[str]:
    expected = ", expected" if failing.expected else ""
    yield f"    {plain_line(failing.cell)}"
    since = f"since {failing.since.first}, {plural(failing.runs, 'run')}"
    yield f"        {failing.verdict.value}{expected} {since}"
    if failing.before and failing.verdict_before:
        yield f"        before: {failing.verdict_before.value} at {failing.before.first}"
    else:
        yield "        failing since the first run of the history"
    yield from (f"        environment: {plain_line(change, 60)}" for change in failing.changed)


def _cell_lines(cell: str, by_matrix: dict[str, tuple[CellPoint, ...]]) -> Iterator[str]:
    yield plain_line(cell)
    for matrix, points in by_matrix.items():
        yield f"    {plain_line(matrix)}"
        yield f"    {'first cell (UTC)':<22}{'verdict':<20} {'error':>8} {'bits':>7} {'p50':>11}"
        for point in points:
            p50 = "–" if point.p50_ms is None else f"{brief(point.p50_ms)} ms"  # noqa: RUF001
            verdict = point.verdict.value + ("" if point.expected else " !")
            yield (
                f"    {point.run.first:<22}{verdict:<20}"
                f" {brief(point.headroom):>8} {brief(point.bits):>7} {p50:>11}"
            )


def _more(count: int) -> Iterator[str]:
    if count > _SHOWN:
        yield f"    and {count - _SHOWN:,} more; --json lists all"

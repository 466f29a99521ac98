"""The page *Time*: where the time of a run goes, by operator and by node, and what loading a model takes."""

from collections.abc import Iterator

import msgspec

from harness.core.records.record import Record
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.core.timing.node_times import (
    PARTS_IN_WORDS,
    Boundary,
    NodeTime,
    NodeTimes,
    Part,
    by_operator,
    middle,
    time_leaves,
    time_words,
)
from harness.report.cells.report_cell import ReportCell
from harness.report.drawings.flame import Flame, flame_by_node, flame_by_operator
from harness.report.pages.shape_grid import ModelGridMaps, grid_maps
from harness.report.view import Report
from harness.report.words.figures import brief, percentage

MOST_TIMED_CELLS = 100
"""Cells with bars; a browser opens a page of these at once."""

_ROWS = 15


class TimeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One operator, or one node: median of the sessions, the least and the most of them, share of the run."""

    name: str
    ms: str
    spread: str
    share: str
    note: str


class PartShare(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the run with its share."""

    part: Part
    words: str
    share: str


class Loading(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to make the sessions of a model: the first one in its process, and the next ones."""

    first: str
    first_processor: str
    again: str
    again_processor: str
    host: str
    device: str


class CellTime(msgspec.Struct, frozen=True, kw_only=True):
    """One cell.

    Attributes:
        boundary: The boundary between providers that takes longest, in words; empty without any.
    """

    cell: ReportCell
    times: NodeTimes
    sentence: str
    parts: tuple[PartShare, ...]
    boundary: str
    operators: tuple[TimeRow, ...]
    operators_left_out: int
    nodes: tuple[TimeRow, ...]
    nodes_left_out: int
    by_operator: Flame
    by_node: Flame
    loading: Loading


class ModelTime(msgspec.Struct, frozen=True, kw_only=True):
    """One model with its cells."""

    name: str
    cells: tuple[CellTime, ...]


class TimePage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page.

    Attributes:
        grids: Models that were timed for several sizes.
        failed: Cells whose nodes could not be timed, and why.
        left_out: Cells that are not shown.
    """

    models: tuple[ModelTime, ...]
    grids: tuple[ModelGridMaps, ...]
    failed: tuple[tuple[ReportCell, str], ...]
    left_out: int


def time_view(report: Report) -> Iterator[TimePage]:
    """Yield the view, if the nodes of any cell were timed, or any for several sizes."""
    timed = [cell for cell in report.cells if cell.record.node_times is not None]
    grids = grid_maps(report)
    if not timed and not grids:
        return
    failed = tuple(
        (cell, cell.record.node_times.problem)
        for cell in timed
        if cell.record.node_times is not None and cell.record.node_times.problem
    )
    whole = [cell for cell in timed if cell.record.node_times is not None and cell.record.node_times.total_ms]
    models: dict[str, list[CellTime]] = {}
    for cell in whole[:MOST_TIMED_CELLS]:
        name = one_line(f"{cell.record.suite}/{cell.record.model}", 120)
        models.setdefault(name, []).extend(_cell_time(cell))
    yield TimePage(
        models=tuple(ModelTime(name=name, cells=tuple(cells)) for name, cells in models.items()),
        grids=grids,
        failed=failed,
        left_out=max(0, len(whole) - MOST_TIMED_CELLS),
    )


def _cell_time(cell: ReportCell) -> Iterator[CellTime]:
    times, record = cell.record.node_times, cell.record
    if times is None:
        return
    operators = by_operator(times)
    nodes = sorted(time_leaves(times), key=lambda node: -middle(node.ms))
    yield CellTime(
        cell=cell,
        times=times,
        sentence=visible(time_words(times, None if record.latency is None else record.latency.p50_ms)),
        parts=tuple(
            PartShare(part=part, words=words, share=percentage(min(1.0, times.share(part))))
            for part, words in PARTS_IN_WORDS.items()
            if times.share(part)
        ),
        boundary=boundary_words(times.boundaries[0], times) if times.boundaries else "",
        operators=tuple(
            _row(name, ms, times, plural(count, "node"))
            for name, (ms, count) in list(operators.items())[:_ROWS]
        ),
        operators_left_out=max(0, len(operators) - _ROWS),
        nodes=tuple(_row(node.node, node.ms, times, _about(node)) for node in nodes[:_ROWS]),
        nodes_left_out=max(0, len(nodes) - _ROWS) + times.left_out,
        by_operator=flame_by_operator(times),
        by_node=flame_by_node(times),
        loading=_loading(record, times),
    )


def boundary_words(boundary: Boundary, times: NodeTimes) -> str:
    """Return where the boundary between two providers lies, and what it takes."""
    after = f"after {boundary.after}" if boundary.after else "after the inputs"
    before = f"before {boundary.before}" if boundary.before else "before the outputs"
    size = f", {_size(boundary.nbytes)}" if boundary.nbytes else ""
    copies = f", {boundary.copies} copies" if boundary.copies > 1 else ", a copy" if boundary.copies else ""
    share = percentage(min(1.0, middle(boundary.ms) / times.total_ms))
    return visible(f"{after}, {before}: {brief(middle(boundary.ms))} ms ({share}){copies}{size}")


def _size(nbytes: int) -> str:
    for unit, factor in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if nbytes >= factor:
            return f"{nbytes / factor:.3g} {unit}"
    return plural(nbytes, "byte")


def _about(node: NodeTime) -> str:
    where = {"ep": "", "cpu": ", on the CPU EP", "copy": ""}[node.side]
    return f"{node.op}{where}; quartiles {brief(node.low_ms)} to {brief(node.high_ms)} ms"


def _row(name: str, ms: tuple[float, ...], times: NodeTimes, note: str) -> TimeRow:
    return TimeRow(
        name=one_line(visible(name), 120),
        ms=brief(middle(ms)),
        spread=_range(ms),
        share=percentage(min(1.0, middle(ms) / times.total_ms)),
        note=one_line(visible(note), 200),
    )


def _loading(record: Record, times: NodeTimes) -> Loading:
    latency = record.latency
    host = None if latency is None else latency.host_peak_mib
    device = None if latency is None else latency.device_mib
    return Loading(
        first=brief(record.timings_ms.get("create")),
        first_processor=brief(times.first_processor_ms),
        again=_range(times.create_ms),
        again_processor=_range(times.create_processor_ms),
        host=brief(None) if host is None else f"{host:,.0f} MiB",
        device=brief(None) if device is None else f"{device:,.0f} MiB",
    )


def _range(values: tuple[float, ...]) -> str:
    if not values:
        return brief(None)
    low, high = brief(min(values)), brief(max(values))
    return low if low == high else f"{low} to {high}"

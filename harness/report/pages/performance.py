"""The page *Performance*: how fast each model ran in each column."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from harness.core.findings.compute_share import is_the_cpus
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.timing.latency import FEWEST_RUNS, Latency
from harness.core.timing.pace import unbeaten
from harness.report.cells.column import Column
from harness.report.cells.failing_ways import generates
from harness.report.cells.paging import split
from harness.report.cells.report_cell import ReportCell, page_file
from harness.report.pages.text_speed import TextSpeed, TextSpeedModel, text_speed
from harness.report.view import Report
from harness.report.words.figures import brief, spread

MOST_CELLS = 2000
"""Largest number of cells in all files of the page; ``records.jsonl`` has them all."""


class TimedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell with its latency.

    Attributes:
        times: Median as a multiple of the fastest column's.
        fastest: Whether it is the only one of several cells that no other beats by more than noise.
        memory: Most host memory and, if known, device memory.
        plot: Fastest run, quartiles, median and slowest shown run, in percent of the model's scale.
    """

    cell: ReportCell
    latency: Latency
    times: str
    fastest: bool
    memory: str
    notes: tuple[str, ...]
    plot: tuple[float, float, float, float, float]


class TimedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model's cells, the fastest first; ``scale`` is the right end of their plots."""

    name: str
    scale: str
    cells: tuple[TimedCell, ...]


class ColumnSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """One column over all models.

    Attributes:
        compared: Cells whose model was also measured in another column.
        fastest: How often it was the fastest of these. Simulators do not count, nor times that differ by no
            more than noise or are disturbed.
        disturbed: Cells during which another process used the processors.
    """

    column: Column
    measured: int
    compared: int
    fastest: int
    disturbed: int


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """The view of one file.

    Attributes:
        files: ``(file, its first model)`` of all files, for links.
        columns: The targets, in the first file.
        models: Its models with latencies.
        text_models: Its models that generate text.
        cells: Cells of all files.
        left_out: Number of these that are not shown.
        threads: Threads of all sessions, in words; empty if they differ, because then each cell has a note.
    """

    file: str
    files: tuple[tuple[str, str], ...]
    columns: tuple[ColumnSpeed, ...]
    models: tuple[TimedModel, ...]
    text_models: tuple[TextSpeedModel, ...]
    cells: int
    left_out: int
    threads: str
    text: TextSpeed

    @property
    def disturbed(self) -> int:
        """Cells during which another process used the processors."""
        return sum(column.disturbed for column in self.columns)

    @property
    def fewest_runs(self) -> tuple[tuple[int, int], ...]:
        """``(percentile, runs)``: the fewest runs that a percentile needs."""
        return tuple(sorted(FEWEST_RUNS.items()))


_Timed = tuple[ReportCell, Latency]


def performance_view(report: Report) -> Iterator[Performance]:
    """Yield a view for each file; none if nothing was measured."""
    by_model: dict[str, list[_Timed]] = {}
    for cell in report.cells:
        if cell.record.latency is not None:
            name = f"{cell.record.suite}/{cell.record.model}"
            by_model.setdefault(name, []).append((cell, cell.record.latency))
    text = text_speed(report)
    if not by_model and not text.cells:
        return
    allowed = {_threads(latency) for timed in by_model.values() for _, latency in timed}
    models: list[TimedModel] = []
    shown = 0
    for name, timed in by_model.items():
        if shown + len(timed) > MOST_CELLS and models:
            break
        shown += len(timed)
        models.append(_model(name, timed, report.run.simulated, say_threads=len(allowed) > 1))
    total = sum(map(len, by_model.values()))
    columns = tuple(_speeds(by_model.values(), report))
    threads = allowed.pop() if len(allowed) == 1 else ""
    blocks: list[TimedModel | TextSpeedModel] = [*models, *text.models]
    parts = list(split(blocks, _chars, used=400 * len(columns)))
    files = tuple(
        (page_file("performance", number), part[0].name) for number, part in enumerate(parts, start=1)
    )
    for number, ((file, _), part) in enumerate(zip(files, parts, strict=True)):
        yield Performance(
            file=file,
            files=files,
            columns=() if number else columns,
            models=tuple(model for model in part if isinstance(model, TimedModel)),
            text_models=tuple(model for model in part if isinstance(model, TextSpeedModel)),
            cells=total,
            left_out=total - shown,
            threads=threads,
            text=text,
        )


def _chars(model: TimedModel | TextSpeedModel) -> int:
    """Return the approximate size of a model in the page."""
    if isinstance(model, TimedModel):
        return 950 + sum(900 + sum(map(len, cell.notes)) for cell in model.cells)
    sizes = len(model.prompts) + len(model.batches) + len(model.contexts)
    return 400 + (len(model.cells) + 1) * (400 + 120 * sizes)


def _fastest(timed: Sequence[_Timed], simulated: Mapping[str, str]) -> ReportCell | None:
    """Return the cell that is the fastest of several; None if none is, beyond noise."""
    real = [
        (cell, latency)
        for cell, latency in timed
        if cell.record.target not in simulated and not is_the_cpus(cell.record)
    ]
    found = unbeaten(real, lambda pair: (pair[1],))
    return found[0][0] if len(found) == 1 and len(timed) > 1 else None


def _speeds(models: Iterable[Sequence[_Timed]], report: Report) -> Iterable[ColumnSpeed]:
    counts: dict[Column, Counter[str]] = defaultdict(Counter)
    for timed in models:
        winner = _fastest(timed, report.run.simulated)
        rivals = len(timed) > 1
        for cell, latency in timed:
            its = counts[cell.column]
            its["measured"] += 1
            its["compared"] += rivals
            its["fastest"] += cell is winner
            its["disturbed"] += latency.disturbed
    for column in report.columns:
        if column in counts:
            yield ColumnSpeed(column=column, **counts[column])


def _model(
    name: str, timed: Sequence[_Timed], simulated: Mapping[str, str], *, say_threads: bool
) -> TimedModel:
    winner = _fastest(timed, simulated)
    ordered = sorted(timed, key=lambda pair: pair[1].p50_ms)
    # Not the slowest run of all: one interruption would compress everything else.
    scale = max(_shown_end(latency) for _, latency in ordered) or 1.0
    best = ordered[0][1].p50_ms
    return TimedModel(
        name=one_line(name, 120),
        scale=f"{brief(scale)} ms",
        cells=tuple(
            _cell(
                cell,
                latency,
                scale,
                best if len(ordered) > 1 else 0.0,
                fastest=cell is winner,
                say_threads=say_threads,
            )
            for cell, latency in ordered
        ),
    )


def _cell(
    cell: ReportCell, latency: Latency, scale: float, best: float, *, fastest: bool, say_threads: bool
) -> TimedCell:
    """Return a cell; ``best`` is the least median of several columns, 0 for a single one."""
    quartiles = spread(latency.samples_ms)
    ends = (
        latency.min_ms,
        quartiles.q1 if quartiles else latency.min_ms,
        latency.p50_ms,
        quartiles.q3 if quartiles else latency.max_ms,
        _shown_end(latency),
    )
    return TimedCell(
        cell=cell,
        latency=latency,
        times=f"{latency.p50_ms / best:.3g}" if best else "",
        fastest=fastest,
        memory=_memory(latency),
        notes=tuple(_notes(latency, cell.record, say_threads=say_threads)),
        plot=tuple(round(min(100.0, 100 * end / scale), 2) for end in ends),  # type: ignore[arg-type]  # five of them
    )


def _notes(latency: Latency, record: Record, *, say_threads: bool) -> Iterable[str]:
    if generates(record):
        yield "a run is one token, with the text before it in the cache"
    if record.verdict is Verdict.PASS_PARTIAL:
        yield "partly on the CPU"
    if latency.io == "bound":
        yield "inputs and outputs bound"
    if say_threads:
        yield _threads(latency)
    yield plural(latency.runs, "run") + (", then the time was up" if latency.stopped_by == "budget" else "")


def _threads(latency: Latency) -> str:
    within, across = (
        "as many threads as onnxruntime chooses" if count == 0 else plural(count, "thread")
        for count in (latency.intra_op_threads, latency.inter_op_threads)
    )
    return f"{within} within an operator and {across} across operators"


def _memory(latency: Latency) -> str:
    host = "unknown" if latency.host_peak_mib is None else f"{latency.host_peak_mib:,.0f} MiB"
    return host if latency.device_mib is None else f"{host} + {latency.device_mib:,.0f} MiB on the device"


def _shown_end(latency: Latency) -> float:
    return latency.max_ms if latency.p90_ms is None else latency.p90_ms

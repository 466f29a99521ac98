"""How fast each model ran on each lane, where a run has measured it."""

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from harness.core.errors import one_line
from harness.core.latency import FEWEST_RUNS, Latency
from harness.core.verdict import Verdict
from harness.report.cell import ReportCell
from harness.report.figures import brief, plural, spread
from harness.report.lane import Lane

MOST_CELLS = 2000
"""Cells that the page shows: what a browser opens at once."""


class TimedCell(msgspec.Struct, frozen=True, kw_only=True):
    """One cell's latency as the page shows it; texts, but for the plot.

    Attributes:
        lane: Its lane.
        href: Where its details stand; may be empty.
        median: In milliseconds.
        times: Median as a multiple of the fastest lane's.
        fastest: Whether it is that one, of several.
        least: The fastest run.
        p90: 90th percentile; a dash where there are too few runs.
        p99: 99th percentile, likewise.
        create: Making of the session.
        first_run: Its first run.
        memory: Most host memory and, where known, device memory.
        notes: What a reader must know to compare it, one phrase each.
        disturbed: Whether something else wanted the processors meanwhile.
        plot: Fastest run, quartiles, median and slowest shown, in percent of the model's scale.
    """

    lane: Lane
    href: str
    median: str
    times: str
    fastest: bool
    least: str
    p90: str
    p99: str
    create: str
    first_run: str
    memory: str
    notes: tuple[str, ...]
    disturbed: bool
    plot: tuple[float, float, float, float, float]


class TimedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model's cells, the fastest first; ``scale`` is the right end of their plots."""

    name: str
    scale: str
    cells: tuple[TimedCell, ...]


class LaneSpeed(msgspec.Struct, frozen=True, kw_only=True):
    """One lane over all models.

    Attributes:
        lane: Which.
        measured: Cells with a latency.
        compared: Those whose model was measured on another lane, too.
        fastest: How often it was the fastest of these.
        disturbed: Cells that something else was in the way of.
    """

    lane: Lane
    measured: int
    compared: int
    fastest: int
    disturbed: int


class Performance(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was measured.

    Attributes:
        lanes: In the order of the report.
        models: By name.
        cells: Cells with a latency.
        left_out: Those of them that are not shown.
        threads: What all sessions were allowed, in words; empty where they differ, and each cell says it.
    """

    lanes: tuple[LaneSpeed, ...]
    models: tuple[TimedModel, ...]
    cells: int
    left_out: int
    threads: str

    @property
    def disturbed(self) -> int:
        """Cells that something else was in the way of."""
        return sum(lane.disturbed for lane in self.lanes)

    @property
    def fewest_runs(self) -> tuple[tuple[int, int], ...]:
        """``(percentile, runs)``: how many runs a percentile takes."""
        return tuple(sorted(FEWEST_RUNS.items()))


_Timed = tuple[ReportCell, Latency]


def performance(cells: Iterable[ReportCell], order: Sequence[Lane]) -> Performance | None:
    """What the page says; None where nothing was measured.

    Args:
        cells: Of the report, in its order.
        order: The lanes in theirs.
    """
    by_model: dict[str, list[_Timed]] = {}
    for cell in cells:
        if cell.record.latency is not None:
            name = f"{cell.record.suite}/{cell.record.model}"
            by_model.setdefault(name, []).append((cell, cell.record.latency))
    if not by_model:
        return None
    allowed = {_threads(latency) for timed in by_model.values() for _, latency in timed}
    models: list[TimedModel] = []
    shown = 0
    for name, timed in by_model.items():
        if shown + len(timed) > MOST_CELLS and models:
            break
        shown += len(timed)
        models.append(_model(name, timed, say_threads=len(allowed) > 1))
    total = sum(map(len, by_model.values()))
    return Performance(
        lanes=tuple(_speeds(by_model.values(), order)),
        models=tuple(models),
        cells=total,
        left_out=total - shown,
        threads=allowed.pop() if len(allowed) == 1 else "",
    )


def _speeds(models: Iterable[Sequence[_Timed]], order: Sequence[Lane]) -> Iterable[LaneSpeed]:
    measured: Counter[Lane] = Counter()
    compared: Counter[Lane] = Counter()
    fastest: Counter[Lane] = Counter()
    disturbed: Counter[Lane] = Counter()
    for timed in models:
        for cell, latency in timed:
            measured[cell.lane] += 1
            compared[cell.lane] += len(timed) > 1
            disturbed[cell.lane] += latency.disturbed
        if len(timed) > 1:
            winner, _ = min(timed, key=lambda pair: pair[1].p50_ms)
            fastest[winner.lane] += 1
    for lane in order:
        if measured[lane]:
            yield LaneSpeed(
                lane=lane,
                measured=measured[lane],
                compared=compared[lane],
                fastest=fastest[lane],
                disturbed=disturbed[lane],
            )


def _model(name: str, timed: Sequence[_Timed], *, say_threads: bool) -> TimedModel:
    ordered = sorted(timed, key=lambda pair: pair[1].p50_ms)
    # Not the slowest run of all: one interruption would press everything else together.
    scale = max(_shown_end(latency) for _, latency in ordered) or 1.0
    best = ordered[0][1].p50_ms
    return TimedModel(
        name=one_line(name, 120),
        scale=f"{brief(scale)} ms",
        cells=tuple(
            _cell(cell, latency, scale, best, alone=len(ordered) == 1, say_threads=say_threads)
            for cell, latency in ordered
        ),
    )


def _cell(
    cell: ReportCell, latency: Latency, scale: float, best: float, *, alone: bool, say_threads: bool
) -> TimedCell:
    record = cell.record
    quartiles = spread(latency.samples_ms)
    ends = (
        latency.min_ms,
        quartiles.q1 if quartiles else latency.min_ms,
        latency.p50_ms,
        quartiles.q3 if quartiles else latency.max_ms,
        _shown_end(latency),
    )
    return TimedCell(
        lane=cell.lane,
        href=cell.href,
        median=brief(latency.p50_ms),
        times="" if alone or not best else f"{latency.p50_ms / best:.3g}",
        fastest=not alone and latency.p50_ms == best,
        least=brief(latency.min_ms),
        p90=brief(latency.p90_ms),
        p99=brief(latency.p99_ms),
        create=brief(record.timings_ms.get("create")),
        first_run=brief(record.timings_ms.get("first_run")),
        memory=_memory(latency),
        notes=tuple(_notes(latency, record.verdict, say_threads=say_threads)),
        disturbed=latency.disturbed,
        plot=tuple(round(min(100.0, 100 * end / scale), 2) for end in ends),  # type: ignore[arg-type]  # five of them
    )


def _notes(latency: Latency, verdict: Verdict, *, say_threads: bool) -> Iterable[str]:
    if verdict is Verdict.PASS_PARTIAL:
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

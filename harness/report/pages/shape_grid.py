"""The times of a grid of sizes as heat maps, and the size at which a target is worst."""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from harness.core.records.shape_times import ShapeTime, sizes_in, times_by_shape
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.cells.report_cell import ReportCell
from harness.report.view import Report
from harness.report.words.figures import brief, ratio

_LIMITS = (1.1, 1.5, 2.0, 4.0)
"""Multiples of the best up to which a square has the colour with that index."""

_DISTURBED = 0.1


class GridMapSquare(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of sizes: milliseconds, multiple of the best, colour, and whether it was disturbed."""

    ms: str
    times: str
    tone: str
    disturbed: bool


class GridMapRow(msgspec.Struct, frozen=True, kw_only=True):
    """One size, or one combination of sizes, with its squares; None where the CPU EP refuses the shape."""

    label: str
    squares: tuple[GridMapSquare | None, ...]


class GridMap(msgspec.Struct, frozen=True, kw_only=True):
    """The heat map of one cell.

    Attributes:
        across: The symbol whose sizes are the columns.
        sentence: Where it is worst.
    """

    cell: ReportCell
    across: str
    sizes: tuple[int, ...]
    rows: tuple[GridMapRow, ...]
    sentence: str


class ModelGridMaps(msgspec.Struct, frozen=True, kw_only=True):
    """The heat maps of one model.

    Attributes:
        compared: Whether squares are compared with the fastest target; else with the best time of an
            element.
    """

    name: str
    maps: tuple[GridMap, ...]
    compared: bool


_Timed = tuple[ReportCell, Mapping[str, ShapeTime]]


def grid_maps(report: Report) -> tuple[ModelGridMaps, ...]:
    """Return the heat maps of each model that was timed with a grid of sizes."""
    models: dict[str, list[_Timed]] = {}
    for cell in report.cells:
        times = times_by_shape(cell.record.scenario, cell.record.shape_times)
        if times:
            name = one_line(f"{cell.record.suite}/{cell.record.model}", 120)
            models.setdefault(name, []).append((cell, times))
    return tuple(
        ModelGridMaps(name=name, maps=tuple(_maps(timed)), compared=len(timed) > 1)
        for name, timed in models.items()
    )


def _maps(timed: Sequence[_Timed]) -> Iterator[GridMap]:
    fastest: dict[str, tuple[float, str]] = {}
    for cell, times in timed:
        for shape, one in times.items():
            fastest[shape] = min(
                fastest.get(shape, (math.inf, "")), (one.p50_ms, cell.column.without_scenario.label)
            )
    for cell, times in timed:
        if len(timed) > 1:
            multiples = {
                shape: one.p50_ms / fastest[shape][0] if fastest[shape][0] else 1.0
                for shape, one in times.items()
            }
            sentence = _against(multiples, fastest)
        else:
            costs = {shape: one.p50_ms / _elements(shape) for shape, one in times.items()}
            best = min(costs.values()) or 1.0
            multiples = {shape: cost / best for shape, cost in costs.items()}
            worst = max(multiples, key=lambda shape: multiples[shape])
            times_as_long = f"{ratio(multiples[worst])} times as long at {worst}"
            sentence = f"an element takes {times_as_long} as at the best shape"
        yield _map(cell, times, multiples, one_line(visible(sentence), 300))


def _against(multiples: Mapping[str, float], fastest: Mapping[str, tuple[float, str]]) -> str:
    worst = max(multiples, key=lambda shape: multiples[shape])
    if multiples[worst] <= 1:
        return f"the fastest at {plural(len(multiples), 'shape')}"
    slower = sum(multiple > 1 for multiple in multiples.values())
    return (
        f"at worst {ratio(multiples[worst])} times the time of {fastest[worst][1]}, at {worst}; "
        f"slower at {slower} of {plural(len(multiples), 'shape')}"
    )


def _map(
    cell: ReportCell, times: Mapping[str, ShapeTime], multiples: Mapping[str, float], sentence: str
) -> GridMap:
    rows: dict[str, dict[int, GridMapSquare]] = {}
    across = ""
    for shape, one in times.items():
        *before, (across, size) = list(sizes_in(shape)) or [("", 0)]
        label = ", ".join(f"{symbol}={value}" for symbol, value in before)
        rows.setdefault(label, {})[size] = GridMapSquare(
            ms=brief(one.p50_ms),
            times=ratio(multiples[shape]),
            tone=f"heat-{sum(multiples[shape] > limit for limit in _LIMITS)}",
            disturbed=one.waiting_threads is not None and one.waiting_threads > _DISTURBED,
        )
    sizes = tuple(sorted({size for squares in rows.values() for size in squares}))
    return GridMap(
        cell=cell,
        across=one_line(visible(across), 60),
        sizes=sizes,
        rows=tuple(
            GridMapRow(label=one_line(visible(label), 80), squares=tuple(map(squares.get, sizes)))
            for label, squares in rows.items()
        ),
        sentence=sentence,
    )


def _elements(shape: str) -> int:
    return max(1, math.prod(size for _, size in sizes_in(shape)))

"""Charts of how cost grows, as SVG, drawn from the rows of a table: both axes are logarithmic.

A line of slope one is linear growth; a dotted one is drawn from the first point of the highest series.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

_WIDTH, _HEIGHT = 520, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 130, 30, 40
_COLOURS = ("#1f6feb", "#bf5700", "#2e7d32", "#8e24aa", "#b71c1c", "#00838f")


class Picture(NamedTuple):
    """A chart of a script's table.

    Attributes:
        script: Name of the script.
        title: What it shows.
        line: Column with the name of each line; empty for one line.
        x: Column.
        y: Column.
        unit: Of y.
        where: Only rows with these values.
    """

    script: str
    title: str
    line: str
    x: str
    y: str
    unit: str
    where: Mapping[str, str] = MappingProxyType({})


_ONE = MappingProxyType({"targets": "1"})
_SAME = MappingProxyType({"cells": "20,000"})
PICTURES = {
    "growth-seconds": Picture("scale.py", "Wall time by cells", "step", "cells", "wall", "s", _ONE),
    "growth-memory": Picture("scale.py", "Memory by cells", "step", "cells", "peak memory", "MB", _ONE),
    "growth-targets": Picture("scale.py", "Wall time by targets", "step", "targets", "wall", "s", _SAME),
    "growth-places": Picture("places.py overhead", "Wall time by places", "", "places", "wall", "s"),
    "growth-runs": Picture("store.py", "Wall time by runs in a store", "step", "runs", "wall", "s"),
}
"""Name of the file, without its suffix -> what it shows."""

Series = Mapping[str, Sequence[tuple[float, float]]]
"""Name of a line -> its points, by x."""


def pictures(script: str, rows: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield file, title and chart of what a script has printed; none of what has one size alone."""
    for name, one in PICTURES.items():
        series = series_of(rows, one.line, one.x, one.y, one.where) if one.script == script else {}
        if series:
            yield f"{name}.svg", one.title, chart(one.title, one.x, one.unit, series)


def series_of(rows: Iterable[str], name: str, x: str, y: str, where: Mapping[str, str]) -> Series:
    """Return the lines of a Markdown table with a head, by columns; only rows that are as ``where``."""
    head, *others = [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows if row]
    head = [cell.strip() for cell in head]
    found: dict[str, list[tuple[float, float]]] = {}
    for cells in others[1:]:
        row = dict(zip(head, cells, strict=True))
        if all(row[key] == wanted for key, wanted in where.items()):
            found.setdefault(row[name] if name else y, []).append((_number(row[x]), _number(row[y])))
    return {line: sorted(points) for line, points in found.items() if len(points) > 1}


def chart(title: str, x: str, y: str, series: Series) -> str:
    """Return a chart of lines."""
    points = [point for line in series.values() for point in line]
    low_x, high_x = min(at for at, _ in points), max(at for at, _ in points)
    low_y = 10 ** math.floor(math.log10(min(at for _, at in points)))
    high_y = 10 ** math.ceil(math.log10(max(at for _, at in points)))

    def place(at: float, value: float) -> tuple[float, float]:
        share_x = math.log(at / low_x) / math.log(high_x / low_x)
        share_y = math.log(value / low_y) / math.log(high_y / low_y)
        return (
            round(_LEFT + share_x * (_WIDTH - _LEFT - _RIGHT), 1),
            round(_HEIGHT - _BOTTOM - share_y * (_HEIGHT - _TOP - _BOTTOM), 1),
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}">',
        f'<g font-family="sans-serif" font-size="11"><title>{title}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="16" font-size="13">{title}</text>',
    ]
    value = low_y
    while value <= high_y * 1.01:
        _, height = place(low_x, value)
        parts.append(
            f'<path d="M{_LEFT} {height}H{_WIDTH - _RIGHT}" stroke="#ddd"/>'
            f'<text x="{_LEFT - 6}" y="{height + 4}" text-anchor="end">{value:g} {y}</text>'
        )
        value *= 10
    for at in sorted({at for at, _ in points}):
        across, _ = place(at, low_y)
        parts.append(f'<text x="{across}" y="{_HEIGHT - 22}" text-anchor="middle">{at:,.0f}</text>')
    parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 6}">{x}</text>')
    (first_x, first_y), *_ = max(series.values(), key=lambda line: line[0][1])
    last_x = min(high_x, first_x * high_y / first_y)
    ends = place(first_x, first_y), place(last_x, first_y * last_x / first_x)
    (left, top), (right, bottom) = ends
    parts.append(f'<path d="M{left} {top}L{right} {bottom}" stroke="#999" stroke-dasharray="3 3"/>')
    for number, (name, line) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        placed = [place(*point) for point in line]
        path = "L".join(f"{across} {height}" for across, height in placed)
        parts.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{across}" cy="{height}" r="3" fill="{colour}"/>' for across, height in placed]
        key = _TOP + 14 * number
        parts.append(f'<text x="{_WIDTH - _RIGHT + 12}" y="{key + 4}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</g></svg>"]) + "\n"


def _number(text: str) -> float:
    """Return the number of a cell, without its unit."""
    return float(text.split(" ", maxsplit=1)[0].replace(",", ""))

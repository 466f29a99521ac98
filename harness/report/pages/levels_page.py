"""The page of `ep-harness levels`: one self-contained HTML file in the style of the report."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from harness.core.records.graph_levels import GRAPH_CHANGE_KINDS, ORIGINS, Levels
from harness.report.pages.page import Pages, write_pages

_PAGE = "levels.html"

_GIVEN = -1  # the column of the unchanged model


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of the table of operators.

    Attributes:
        count: Nodes; None without a graph.
        delta: Difference from the step of comparison, such as ``+2``; empty without a difference.
    """

    count: int | None
    delta: str = ""


class LevelsRow(msgspec.Struct, frozen=True, kw_only=True):
    """An operator with its figures, the model's first."""

    label: str
    figures: tuple[Figure, ...]


def write_levels_page(found: Levels, out: Path) -> Path:
    """Write ``out/levels.html``, and return its path.

    Raises:
        UsageError: It cannot be written.
    """
    write_pages(out, [(_PAGE, levels_page(found))])
    return out / _PAGE


def levels_page(found: Levels) -> str:
    """Render the page; texts of models and providers are escaped and made visible."""
    return Pages().make(
        _PAGE,
        scripts=(),
        found=found,
        groups=list(_groups(found)),
        total=_row("all nodes", found, found.nodes, tuple(step.nodes for step in found.steps)),
        kinds=GRAPH_CHANGE_KINDS,
    )


def _groups(found: Levels) -> Iterator[tuple[str, list[LevelsRow]]]:
    """Yield the operators of each origin: a heading, and their rows."""
    for origin, rows in groupby(found.operators, key=lambda row: row.operator.origin):
        yield ORIGINS[origin], [_row(row.operator.label, found, row.in_model, row.counts) for row in rows]


def _row(label: str, found: Levels, in_model: int, counts: tuple[int | None, ...]) -> LevelsRow:
    columns = {step.name: number for number, step in enumerate(found.steps)}
    figures = [Figure(count=in_model)]
    for step, count in zip(found.steps, counts, strict=True):
        base = columns.get(step.against, _GIVEN)
        before = in_model if base == _GIVEN else counts[base]
        change = 0 if count is None or before is None else count - before
        figures.append(Figure(count=count, delta=f"{change:+d}" if change else ""))
    return LevelsRow(label=label, figures=tuple(figures))

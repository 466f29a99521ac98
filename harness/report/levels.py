"""The page of `ep-harness levels`: one self-contained HTML file with the looks of the report."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import msgspec

from harness.core.errors import Problem, UsageError
from harness.core.levels import KINDS, ORIGINS, Levels, OperatorRow
from harness.report.page import Pages

PAGE = "levels.html"

_GIVEN = -1  # the column of the model as it is


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of the table of operators.

    Attributes:
        count: Nodes; None where there is no graph.
        delta: How that differs from what the step is held against, such as ``+2``; empty where it does not.
    """

    count: int | None
    delta: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An operator with its figures, that of the model first."""

    label: str
    figures: tuple[Figure, ...]


def write_levels_page(found: Levels, out: Path) -> Path:
    """Write the page into a folder, which is created where it does not exist.

    Returns:
        The page, ``out/levels.html``.

    Raises:
        UsageError: The folder cannot be written.
    """
    page = out / PAGE
    try:
        out.mkdir(parents=True, exist_ok=True)
        # The page states a hash of its own style, so its line ends must not be translated.
        page.write_text(levels_page(found), encoding="utf-8", newline="\n")
    except OSError as error:
        what = f"the page cannot be written: {error.strerror or error}"
        raise UsageError(Problem(where=str(page), what=what, hint="choose another --out")) from error
    return page


def levels_page(found: Levels) -> str:
    """Render the page; whatever a model or a provider said in it is escaped and made visible."""
    return Pages().make(
        PAGE,
        scripts=(),
        found=found,
        groups=list(_groups(found)),
        total=_row("all nodes", found, found.nodes, tuple(step.nodes for step in found.steps)),
        kinds=KINDS,
    )


def _groups(found: Levels) -> Iterator[tuple[str, list[Row]]]:
    """Operators by who defines them: a heading, and their rows."""
    for origin, rows in groupby(found.operators, key=lambda row: row.operator.origin):
        yield ORIGINS[origin], [_operator(row, found) for row in rows]


def _operator(row: OperatorRow, found: Levels) -> Row:
    return _row(row.operator.label, found, row.in_model, row.counts)


def _row(label: str, found: Levels, in_model: int, counts: tuple[int | None, ...]) -> Row:
    columns = {step.name: number for number, step in enumerate(found.steps)}
    figures = [Figure(count=in_model)]
    for step, count in zip(found.steps, counts, strict=True):
        base = columns.get(step.against, _GIVEN)
        before = in_model if base == _GIVEN else counts[base]
        change = 0 if count is None or before is None else count - before
        figures.append(Figure(count=count, delta=f"{change:+d}" if change else ""))
    return Row(label=label, figures=tuple(figures))

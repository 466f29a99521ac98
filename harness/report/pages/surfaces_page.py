"""The page *API*: what applications do with a provider besides one run, by target."""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from harness.core.records.scenario import PLAIN, SCENARIOS
from harness.report.cells.column import Column
from harness.report.pages.selection_grid import SelectionGrid, selection_grid
from harness.report.pages.surfaces import SurfaceAnswer, SurfaceRow, surface_rows
from harness.report.runs.compiled_grid import CompiledGrid, compiled_grid
from harness.report.view import Report
from harness.report.words.tone import SYMBOLS

_TONES = {
    SurfaceAnswer.WRONG: "failed",
    SurfaceAnswer.OK: "passed",
    SurfaceAnswer.UNTESTED: "untested",
    SurfaceAnswer.REFUSED: "unsupported",
    SurfaceAnswer.NOT_THERE: "excluded",
    SurfaceAnswer.NOT_TRIED: "skipped",
}


class SurfaceLine(msgspec.Struct, frozen=True, kw_only=True):
    """One surface.

    Attributes:
        surface: The part of onnxruntime's API.
        meaning: The scenario in one line; empty if this version does not know it.
        rows: For each column; null where it has no cell in the scenario.
    """

    scenario: str
    surface: str
    meaning: str
    rows: tuple[SurfaceRow | None, ...]


class SurfacesPage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page.

    Attributes:
        told: Every row with a sentence to read, the wrong ones first.
        policies: What selection policies choose; null if no run tried one.
        compiled: Which compiled models load, by versions; null if none was made.
    """

    columns: tuple[Column, ...]
    lines: tuple[SurfaceLine, ...]
    told: tuple[SurfaceRow, ...]
    policies: SelectionGrid | None
    compiled: CompiledGrid | None

    tones: ClassVar = _TONES
    symbols: ClassVar = {answer: SYMBOLS[tone] for answer, tone in _TONES.items()}


def surfaces_view(report: Report) -> Iterator[SurfacesPage]:
    """Yield the view, if the report has a cell in a scenario other than a plain run, or tried policies."""
    rows = surface_rows(record for _, record in report.run.records)
    policies = selection_grid(report)
    if policies is None and not any(row.scenario != PLAIN for row in rows):
        return
    columns = tuple(dict.fromkeys(row.column for row in rows))
    by_place = {(row.scenario, row.column): row for row in rows}
    yield SurfacesPage(
        columns=columns,
        lines=tuple(
            SurfaceLine(
                scenario=name,
                surface=surface,
                meaning=SCENARIOS[name].meaning if name in SCENARIOS else "",
                rows=tuple(by_place.get((name, column)) for column in columns),
            )
            for name, surface in dict.fromkeys((row.scenario, row.surface) for row in rows)
        ),
        told=tuple(sorted(rows, key=lambda row: list(SurfaceAnswer).index(row.answer))),
        policies=policies,
        compiled=compiled_grid(report.run.compiled),
    )

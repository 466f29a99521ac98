"""The page *Nights*: the runs of a history side by side."""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from harness.report.history.nights import Nights
from harness.report.view import Report


class NightsPage(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a matrix, and how many rows of each kind are listed."""

    nights: Nights

    shown_cells: ClassVar = 200
    shown_nights: ClassVar = 60
    shown_flakes: ClassVar = 50


def nights_view(report: Report) -> Iterator[NightsPage]:
    """Yield the view, if the report has a history with a run of its matrix."""
    if report.nights is not None and report.nights.nights:
        yield NightsPage(nights=report.nights)

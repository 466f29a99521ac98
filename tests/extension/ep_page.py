"""The page *Slow cells* of a report."""

from collections.abc import Iterator
from pathlib import Path

from harness.core.records.record import Record
from harness.report.site import SitePage
from harness.report.view import Report


def slow_cells(report: Report) -> Iterator[list[Record]]:
    records = sorted((record for _, record in report.run.records), key=lambda one: -one.took_ms)
    if records:
        yield records[:20]


SLOW = SitePage(
    title="Slow cells",
    stem="slow",
    template="page_slow.html",
    views=slow_cells,
    templates=Path(__file__).parent,
)

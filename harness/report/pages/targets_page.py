"""The page *Targets*: a bar and all counts of each column, if they are too many for the overview."""

from collections.abc import Iterator

from harness.report.pages.heat import Heat, heat_of
from harness.report.view import Report


def targets_view(report: Report) -> Iterator[Heat]:
    """Return the view, if the overview shows one table in place of the bars."""
    if heat := heat_of(report):
        yield heat

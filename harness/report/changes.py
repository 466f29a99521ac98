"""The page *Changes*: what changed since an older run."""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from harness.report.diff import Diff
from harness.report.view import Report


class ChangesView(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page; the first ``shown`` changes of each kind are listed."""

    diff: Diff

    shown: ClassVar = 500


def changes_view(report: Report) -> Iterator[ChangesView]:
    """Yield the view, if the report has a baseline."""
    if report.changes is not None:
        yield ChangesView(diff=report.changes)

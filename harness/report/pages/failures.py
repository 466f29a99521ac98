"""The page *Failures*: operators whose models fail, beside the groups of the report.

If many models of one operator fail, the operator is the likely cause.
"""

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

import msgspec

from harness.core.records.verdict import Family
from harness.report.cells.report_cell import SHOWN_RETRIES, ReportCell
from harness.report.pages.operator_pages import is_tried, only_operator
from harness.report.view import Report
from harness.report.words.figures import Share
from harness.report.words.tone import spoken


class FailingOperator(msgspec.Struct, frozen=True, kw_only=True):
    """An operator whose models fail, over all columns.

    Attributes:
        failed: Number of failed cells, among the tried cells of models with only this operator.
        columns: ``(label, failed cells)``, the most concerned column first.
        kinds: ``(verdict, count)``, the most frequent first.
    """

    name: str
    failed: Share
    columns: tuple[tuple[str, int], ...]
    kinds: tuple[tuple[str, int], ...]
    reason: str


class Failures(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page; the table of operators and the number of rows that are listed."""

    operators: tuple[FailingOperator, ...]

    shown_operators: ClassVar = 300
    shown_conflicts: ClassVar = 200
    shown_flaky: ClassVar = 200
    shown_retries: ClassVar = SHOWN_RETRIES


def failures_view(report: Report) -> Iterator[Failures]:
    """Yield the view; operators with the most failed cells come first."""
    failures: dict[str, list[ReportCell]] = {}
    tried: Counter[str] = Counter()
    for cell in report.cells:
        if (name := only_operator(cell.record)) and is_tried(cell.record):
            tried[name] += 1
            if cell.record.verdict.family is Family.FAILED:
                failures.setdefault(name, []).append(cell)
    found = [
        FailingOperator(
            name=name,
            failed=Share(len(failed), tried[name], not report.complete),
            columns=tuple(Counter(cell.column.label for cell in failed).most_common()),
            kinds=tuple(Counter(spoken(cell.record.verdict) for cell in failed).most_common()),
            reason=failed[0].record.reason,
        )
        for name, failed in failures.items()
    ]
    found.sort(key=lambda operator: (-operator.failed.count, operator.name))
    yield Failures(operators=tuple(found))

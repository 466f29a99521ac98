"""Failures by operator: where many models of one operator fail, the operator is the likely cause."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from harness.core.verdict import Family
from harness.report.cell import ReportCell
from harness.report.figures import Share
from harness.report.operators import OperatorTable, only_operator
from harness.report.tone import spoken


class FailingOperator(msgspec.Struct, frozen=True, kw_only=True):
    """An operator whose models fail, over all lanes.

    Attributes:
        name: Its type.
        failed: Failed cells, of the tried cells of models of this operator alone.
        lanes: ``(label, failed cells)`` for each lane concerned, the most concerned first.
        kinds: ``(verdict, spoken; count)``, the most frequent first.
        reason: That of the first failure.
    """

    name: str
    failed: Share
    lanes: tuple[tuple[str, int], ...]
    kinds: tuple[tuple[str, int], ...]
    reason: str


def failing_operators(
    table: OperatorTable, cells: Iterable[ReportCell], *, complete: bool
) -> tuple[FailingOperator, ...]:
    """The operators of the table that have failures, those with the most failed cells first."""
    failures: dict[str, list[ReportCell]] = {}
    for cell in cells:
        if cell.record.verdict.family is Family.FAILED and (name := only_operator(cell.record)):
            failures.setdefault(name, []).append(cell)
    tried: Counter[str] = Counter()
    for lane in table.lanes:
        for operator in lane.operators:
            tried[operator.name] += operator.passed.total
    found = [
        FailingOperator(
            name=name,
            failed=Share(len(failures[name]), tried[name], not complete),
            lanes=tuple(Counter(cell.lane.label for cell in failures[name]).most_common()),
            kinds=tuple(
                (spoken(verdict), count)
                for verdict, count in Counter(cell.record.verdict for cell in failures[name]).most_common()
            ),
            reason=failures[name][0].record.reason,
        )
        for name in table.names
        if name in failures
    ]
    return tuple(sorted(found, key=lambda operator: (-operator.failed.count, operator.name)))

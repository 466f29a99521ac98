"""The answers to tasks by column: how many equal the golden's, and in which cells some differ."""

from collections.abc import Iterator

import msgspec

from harness.core.agreement.agreement import Agreement, agreement_words, task_name
from harness.core.records.verdict import Family
from harness.report.cells.column import Column
from harness.report.cells.report_cell import ReportCell
from harness.report.view import Report

SHOWN = 8
"""Number of cells that are named in a row: those with the most differing answers."""


class ColumnAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """The answers to one task in one column, over the cells that pass.

    Attributes:
        task: The task in words.
        cells: Cells with a figure.
        others: Answers that disagree.
        unknown: Cells without a figure because it failed.
        differing: The cells with such answers, the worst first, at most ``SHOWN``, each with its figure.
        more: Number of such cells that are left out.
    """

    column: Column
    task: str
    cells: int
    same: float
    of: int
    tied: int
    others: float
    unknown: int
    differing: tuple[tuple[ReportCell, str], ...]
    more: int

    @property
    def percent(self) -> str:
        """Return the share that does not disagree, rounded down, so that 100% means all."""
        part = 1000 * (self.same + self.tied) / self.of if self.of else 0.0
        return f"{int(part) / 10:g}%" if self.of else "unknown"


def column_agreements(report: Report) -> Iterator[ColumnAgreement]:
    """Yield a row for each column and task, in the order of the columns."""
    found: dict[tuple[Column, str], list[tuple[ReportCell, Agreement]]] = {}
    for cell in report.cells:
        if cell.record.verdict.family is Family.PASSED:
            for one in cell.record.agreement:
                found.setdefault((cell.column, one.kind), []).append((cell, one))
    order = {column: index for index, column in enumerate(report.columns)}
    for (column, kind), its in sorted(found.items(), key=lambda pair: order[pair[0][0]]):
        yield _row(column, kind, its)


def _row(column: Column, kind: str, its: list[tuple[ReportCell, Agreement]]) -> ColumnAgreement:
    counted = [one for _, one in its if one.of]
    differing = [(cell, one) for cell, one in its if one.others or one.failed]
    differing.sort(key=lambda pair: -1.0 if pair[1].share is None else pair[1].share)
    return ColumnAgreement(
        column=column,
        task=task_name(kind),
        cells=len(counted),
        same=sum(one.same for one in counted),
        of=sum(one.of for one in counted),
        tied=sum(one.tied for one in counted),
        others=sum(one.others for one in counted),
        unknown=sum(bool(one.failed) for _, one in its),
        differing=tuple((cell, agreement_words(one)) for cell, one in differing[:SHOWN]),
        more=max(0, len(differing) - SHOWN),
    )

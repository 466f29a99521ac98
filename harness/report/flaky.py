"""Cells that gave another verdict when they were tried again. Their first verdict is the one that counts."""

from collections.abc import Iterable

import msgspec

from harness.core.verdict import Verdict
from harness.report.cell import ReportCell

SHOWN_FLAKY = 200
"""How many flaky cells are listed by name."""

SHOWN_RETRIES = 10
"""How many retries of one cell are named."""


class FlakyCell(msgspec.Struct, frozen=True, kw_only=True):
    """One flaky cell.

    Attributes:
        cell: Its id.
        href: Where its details stand in the site; empty where they are not shown.
        verdict: The first verdict, which counts.
        retries: What the first ``SHOWN_RETRIES`` further tries gave.
        left_out: Further tries that are not listed.
    """

    cell: str
    href: str
    verdict: Verdict
    retries: tuple[Verdict, ...]
    left_out: int


class FlakyCells(msgspec.Struct, frozen=True, kw_only=True):
    """The flaky cells of a run.

    Attributes:
        count: How many there are.
        shown: The first ``SHOWN_FLAKY`` of them.
    """

    count: int
    shown: tuple[FlakyCell, ...]

    @property
    def left_out(self) -> int:
        """Cells that are not listed by name."""
        return self.count - len(self.shown)


def flaky_cells(cells: Iterable[ReportCell]) -> FlakyCells:
    """Pick the flaky cells, in the order given."""
    found = [cell for cell in cells if cell.record.flaky]
    return FlakyCells(
        count=len(found),
        shown=tuple(
            FlakyCell(
                cell=cell.record.cell,
                href=cell.href,
                verdict=cell.record.verdict,
                retries=cell.record.retries[:SHOWN_RETRIES],
                left_out=max(0, len(cell.record.retries) - SHOWN_RETRIES),
            )
            for cell in found[:SHOWN_FLAKY]
        ),
    )

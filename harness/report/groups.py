"""Cells that ended the same way for the same reason."""

import re
from collections.abc import Iterable

import msgspec

from harness.core.verdict import Verdict
from harness.report.cell import ReportCell
from harness.report.command import command_of
from harness.report.tone import tone

SHOWN_CELLS = 60
"""How many cells of one group are listed by name."""

SHOWN_GROUPS = 100
"""How many groups are listed; reasons that a hostile or chatty provider varies must not fill the page."""

# Numbers, and what stands in quotes, differ from cell to cell where the reason is the same.
_VARYING = re.compile(
    r"0x[0-9a-fA-F]+|'[^']{0,200}'|\"[^\"]{0,200}\"|\([\d, ]*\)|[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?%?"
)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Cells with one verdict and one reason.

    Attributes:
        verdict: Their verdict.
        tone: How the verdict looks.
        cause: Their cause, such as a signal; may be empty.
        reason: The reason of the first of them, as an example where figures vary.
        varies: True where the reasons differ in figures or names.
        count: How many cells there are.
        lanes: ``(label, count)`` for each lane concerned.
        cells: The first ``SHOWN_CELLS`` of them.
        command: Shell command that runs the first of them again.
    """

    verdict: Verdict
    tone: str
    cause: str
    reason: str
    varies: bool
    count: int
    lanes: tuple[tuple[str, int], ...]
    cells: tuple[ReportCell, ...]
    command: str

    @property
    def left_out(self) -> int:
        """Cells that are not listed by name."""
        return self.count - len(self.cells)


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """Groups, the largest first.

    Attributes:
        count: Cells in all groups.
        shown: The first ``SHOWN_GROUPS`` groups.
        more: Groups that are not shown.
    """

    count: int
    shown: tuple[Group, ...]
    more: int


def grouped(cells: Iterable[ReportCell], matrix_path: str) -> Groups:
    """Group cells by verdict, cause and reason, the largest group first."""
    found: dict[tuple[str, str, str], list[ReportCell]] = {}
    for cell in cells:
        record = cell.record
        key = (record.verdict.value, record.cause, _VARYING.sub("#", record.reason))
        found.setdefault(key, []).append(cell)
    by_size = sorted(found.values(), key=len, reverse=True)
    return Groups(
        count=sum(map(len, by_size)),
        shown=tuple(_group(members, matrix_path) for members in by_size[:SHOWN_GROUPS]),
        more=max(0, len(by_size) - SHOWN_GROUPS),
    )


def _group(members: list[ReportCell], matrix_path: str) -> Group:
    first = members[0].record
    lanes: dict[str, int] = {}
    for member in members:
        lanes[member.lane.label] = lanes.get(member.lane.label, 0) + 1
    return Group(
        verdict=first.verdict,
        tone=tone(first.verdict),
        cause=first.cause,
        reason=first.reason,
        varies=any(member.record.reason != first.reason for member in members),
        count=len(members),
        lanes=tuple(lanes.items()),
        cells=tuple(members[:SHOWN_CELLS]),
        command=command_of(first, matrix_path),
    )

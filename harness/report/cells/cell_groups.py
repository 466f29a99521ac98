"""Cells with the same verdict for the same reason."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from harness.core.findings.cause import plain_cause
from harness.core.findings.lacking import lack_of
from harness.core.records.verdict import Verdict
from harness.report.cells.report_cell import FaultLink, ReportCell, command_of
from harness.report.words.figures import first_of

SHOWN_CELLS = 60
"""How many cells of one group are listed."""

SHOWN_GROUPS = 100
"""How many groups are listed; a provider with endless different reasons must not fill the page."""

_SHOWN_MODELS = 4
"""How many models of one group are named while it is closed."""

SHOWN_FAULTS = 5
"""Number of faults of one group that are listed."""


class CellGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Cells of one provider with one verdict and one reason.

    Attributes:
        models: The first ``_SHOWN_MODELS`` different models, and the number of the others.
        reason: The reason of the first cell; an example if figures vary.
        varies: True if the reasons differ in figures or names.
        columns: ``(label, count)`` for each column concerned.
        known: The first ``SHOWN_FAULTS`` reasons for which the matrix expects its cells, each with its count.
        faults: The first ``SHOWN_FAULTS`` faults that explain its cells, and how many cells each explains.
    """

    verdict: Verdict
    cause: str
    reason: str
    varies: bool
    provider: str
    models: tuple[str, ...]
    count: int
    columns: tuple[tuple[str, int], ...]
    cells: tuple[ReportCell, ...]
    command: str
    faults: tuple[tuple[FaultLink, int], ...] = ()
    known: tuple[tuple[str, int], ...] = ()

    @property
    def left_out(self) -> int:
        """Cells that are not listed by name."""
        return self.count - len(self.cells)


class Groups(msgspec.Struct, frozen=True, kw_only=True):
    """Groups, the largest first."""

    count: int
    shown: tuple[CellGroup, ...]
    more: int


def grouped(cells: Iterable[ReportCell], matrix_path: str) -> Groups:
    """Group cells by provider, verdict, cause and reason, the largest group first."""
    found: dict[tuple[str, ...], list[ReportCell]] = {}
    for cell in cells:
        record = cell.record
        cause = lack_of(record) or plain_cause(record.reason)
        key = (record.provider, record.verdict.value, record.cause, cause)
        found.setdefault(key, []).append(cell)
    by_size = sorted(found.values(), key=len, reverse=True)
    return Groups(
        count=sum(map(len, by_size)),
        shown=tuple(_group(members, matrix_path) for members in by_size[:SHOWN_GROUPS]),
        more=max(0, len(by_size) - SHOWN_GROUPS),
    )


def _group(members: list[ReportCell], matrix_path: str) -> CellGroup:
    first = members[0].record
    faults = Counter(member.fault.href for member in members if member.fault is not None)
    links = {member.fault.href: member.fault for member in members if member.fault is not None}
    return CellGroup(
        verdict=first.verdict,
        cause=first.cause,
        reason=first.reason,
        varies=any(member.record.reason != first.reason for member in members),
        provider=first.provider,
        models=tuple(first_of(list(dict.fromkeys(member.record.model for member in members)), _SHOWN_MODELS)),
        count=len(members),
        columns=tuple(Counter(member.column.label for member in members).items()),
        cells=tuple(members[:SHOWN_CELLS]),
        command=command_of(first, matrix_path),
        known=tuple(Counter(member.known for member in members if member.known).most_common(SHOWN_FAULTS)),
        faults=tuple((links[href], count) for href, count in faults.most_common(SHOWN_FAULTS)),
    )

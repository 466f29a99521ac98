"""The few causes that explain most failed cells: faults that triage found, else cells that fail alike."""

from collections import Counter
from collections.abc import Sequence

import msgspec

from harness.core.findings.cause import plain_cause
from harness.core.findings.lacking import lack_of
from harness.core.records.verdict import WRONG_NUMBERS, Family, Verdict
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.cells.report_cell import ReportCell
from harness.report.pages.operator_pages import only_operator
from harness.report.view import Report
from harness.report.words.figures import first_of
from harness.report.words.tone import spoken

_SHOWN_CAUSES = 5
_SHOWN_UNEXPECTED = 2
_SHOWN_NAMES = 3


class MainCause(msgspec.Struct, frozen=True, kw_only=True):
    """Failed cells with one cause.

    Attributes:
        words: The sentence of the fault; the reason of the first cell if triage found none.
        key: What its cells have in common, in one text; the same in every run.
        first_cell: The id of one of them.
        count: Failed cells that it explains.
        unexpected: Those of them in which the matrix expects no failure.
        targets: The first targets concerned, each with its cells, and the number of the others.
        models: The first models concerned, and the number of the others.
        href: The page with all about it.
    """

    verdict: Verdict
    words: str
    key: str
    first_cell: str
    count: int
    unexpected: int
    targets: tuple[str, ...]
    models: tuple[str, ...]
    href: str


class MainCauses(msgspec.Struct, frozen=True, kw_only=True):
    """The most frequent causes; before them the most frequent ones that the matrix does not expect.

    Attributes:
        causes: Number of all causes.
        explained: Failed cells that the shown ones explain.
        triaged: Whether triage found any of them.
    """

    shown: tuple[MainCause, ...]
    causes: int
    failed: int
    explained: int
    triaged: bool


def main_causes(report: Report) -> MainCauses:
    """Return the causes of the failed cells of a report, in the order in which they are shown."""
    causes = all_causes(report)
    first = [one for one in causes if one.unexpected][:_SHOWN_UNEXPECTED]
    shown = (*first, *[one for one in causes if one not in first][: _SHOWN_CAUSES - len(first)])
    return MainCauses(
        shown=shown,
        causes=len(causes),
        failed=sum(one.count for one in causes),
        explained=sum(one.count for one in shown),
        triaged=bool(report.faults),
    )


def all_causes(report: Report) -> list[MainCause]:
    """Return every cause, the most frequent first."""
    found: dict[tuple[str, ...], list[ReportCell]] = {}
    for cell in report.cells:
        if cell.record.verdict.family is Family.FAILED:
            found.setdefault(_key(cell), []).append(cell)
    return sorted(map(_cause, found.values()), key=lambda one: -one.count)


def _key(cell: ReportCell) -> tuple[str, ...]:
    record = cell.record
    if cell.fault is not None:
        return (cell.fault.id,)
    # Figures of wrong numbers differ from model to model; the operator is what they have in common.
    operator = only_operator(record) if record.verdict in WRONG_NUMBERS else ""
    cause = operator or lack_of(record) or plain_cause(record.reason)
    return (record.provider, record.verdict.value, record.cause, cause)


def _cause(cells: Sequence[ReportCell]) -> MainCause:
    first = cells[0]
    record = first.record
    unexpected = sum(not cell.record.expected for cell in cells)
    targets = Counter(cell.column.label for cell in cells).most_common()
    models = dict.fromkeys(visible(cell.record.model) for cell in cells)
    anchor = "unexpected" if unexpected else "expected"
    operator = only_operator(record) if record.verdict in WRONG_NUMBERS else ""
    words = (f"{operator}: " if operator else "") + (record.reason or record.verdict.meaning)
    return MainCause(
        verdict=record.verdict,
        words=one_line(visible(words if first.fault is None else first.fault.sentence), 160),
        key="\n".join(_key(first)),
        first_cell=visible(record.cell),
        count=len(cells),
        unexpected=unexpected,
        targets=tuple(first_of([f"{visible(label)} {count:,}" for label, count in targets], _SHOWN_NAMES)),
        models=tuple(first_of(list(models), _SHOWN_NAMES)),
        href=f"failures.html#{anchor}" if first.fault is None else first.fault.href,
    )


def frequent_failures(cells: Sequence[ReportCell]) -> str:
    """Return the verdicts of failed cells in words, the most frequent first: ``error 114, crash 2``."""
    kinds = Counter(spoken(cell.record.verdict) for cell in cells).most_common()
    return ", ".join(first_of([f"{kind} {count:,}" for kind, count in kinds], _SHOWN_NAMES))

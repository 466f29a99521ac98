"""One sentence for each target, which a reader who knows nothing about the harness understands."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from harness.core.records.verdict import Family, Verdict
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.cells.column import Column
from harness.report.cells.column_counts import ColumnSummary
from harness.report.cells.column_precision import ColumnPrecision
from harness.report.cells.report_cell import ReportCell
from harness.report.pages.main_causes import frequent_failures
from harness.report.runs.target_identity import NOTHING_KNOWN, Identity
from harness.report.view import Report
from harness.report.words.figures import Share
from harness.report.words.tone import WEAK

_FULL_PRECISION = "about float32"
_SHOWN_TARGETS = 12


class TargetSentence(msgspec.Struct, frozen=True, kw_only=True):
    """What a target did, in words.

    Attributes:
        name: The provider with its version; also its axes if there are any.
        tone: How its mark looks.
        right: ``computes 1,328 of 1,811 cells right (73.3%)``.
        wrong: What fails, empty if nothing does.
        rest: Weak goldens, what it left to the CPU provider or refused, its precision, its simulator; may be
            empty.
    """

    column: Column
    name: str
    tone: str
    right: str
    wrong: str
    rest: str


class TargetSentences(msgspec.Struct, frozen=True, kw_only=True):
    """The sentences that fit on the first page.

    Attributes:
        more: Number of the others.
        scenarios: Whether targets also have cells in scenarios, of which the page *API* tells.
    """

    shown: tuple[TargetSentence, ...]
    more: int
    scenarios: bool


def target_sentences(report: Report) -> TargetSentences:
    """Return a sentence for each column of the report, in its order.

    A scenario of a column that also has plain runs gets none.
    """
    known = {each.target: each for each in reversed(report.identities)}
    failed: dict[Column, list[ReportCell]] = {column: [] for column in report.columns}
    for cell in report.cells:
        if cell.record.verdict.family is Family.FAILED:
            failed[cell.column].append(cell)
    every = list(zip(report.summary, report.precision, strict=True))
    columns = set(report.columns)
    rows = [
        (row, precision)
        for row, precision in every
        if row.column.without_scenario == row.column or row.column.without_scenario not in columns
    ]
    return TargetSentences(
        shown=tuple(
            _sentence(report, row, precision, known.get(row.column.target, NOTHING_KNOWN), failed[row.column])
            for row, precision in rows[:_SHOWN_TARGETS]
        ),
        more=max(0, len(rows) - _SHOWN_TARGETS),
        scenarios=len(rows) < len(every),
    )


def _sentence(
    report: Report,
    row: ColumnSummary,
    precision: ColumnPrecision,
    what: Identity,
    failed: Sequence[ReportCell],
) -> TargetSentence:
    column = row.column
    provider = what.provider or column.provider.removesuffix("ExecutionProvider")
    name = " ".join(filter(None, [provider, what.ep_version, column.setting and f"with {column.setting}"]))
    if not row.tried:
        return TargetSentence(
            column=column, name=name, tone="skipped", right=_untried(report, row), wrong="", rest=""
        )
    weak = row.weak.count
    right = row.exercised.count - weak
    share = Share(right, row.tried, not report.complete)
    return TargetSentence(
        column=column,
        name=name,
        tone="failed" if failed else "passed" if right else WEAK if weak else "untested",
        right=f"computes {right:,} of {plural(row.tried, 'cell')} right ({share.percent})",
        wrong=f"fails {len(failed):,}: {frequent_failures(failed)}" if failed else "",
        rest=" ".join(f"{words}." for words in _rest(report, row, precision)),
    )


def _rest(report: Report, row: ColumnSummary, precision: ColumnPrecision) -> Iterator[str]:
    if weak := row.weak.count:
        yield f"For {weak:,} more a wrong answer would pass, too"
    by_verdict = Counter(record.verdict for record in report.by_column[row.column])
    if fallback := by_verdict[Verdict.FALLBACK]:
        yield f"The CPU provider computed {fallback:,} in its place"
    if refused := row.unsupported.count:
        yield f"It refuses {refused:,}"
    if row.column.precision == "fp32" and precision.reading not in ("", _FULL_PRECISION):
        reading = precision.reading
        mixed = reading.startswith("mixed: ")
        yield (
            f"Its precision is mixed, {reading.removeprefix('mixed: ')}"
            if mixed
            else (f"It computes in {reading.removeprefix('about ')}, by its errors")
        )
    if row.column.target in report.run.simulated:
        yield f"It is simulated: {report.run.simulated[row.column.target]}"


def _untried(report: Report, row: ColumnSummary) -> str:
    if row.missing:
        return f"was not run: {plural(row.missing, 'cell')} left"
    reasons = [each for each in report.unavailable if each.column == row.column and each.reason]
    if reasons:
        return f"could not be used: {one_line(visible(reasons[0].reason), 160)}"
    return f"was not tried: all of {plural(row.cells, 'cell')} are skipped or excluded"

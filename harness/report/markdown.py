"""The report as one Markdown document: for a README, a release, or the summary of a CI step."""

from collections.abc import Iterator

from harness.core.noise import DEFAULT_LIMITS
from harness.report.figures import alike, brief, multiple, plural, ratio
from harness.report.groups import Groups
from harness.report.markdown_text import code, table
from harness.report.rows import TargetRow
from harness.report.tone import spoken
from harness.report.view import Report

SHOWN = 25
"""How many groups, conflicts or reasons are listed, so that the document stays below GitHub's 1 MiB."""


SHOWN_LIKE = 4
"""How many of the precisions are named that the cells of a target behave like."""


def to_markdown(report: Report, targets: tuple[TargetRow, ...]) -> str:
    """Render the document; names and messages stand in code, where nothing is interpreted."""
    return "\n".join(_lines(report, targets)) + "\n"


def _lines(report: Report, targets: tuple[TargetRow, ...]) -> Iterator[str]:
    yield f"# Compatibility: {code(report.name)}"
    yield ""
    state = "Complete" if report.complete else f"**INCOMPLETE: {report.not_run:,} not run**"
    yield (
        f"{state}. {plural(report.planned, 'cell')} planned, {report.recorded:,} with a result, "
        f"{report.unexpected:,} unexpected, {report.flaky.count:,} flaky."
    )
    if report.first:
        yield ""
        yield f"First cell {code(report.first)}, last cell {code(report.last)}."
    if report.notices:
        yield ""
        yield from (f"* {code(notice)}" for notice in report.notices)
    yield from _targets(report, targets)
    yield from _noise(report)
    yield from _conversion(report)
    yield from _conflicts(report)
    yield from _groups("Unexpected failures", report.unexpected_failures)
    yield from _groups("Other unexpected verdicts", report.unexpected_others)
    yield from _unavailable(report)
    yield from _words(report)


def _targets(report: Report, targets: tuple[TargetRow, ...]) -> Iterator[str]:
    yield ""
    yield "## Targets"
    yield ""
    head = (
        "target", "by the EP", "in part", "weak golden", "untested", "unsupported", "failed",
        "tried", "excluded", "skipped", "not run", "cells", "suspicious",
    )  # fmt: skip
    rows = [
        (
            code(row.label),
            summary.by_ep.text,
            f"{row.passed_in_part:,}",
            f"{row.weak:,}",
            f"{row.untested:,}",
            f"{row.unsupported:,}",
            f"{row.failed:,}",
            f"{row.tried:,}",
            f"{row.excluded:,}",
            f"{row.skipped:,}",
            f"{row.not_run:,}",
            f"{row.cells:,}",
            f"{row.suspicious:,}",
        )
        for row, summary in zip(targets, report.summary, strict=True)
    ]
    yield from table(head, rows, figures=12)
    yield ""
    yield (
        "*By the EP*: right answers that the execution provider computed wholly, of the cells tried. "
        "*Weak golden*: right answers by the provider that could not be told from most wrong ones. "
        "*Untested*: right answers that the CPU gave in its place. "
        "*Suspicious*: cells that pass although their error is far above the rounding noise of their model. "
        "cells = tried + excluded + skipped + not run."
    )


def _noise(report: Report) -> Iterator[str]:
    if not report.noise:
        return
    yield ""
    yield "## Error against rounding noise"
    yield ""
    rows = [
        (
            code(row.lane.label),
            code(row.precision),
            ", ".join(f"{code(alike(name))} {count:,}" for name, count in row.like[:SHOWN_LIKE]),
            multiple(row.ratios.median),
            f"{ratio(row.ratios.q1)} to {ratio(row.ratios.q3)}",
            row.above_share.text,
        )
        for row in report.noise
    ]
    yield from table(
        ("target", "noise of", "behaves like", "median", "quartiles", "beyond the limits"), rows, figures=3
    )
    yield ""
    yield (
        "Multiples of what rounding alone does to the same model on the CPU: near 1 is healthy; the limits "
        f"are {brief(DEFAULT_LIMITS.rms)} over an output and {brief(DEFAULT_LIMITS.max)} in one element."
    )


def _conversion(report: Report) -> Iterator[str]:
    if not report.conversion:
        return
    yield ""
    yield "## Cost of a lower precision"
    yield ""
    rows = [
        (
            code(row.lane.label),
            brief(row.error),
            brief(row.cpu_error),
            brief(row.ratios.median if row.ratios else None),
            brief(row.ratios.most if row.ratios else None),
            f"{row.cells:,}",
        )
        for row in report.conversion
    ]
    head = ("target", "error, median", "on the CPU, median", "ratio, median", "largest", "cells")
    yield from table(head, rows, figures=5)
    yield ""
    yield "Errors of converted models against the goldens of the models as they came, relative."


def _conflicts(report: Report) -> Iterator[str]:
    if not report.conflicts:
        return
    yield ""
    yield f"## Conflicts: {plural(len(report.conflicts), 'cell')}"
    yield ""
    rows = [
        (
            code(conflict.cell),
            ", ".join(f"{code(run)}: {spoken(verdict)}" for run, verdict in conflict.verdicts),
        )
        for conflict in report.conflicts[:SHOWN]
    ]
    yield from table(("cell", "verdicts"), rows)
    yield from _more(len(report.conflicts) - SHOWN)


def _groups(title: str, groups: Groups) -> Iterator[str]:
    if not groups.count:
        return
    yield ""
    yield f"## {title}: {plural(groups.count, 'cell')}"
    yield ""
    rows = [
        (
            spoken(group.verdict) + (f" ({code(group.cause)})" if group.cause else ""),
            code(group.reason),
            code(group.cells[0].record.cell),
            f"{group.count:,}",
        )
        for group in groups.shown[:SHOWN]
    ]
    yield from table(("verdict", "reason", "first cell", "cells"), rows, figures=1)
    yield from _more(len(groups.shown) + groups.more - SHOWN, "groups")


def _unavailable(report: Report) -> Iterator[str]:
    if not report.unavailable:
        return
    yield ""
    yield "## Unavailable"
    yield ""
    rows = [
        (code(each.lane.label), code(each.cause), code(each.reason), f"{each.count:,}")
        for each in report.unavailable[:SHOWN]
    ]
    yield from table(("target", "cause", "reason", "cells"), rows, figures=1)
    yield from _more(len(report.unavailable) - SHOWN)


def _words(report: Report) -> Iterator[str]:
    yield ""
    yield "## Verdicts"
    yield ""
    rows = [(spoken(verdict), verdict.meaning, f"{count:,}") for verdict, count in report.verdicts]
    yield from table(("verdict", "meaning", "cells"), rows, figures=1)


def _more(count: int, what: str = "") -> Iterator[str]:
    if count > 0:
        yield ""
        yield f"and {count:,} more {what}".rstrip()

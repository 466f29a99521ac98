"""The report as one Markdown document: for a README, a release, or the summary of a CI step."""

import math
from collections.abc import Iterator, Sequence

from harness.core.comparison.noise_limits import DEFAULT_LIMITS
from harness.core.records.generation_figures import GenerationFigures
from harness.core.records.verdict import Family
from harness.core.text.counted import plural
from harness.report.cells.cell_groups import Groups
from harness.report.cells.failing_ways import decisive, first_wrong, largest_kl
from harness.report.formats.rows import TargetRow
from harness.report.runs.target_identity import NOTHING_KNOWN
from harness.report.view import Report
from harness.report.words.figures import alike, brief, multiple, percentage, ratio
from harness.report.words.inert import code, heading, linked, markdown_table
from harness.report.words.tone import spoken

_SHOWN = 25
"""How many groups, conflicts or reasons are listed, so that the document stays below GitHub's 1 MiB."""

_SHOWN_LIKE = 4
"""Largest number of listed precisions that the cells of a target behave like."""


_COUNTS = (
    *("passed_in_part", "weak", "untested", "unsupported", "failed", "tried"),
    *("excluded", "skipped", "not_run", "cells", "approximate", "unconfirmed"),
)
"""Fields of a row of the targets, in the order of the columns."""


def to_markdown(report: Report, targets: tuple[TargetRow, ...]) -> str:
    """Render the document; names and messages are code, which is not interpreted."""
    return "\n".join(_lines(report, targets)) + "\n"


def _lines(report: Report, targets: tuple[TargetRow, ...]) -> Iterator[str]:
    yield f"# Compatibility: {code(report.name)}"
    yield ""
    failed = sum(row.failed for row in targets)
    state = "Complete" if report.complete else f"**INCOMPLETE: {report.not_run:,} not run**"
    ends = plural(len(report.unexpected_exits), "end") if report.unexpected_exits else ""
    yield (
        f"{state}. {plural(report.run.planned, 'cell')} planned, {report.recorded:,} with a result, "
        f"{failed:,} failed, {report.unexpected:,} unexpected, {len(report.flaky):,} flaky"
        + (f"; **{ends} of processes unexpected**." if ends else ".")
    )
    if report.first:
        yield ""
        yield f"First cell {code(report.first)}, last cell {code(report.last)}."
    if report.run.notices:
        yield ""
        yield from (f"* {code(notice)}" for notice in report.run.notices)
    yield from _what_ran(report)
    yield from _targets(report, targets)
    yield from _exits(report)
    yield from _noise(report)
    yield from _conversion(report)
    yield from _generation(report)
    yield from _conflicts(report)
    yield from _groups("Unexpected failures", report.unexpected_failures)
    yield from _groups("Other unexpected verdicts", report.unexpected_others)
    yield from _known(report.expected_failures)
    yield from _faults(report)
    yield from _unavailable(report)
    yield from heading("## Verdicts")
    rows = [(spoken(verdict), verdict.meaning, f"{count:,}") for verdict, count in report.verdicts]
    yield from markdown_table(("verdict", "meaning", "cells"), rows, figures=1)


def _what_ran(report: Report) -> Iterator[str]:
    if not report.identities:
        return
    yield from heading("## What ran")
    rows = [
        (
            code(each.target),
            code(each.onnxruntime),
            code(f"{each.provider} {each.ep_version}".strip()),
            code(each.library),
            code(each.driver),
            code(each.device),
            *(code(value) for _, value in each.facts.in_words()),
            f"**{each.hardware}**" if each.simulated else each.hardware,
        )
        for each in report.identities
    ]
    words = [word.lower() for word, _ in NOTHING_KNOWN.facts.in_words()]
    head = ("target", "onnxruntime", "provider", "library", "driver", "device", *words, "is")
    yield from _first(head, rows)


def _targets(report: Report, targets: tuple[TargetRow, ...]) -> Iterator[str]:
    yield from heading("## Targets")
    head = (
        "target", "by the EP", "in part", "weak golden", "untested", "unsupported", "failed",
        "tried", "excluded", "skipped", "not run", "cells", "approximate", "unconfirmed",
    )  # fmt: skip
    rows = [
        (_name(row), summary.by_ep.text, *(f"{getattr(row, name):,}" for name in _COUNTS))
        for row, summary in zip(targets, report.summary, strict=True)
    ]
    yield from markdown_table(head, rows, figures=13)
    yield ""
    yield (
        "*By the EP*: right answers wholly by the execution provider, of the cells tried. "
        "*Weak golden*: right answers by the provider that the golden cannot tell from wrong ones. "
        "*Untested*: right answers by the CPU in its place. "
        "*Approximate*: cells that pass by a precision or an error that the provider documents. "
        "*Unconfirmed*: cells that fail by values without a confirmation in float64. "
        "cells = tried + excluded + skipped + not run."
    )
    for target, by in report.run.simulated.items():
        yield ""
        yield f"*Simulated*: {code(target)} runs on {code(by)}, which is no accelerator."
    for lack in report.lacking:
        yield ""
        yield f"*Lacking*: {code(lack.target)}: {lack.words}."
    if unchecked := sum(row.unchecked for row in targets):
        yield ""
        cells = plural(unchecked, "cell")
        yield f"Not checked: {cells} without a second run or another check; `cells.csv` has the reasons."


def _name(row: TargetRow) -> str:
    return code(row.label) + (" (simulated)" if row.simulated else "")


def _exits(report: Report) -> Iterator[str]:
    shown = dict.fromkeys([*report.unexpected_exits, *report.unclean])
    if not shown:
        return
    yield from heading("## Ends of processes")
    rows = [
        (
            code(target),
            spoken(exits.verdict) if exits.verdict else "clean",
            code(exits.reason),
            "yes" if exits.expected else "**no**",
            f"{exits.unclean:,}",
            f"{exits.ended:,}",
        )
        for target, exits in shown
    ]
    yield from markdown_table(
        ("target", "verdict", "reason", "expected", "unclean", "ended"), rows, figures=2
    )


def _noise(report: Report) -> Iterator[str]:
    if not report.noise:
        return
    yield from heading("## Error against rounding noise")
    rows = [
        (
            code(row.column.label),
            code(row.precision),
            ", ".join(f"{code(alike(name))} {count:,}" for name, count in row.like[:_SHOWN_LIKE]),
            multiple(row.ratios.median),
            f"{ratio(row.ratios.q1)} to {ratio(row.ratios.q3)}",
            row.above_share.text,
        )
        for row in report.noise
    ]
    yield from markdown_table(
        ("target", "noise of", "behaves like", "median", "quartiles", "beyond the limits"), rows, figures=3
    )
    yield ""
    yield (
        "Multiples of the effect of rounding on the same model on the CPU. Near 1 is healthy; the limits "
        f"are {brief(DEFAULT_LIMITS.rms)} over an output and {brief(DEFAULT_LIMITS.max)} in one element."
    )


def _conversion(report: Report) -> Iterator[str]:
    if not report.conversion:
        return
    yield from heading("## Cost of a lower precision")
    rows = [
        (
            code(row.column.label),
            brief(row.error),
            brief(row.cpu_error),
            brief(row.ratios.median if row.ratios else None),
            brief(row.ratios.most if row.ratios else None),
            f"{row.cells:,}",
        )
        for row in report.conversion
    ]
    head = ("target", "error, median", "on the CPU, median", "ratio, median", "largest", "cells")
    yield from markdown_table(head, rows, figures=5)
    yield ""
    yield "Relative errors of converted models against the goldens of the models before conversion."


def _generation(report: Report) -> Iterator[str]:
    cells = [cell for cell in report.cells if cell.record.generation is not None]
    if not cells:
        return
    yield from heading(f"## Generated text: {plural(len(cells), 'cell')}")
    # Stable: cells keep their order within the failed and within the other ones.
    cells.sort(key=lambda cell: cell.record.verdict.family is not Family.FAILED)
    head = (
        "target", "model", "verdict", "way", "first bad cache",
        "first bad position", "top-1", "largest KL", "perplexity", "golden's",
    )  # fmt: skip
    rows = [
        (
            code(cell.column.label),
            code(f"{cell.record.suite}/{cell.record.model}"),
            spoken(cell.record.verdict),
            *_way(cell.record.generation),
        )
        for cell in cells
    ]
    yield from _first(head, rows, figures=5)
    yield ""
    yield (
        "The way that fails first or, if none fails, the one farthest from the golden. KL in nats; positions "
        "count from 0."
    )


def _way(generation: GenerationFigures | None) -> tuple[str, ...]:
    way = decisive(generation) if generation else None
    if way is None:
        return ("", "", *(brief(None),) * 5)
    found = largest_kl(way)
    return (
        code(way.way),
        code(first_wrong(way)),
        brief(None) if way.first_bad is None else f"{way.first_bad:,}",
        percentage(way.top1),
        brief(None) if found is None else brief(found[1]) if math.isfinite(found[1]) else "not finite",
        ratio(way.perplexity),
        ratio(way.golden_perplexity),
    )


def _conflicts(report: Report) -> Iterator[str]:
    if not report.run.conflicts:
        return
    yield from heading(f"## Conflicts: {plural(len(report.run.conflicts), 'cell')}")
    rows = [
        (
            code(conflict.cell),
            ", ".join(f"{code(run)}: {spoken(verdict)}" for run, verdict in conflict.verdicts),
        )
        for conflict in report.run.conflicts
    ]
    yield from _first(("cell", "verdicts"), rows)


def _groups(title: str, groups: Groups) -> Iterator[str]:
    if not groups.count:
        return
    yield from heading(f"## {title}: {plural(groups.count, 'cell')}")
    rows = [
        (
            spoken(group.verdict) + (f" ({code(group.cause)})" if group.cause else ""),
            code(group.reason),
            code(group.cells[0].record.cell),
            code(group.command),
            f"{group.count:,}",
        )
        for group in groups.shown
    ]
    head = ("verdict", "reason", "first cell", "again", "cells")
    yield from _first(head, rows, figures=1, more=groups.more, what="groups")


def _known(groups: Groups) -> Iterator[str]:
    if not groups.count:
        return
    yield from heading(f"## Known failures: {plural(groups.count, 'cell')}")
    rows = [
        (
            spoken(group.verdict) + (f" ({code(group.cause)})" if group.cause else ""),
            "; ".join(linked(reason) for reason, _ in group.known),
            code(group.cells[0].record.cell),
            code(group.command),
            f"{group.count:,}",
        )
        for group in groups.shown
    ]
    head = ("verdict", "why the matrix expects it", "first cell", "again", "cells")
    yield from _first(head, rows, figures=1, more=groups.more, what="groups")


def _faults(report: Report) -> Iterator[str]:
    if not report.faults:
        return
    yield from heading(f"## Faults: {len(report.faults):,}")
    rows = [
        (code(each.link.id), code(each.fault.sentence), code(each.cells[0].cell), f"{len(each.cells):,}")
        for each in report.faults
    ]
    yield from _first(("fault", "what is wrong", "first cell", "cells"), rows, figures=1)


def _unavailable(report: Report) -> Iterator[str]:
    if not report.unavailable:
        return
    yield from heading("## Unavailable")
    rows = [
        (code(each.column.label), code(each.cause), code(each.reason), f"{each.count:,}")
        for each in report.unavailable
    ]
    yield from _first(("target", "cause", "reason", "cells"), rows, figures=1)


def _first(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, figures: int = 0, more: int = 0, what: str = ""
) -> Iterator[str]:
    """Yield a table of the first rows, and the number of others: ``more`` besides those in ``rows``."""
    yield from markdown_table(head, rows[:_SHOWN], figures=figures)
    others = len(rows) + more - _SHOWN
    if others > 0:
        yield ""
        yield f"and {others:,} more {what}".rstrip()

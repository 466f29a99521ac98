"""A difference, or the result of a gate, as text: for a terminal, as Markdown for a step, as annotations."""

import textwrap
from collections.abc import Iterator, Sequence

from harness.core.findings.lacking import Lacking
from harness.core.text.counted import plural
from harness.core.text.visible_text import WIDTH
from harness.report.changes.gate import Breach, Judgement
from harness.report.changes.latencies import latency_words
from harness.report.changes.run_diff import CellChange, CellChangeKind, Diff, Flow
from harness.report.words.inert import annotation, code, heading, markdown_table, plain_line

_SHOWN_CHANGES = 20
"""Number of cells of one kind that are listed in a terminal."""

MAX_ANNOTATIONS = 10
"""Number of annotations of each level that GitHub shows for a step."""

_SHOWN_IN_MARKDOWN = 200
"""Number of cells in Markdown: all kinds together have some 300 KB, and GitHub shows up to 1 MiB."""

_WARNED = (
    CellChangeKind.OTHER_MEASURE,
    CellChangeKind.GOLDEN_MOVED,
    CellChangeKind.OTHER_MODEL,
    CellChangeKind.CHANGED,
)


def headline(diff: Diff) -> str:
    """Return one line with all counts; gains and losses are not offset."""
    counts = [f"{count:,} {kind.value.replace('_', ' ')}" for kind, count in diff.kinds.items()]
    return f"{', '.join(counts)}; {diff.unchanged:,} of {plural(diff.compared, 'compared cell')} unchanged"


def diff_lines(diff: Diff) -> Iterator[str]:
    """Yield the lines for a terminal."""
    yield f"old  {plain_line(diff.old)}" + _incomplete(diff.old_not_run)
    yield f"new  {plain_line(diff.new)}" + _incomplete(diff.new_not_run)
    for target, what, items in _unlike(diff):
        yield f"not alike: {what} of target {plain_line(target)}"
        yield from (f"    {plain_line(item)}" for item in items)
    if diff.measures:
        yield f"not alike: {measures_text(diff)}"
    yield from _untried(diff)
    yield ""
    yield from _flow_lines(diff.flows)
    for words in _lacks(diff):
        yield ""
        yield from folded_lines(words, 0)
    yield from _unavailable_lines(diff)
    for kind in CellChangeKind:
        changes = diff.of(kind)
        if changes:
            yield ""
            yield f"{kind.value.replace('_', ' ')}: {plural(len(changes), 'cell')}, {kind.meaning}"
            own = diff.told(kind)
            yield from _change_lines(own)
            if len(own) < len(changes):
                yield f"    {len(changes) - len(own):,} of targets that are unavailable: see above"
    yield ""
    yield from folded_lines(headline(diff), 0)
    if diff.latency:
        yield from folded_lines(latency_words(diff.latency), 0)


def diff_markdown(diff: Diff) -> Iterator[str]:
    """Yield the lines of a Markdown document; names and messages are code, which is not interpreted."""
    yield "## What changed"
    yield ""
    yield f"{code(diff.old)}{_incomplete(diff.old_not_run)} → {code(diff.new)}{_incomplete(diff.new_not_run)}"
    yield ""
    yield f"**{headline(diff)}.**"
    yield ""
    if diff.latency:
        yield f"{latency_words(diff.latency)}."
        yield ""
    rows = [
        (f.family.value, f"{f.before:,}", f"+{f.entered:,}", f"-{f.left:,}", f"{f.after:,}")
        for f in diff.flows
    ]
    yield from markdown_table(("family", "before", "came", "went", "after"), rows, figures=4)
    for line in _untried(diff):
        yield line
        yield ""
    if diff.unlike:
        yield from heading("### Not alike")
        for target, what, items in _unlike(diff):
            yield f"* {code(target)}, {what}: {', '.join(map(code, items))}"
    if diff.measures:
        yield from heading("### Other measures")
        yield f"{measures_text(diff)}."
    for words in _lacks(diff):
        yield words
        yield ""
    yield from _unavailable_markdown(diff)
    for kind in CellChangeKind:
        if diff.of(kind):
            yield from _kind_markdown(diff, kind)


def diff_github(diff: Diff) -> Iterator[str]:
    """Yield annotations of a GitHub workflow, as many as GitHub shows for a step; the worst kinds first."""
    yield annotation("notice", "ep-harness diff", headline(diff))
    levels = {"error": (CellChangeKind.REGRESSED, CellChangeKind.GONE), "warning": _WARNED}
    for level, kinds in levels.items():
        changes = [change for kind in kinds for change in diff.of(kind)]
        for change in changes[:MAX_ANNOTATIONS]:
            yield annotation(level, f"{change.kind.value}: {change.cell}", change_line(change))


def gate_lines(diff: Diff, judgement: Judgement) -> Iterator[str]:
    """Yield the difference, then each exceeded limit, then whether the gate passed."""
    yield from diff_lines(diff)
    yield ""
    if judgement.excused:
        yield f"known flakes, not counted: {plural(len(judgement.excused), 'cell')}"
        for change, reason in judgement.excused[:_SHOWN_CHANGES]:
            yield from folded_lines(change_line(change), 4)
            yield from folded_lines(plain_line(reason), 8)
        if len(judgement.excused) > _SHOWN_CHANGES:
            yield f"    and {len(judgement.excused) - _SHOWN_CHANGES:,} more"
    for breach in judgement.breaches:
        yield _told(breach)
        for line in breach.cells[:_SHOWN_CHANGES]:
            yield from folded_lines(plain_line(line), 4)
        if len(breach.cells) > _SHOWN_CHANGES:
            yield f"    and {len(breach.cells) - _SHOWN_CHANGES:,} more"
    yield "gate: passed" if judgement.passed else "gate: FAILED"


def gate_github(judgement: Judgement) -> Iterator[str]:
    """Yield an annotation for each exceeded limit, then for the cells, as many as GitHub shows for a step."""
    lines = [annotation("error", "ep-harness gate", _told(breach)) for breach in judgement.breaches]
    for breach in judgement.breaches:
        for line in breach.cells:
            of_cell, cut, words = line.partition("]: ")
            kind = "agreement" if breach.limit == "min_agreement" else breach.limit
            title = f"{kind}: {of_cell}]" if cut else kind
            lines.append(annotation("error", title, plain_line(words if cut else line)))
    cells: dict[str, CellChange] = {}
    for breach in judgement.breaches:
        cells |= {change.cell: change for change in breach.changes}
    lines += [
        annotation("error", f"{change.kind.value}: {change.cell}", change_line(change))
        for change in cells.values()
    ]
    yield from lines[:MAX_ANNOTATIONS]


def change_line(change: CellChange) -> str:
    """Return a change in one line."""
    why = _why(change)
    return f"{plain_line(change.cell)}: {plain_line(change.arrow)}" + (f" ({plain_line(why)})" if why else "")


def _why(change: CellChange) -> str:
    flaky = ("flaky",) if change.flaky else ()
    unchanged = change.before is change.after
    parts = (*change.facts, *flaky, *change.beside, "" if unchanged else change.reason)
    return "; ".join(part for part in parts if part)


def measures_text(diff: Diff) -> str:
    """Return how many cells of both runs have another model, golden or policy; empty if none has."""
    return ", ".join(f"{plural(count, 'cell')} of another {part}" for part, count in diff.measures.items())


def _incomplete(not_run: int) -> str:
    return f" (INCOMPLETE: {not_run:,} not run)" if not_run else ""


def folded_lines(line: str, indent: int) -> Iterator[str]:
    """Yield a line, folded to ``WIDTH`` columns."""
    space = " " * indent
    yield from textwrap.wrap(line, WIDTH, initial_indent=space, subsequent_indent=space)


def _unlike(diff: Diff) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for unlike in diff.unlike:
        for what, items in (("environment", unlike.environment), ("settings", unlike.settings)):
            if items:
                yield unlike.target, what, items


def _untried(diff: Diff) -> Iterator[str]:
    for target, (without, cells) in diff.untried.items():
        of = f"{without:,} of {plural(cells, 'cell')} of target {plain_line(target)}"
        yield f"not tried: {of} in the new run"


def _lacks(diff: Diff) -> Iterator[str]:
    for target, features in diff.lacks.items():
        for feature, (before, after) in features.items():
            told = f"lacks: target {plain_line(target)}: {plain_line(Lacking(target, feature, after).words)}"
            yield told + (f" ({before:,} before)" if before != after else "")


def _once(changes: Sequence[CellChange]) -> tuple[list[CellChange], list[str]]:
    """Return the changes with one for each feature that a device lacks, and the number of the others."""
    shown: list[CellChange] = []
    counts: dict[tuple[str, str], int] = {}
    for change in changes:
        lack = change.target, change.lacks
        if change.lacks:
            counts[lack] = counts.get(lack, 0) + 1
        if counts.get(lack, 0) <= 1:
            shown.append(change)
    others = [
        f"and {count - 1:,} more of target {plain_line(target)}, whose device lacks {plain_line(feature)}"
        for (target, feature), count in counts.items()
        if count > 1
    ]
    return shown, others


def _kind_markdown(diff: Diff, kind: CellChangeKind) -> Iterator[str]:
    changes = diff.of(kind)
    yield from heading(f"### {kind.value.replace('_', ' ').capitalize()}: {plural(len(changes), 'cell')}")
    yield f"{kind.meaning[0].upper()}{kind.meaning[1:]}."
    yield ""
    own, others = _once(diff.told(kind))
    shown = [
        (code(change.cell), code(change.arrow), code(_why(change)) if _why(change) else "")
        for change in own[:_SHOWN_IN_MARKDOWN]
    ]
    yield from markdown_table(("cell", "verdict", "why"), shown)
    if others:
        yield ""
        yield "; ".join(others)
    elif len(changes) > len(shown):
        yield ""
        yield f"and {len(changes) - len(shown):,} more"


def _flow_lines(flows: Sequence[Flow]) -> Iterator[str]:
    yield f"{'family':<12}{'before':>9}{'came':>9}{'went':>9}{'after':>9}"
    for flow in flows:
        came, went = f"+{flow.entered:,}", f"-{flow.left:,}"
        yield f"{flow.family.value:<12}{flow.before:>9,}{came:>9}{went:>9}{flow.after:>9,}"


def _change_lines(changes: Sequence[CellChange]) -> Iterator[str]:
    shown, others = _once(changes)
    for change in shown[:_SHOWN_CHANGES]:
        yield f"    {plain_line(change.cell)}"
        why = _why(change)
        yield from folded_lines(f"{plain_line(change.arrow)}" + (f": {plain_line(why)}" if why else ""), 8)
    for words in others:
        yield from folded_lines(words, 4)
    if len(shown) > _SHOWN_CHANGES:
        yield f"    and {len(shown) - _SHOWN_CHANGES:,} more: --json names them all"


def _unavailable_markdown(diff: Diff) -> Iterator[str]:
    if diff.unavailable:
        yield from heading("### Unavailable")
    for target, lost, reason in diff.unavailable:
        yield f"* {code(target)}: {plural(lost, 'cell')} had a result before, and none now: {code(reason)}"


def _unavailable_lines(diff: Diff) -> Iterator[str]:
    for target, lost, reason in diff.unavailable:
        yield ""
        had = f"{plural(lost, 'cell')} had a result before, and none now"
        yield f"unavailable: target {plain_line(target)}, {had}"
        yield from folded_lines(plain_line(reason), 4)


def _told(breach: Breach) -> str:
    owner = f" (owner: {plain_line(breach.owner)})" if breach.owner else ""
    its = f"target {plain_line(breach.target)}{owner}: " if breach.target else ""
    told = f"{its}limits.{breach.limit}: {plural(breach.count, breach.what)}"
    if breach.least is not None:
        return f"{told} below {breach.least:g}"
    return f"{told}, {breach.allowed:,} allowed"

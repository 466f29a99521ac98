"""A difference, or the result of a gate, as text: for a terminal, as Markdown for a step, as annotations."""

import textwrap
from collections.abc import Iterator, Sequence

from harness.report.diff import Change, Diff, Flow, Kind
from harness.report.figures import plural
from harness.report.gate import Breach, Judgement
from harness.report.inert import annotation, code, heading, plain, table

WIDTH = 80

_SHOWN_CHANGES = 20
"""How many cells of one kind are listed in a terminal."""

MAX_ANNOTATIONS = 10
"""How many annotations of each level GitHub shows of a step."""

_SHOWN_IN_MARKDOWN = 200
"""How many in Markdown: of all kinds some 300 KB, and GitHub shows up to 1 MiB."""

_WARNED = (Kind.OTHER_MEASURE, Kind.GOLDEN_MOVED, Kind.OTHER_MODEL, Kind.CHANGED)


def headline(diff: Diff) -> str:
    """Return one line with all counts; nothing is netted."""
    counts = [f"{count:,} {kind.value.replace('_', ' ')}" for kind, count in diff.kinds.items()]
    return f"{', '.join(counts)}; {diff.unchanged:,} of {plural(diff.compared, 'compared cell')} unchanged"


def diff_lines(diff: Diff) -> Iterator[str]:
    """Yield the lines for a terminal."""
    yield f"old  {plain(diff.old)}" + _incomplete(diff.old_not_run)
    yield f"new  {plain(diff.new)}" + _incomplete(diff.new_not_run)
    for target, what, items in _unlike(diff):
        yield f"not alike: {what} of target {plain(target)}"
        yield from (f"    {plain(item)}" for item in items)
    if diff.measures:
        yield f"not alike: {measures_text(diff)}"
    yield ""
    yield from _flow_lines(diff.flows)
    for kind in Kind:
        changes = diff.of(kind)
        if changes:
            yield ""
            yield f"{kind.value.replace('_', ' ')}: {plural(len(changes), 'cell')}, {kind.meaning}"
            yield from _change_lines(changes)
    yield ""
    yield from wrapped(headline(diff), 0)


def diff_markdown(diff: Diff) -> Iterator[str]:
    """Yield the lines of a Markdown document; names and messages are code, which is not interpreted."""
    yield "## What changed"
    yield ""
    yield f"{code(diff.old)}{_incomplete(diff.old_not_run)} → {code(diff.new)}{_incomplete(diff.new_not_run)}"
    yield ""
    yield f"**{headline(diff)}.**"
    yield ""
    rows = [
        (f.family.value, f"{f.before:,}", f"+{f.entered:,}", f"-{f.left:,}", f"{f.after:,}")
        for f in diff.flows
    ]
    yield from table(("family", "before", "came", "went", "after"), rows, figures=4)
    if diff.unlike:
        yield from heading("### Not alike")
        for target, what, items in _unlike(diff):
            yield f"* {code(target)}, {what}: {', '.join(map(code, items))}"
    if diff.measures:
        yield from heading("### Other measures")
        yield f"{measures_text(diff)}."
    for kind in Kind:
        changes = diff.of(kind)
        if changes:
            yield from heading(
                f"### {kind.value.replace('_', ' ').capitalize()}: {plural(len(changes), 'cell')}"
            )
            yield f"{kind.meaning[0].upper()}{kind.meaning[1:]}."
            yield ""
            shown = [
                (code(change.cell), code(change.arrow), code(_why(change)) if _why(change) else "")
                for change in changes[:_SHOWN_IN_MARKDOWN]
            ]
            yield from table(("cell", "verdict", "why"), shown)
            if len(changes) > _SHOWN_IN_MARKDOWN:
                yield ""
                yield f"and {len(changes) - _SHOWN_IN_MARKDOWN:,} more"


def diff_github(diff: Diff) -> Iterator[str]:
    """Yield annotations of a GitHub workflow, as many as GitHub shows of a step; the worst kinds first."""
    yield annotation("notice", "ep-harness diff", headline(diff))
    levels = {"error": (Kind.REGRESSED, Kind.GONE), "warning": _WARNED}
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
            yield from wrapped(change_line(change), 4)
            yield from wrapped(plain(reason), 8)
        if len(judgement.excused) > _SHOWN_CHANGES:
            yield f"    and {len(judgement.excused) - _SHOWN_CHANGES:,} more"
    for breach in judgement.breaches:
        yield _told(breach)
        for line in breach.cells[:_SHOWN_CHANGES]:
            yield from wrapped(plain(line), 4)
        if len(breach.cells) > _SHOWN_CHANGES:
            yield f"    and {len(breach.cells) - _SHOWN_CHANGES:,} more"
    yield "gate: passed" if judgement.passed else "gate: FAILED"


def gate_github(judgement: Judgement) -> Iterator[str]:
    """Yield an annotation for each exceeded limit, then for the cells, as many as GitHub shows of a step."""
    lines = [annotation("error", "ep-harness gate", _told(breach)) for breach in judgement.breaches]
    for breach in judgement.breaches:
        for line in breach.cells:
            of_cell, cut, words = line.partition("]: ")
            kind = "agreement" if breach.limit == "min_agreement" else breach.limit
            title = f"{kind}: {of_cell}]" if cut else kind
            lines.append(annotation("error", title, plain(words if cut else line)))
    cells: dict[str, Change] = {}
    for breach in judgement.breaches:
        cells |= {change.cell: change for change in breach.changes}
    lines += [
        annotation("error", f"{change.kind.value}: {change.cell}", change_line(change))
        for change in cells.values()
    ]
    yield from lines[:MAX_ANNOTATIONS]


def change_line(change: Change) -> str:
    """Return a change in one line."""
    why = _why(change)
    return f"{plain(change.cell)}: {plain(change.arrow)}" + (f" ({plain(why)})" if why else "")


def _why(change: Change) -> str:
    flaky = ("flaky",) if change.flaky else ()
    unchanged = change.before is change.after
    parts = (*change.facts, *flaky, *change.beside, "" if unchanged else change.reason)
    return "; ".join(part for part in parts if part)


def measures_text(diff: Diff) -> str:
    """Return how many cells of both runs have another model, golden or policy; empty if none has."""
    return ", ".join(f"{plural(count, 'cell')} of another {part}" for part, count in diff.measures.items())


def _incomplete(not_run: int) -> str:
    return f" (INCOMPLETE: {not_run:,} not run)" if not_run else ""


def wrapped(line: str, indent: int) -> Iterator[str]:
    """Yield a line, folded to ``WIDTH`` columns."""
    space = " " * indent
    yield from textwrap.wrap(line, WIDTH, initial_indent=space, subsequent_indent=space)


def _unlike(diff: Diff) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    for unlike in diff.unlike:
        for what, items in (("environment", unlike.environment), ("settings", unlike.settings)):
            if items:
                yield unlike.target, what, items


def _flow_lines(flows: Sequence[Flow]) -> Iterator[str]:
    yield f"{'family':<12}{'before':>9}{'came':>9}{'went':>9}{'after':>9}"
    for flow in flows:
        came, went = f"+{flow.entered:,}", f"-{flow.left:,}"
        yield f"{flow.family.value:<12}{flow.before:>9,}{came:>9}{went:>9}{flow.after:>9,}"


def _change_lines(changes: Sequence[Change]) -> Iterator[str]:
    for change in changes[:_SHOWN_CHANGES]:
        yield f"    {plain(change.cell)}"
        why = _why(change)
        yield from wrapped(f"{plain(change.arrow)}" + (f": {plain(why)}" if why else ""), 8)
    if len(changes) > _SHOWN_CHANGES:
        yield f"    and {len(changes) - _SHOWN_CHANGES:,} more: --json names them all"


def _told(breach: Breach) -> str:
    if breach.least is not None:
        return f"limits.{breach.limit}: {plural(breach.count, breach.what)} below {breach.least:g}"
    return f"limits.{breach.limit}: {plural(breach.count, breach.what)}, {breach.allowed:,} allowed"

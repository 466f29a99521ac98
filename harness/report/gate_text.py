"""The result of a gate as text: for a terminal, and as annotations of a GitHub workflow."""

from collections.abc import Iterator

from harness.report.diff import Change, Diff
from harness.report.diff_text import MAX_ANNOTATIONS, change_line, diff_lines, wrapped
from harness.report.figures import plural
from harness.report.gate import Breach, Judgement
from harness.report.inert import annotation, plain

_SHOWN = 20


def gate_lines(diff: Diff, judgement: Judgement) -> Iterator[str]:
    """Yield the difference, then each exceeded limit, then whether the gate passed."""
    yield from diff_lines(diff)
    yield ""
    if judgement.excused:
        yield f"known flakes, not counted: {plural(len(judgement.excused), 'cell')}"
        for change, reason in judgement.excused[:_SHOWN]:
            yield from wrapped(change_line(change), 4)
            yield from wrapped(plain(reason), 8)
        if len(judgement.excused) > _SHOWN:
            yield f"    and {len(judgement.excused) - _SHOWN:,} more"
    for breach in judgement.breaches:
        yield _told(breach)
    yield "gate: passed" if judgement.passed else "gate: FAILED"


def gate_github(judgement: Judgement) -> Iterator[str]:
    """Yield an annotation for each exceeded limit, then for the cells, as many as GitHub shows of a step."""
    lines = [annotation("error", "ep-harness gate", _told(breach)) for breach in judgement.breaches]
    cells: dict[str, Change] = {}
    for breach in judgement.breaches:
        cells |= {change.cell: change for change in breach.changes}
    lines += [
        annotation("error", f"{change.kind.value}: {change.cell}", change_line(change))
        for change in cells.values()
    ]
    yield from lines[:MAX_ANNOTATIONS]


def _told(breach: Breach) -> str:
    return f"limits.{breach.limit}: {plural(breach.count, breach.what)}, {breach.allowed:,} allowed"

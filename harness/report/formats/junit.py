"""The report as JUnit XML for CI servers."""

import html
from collections.abc import Iterable, Iterator, Sequence

from harness.core.records.run_info import TargetExit
from harness.core.records.verdict import Family, Verdict, lacks_target
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.formats.cell_columns import CellRow
from harness.report.formats.rows import TargetRow
from harness.report.view import Report

_MAX_CHARS = 2_000
_SECONDS = len("2026-11-20T10:00:00")
"""Length of a time without the fractions and the zone, which servers do not read."""
_SKIPPED = frozenset({Family.SKIPPED, Family.EXCLUDED, Family.UNTESTED, Family.UNSUPPORTED})


_OF_TARGET = ("onnxruntime", "provider", "ep_version", "library", "driver", "device")


def to_junit(report: Report, targets: Sequence[TargetRow], cells: Iterable[CellRow]) -> Iterator[str]:
    """Yield the file in pieces: a suite for each row of the targets, a case for each cell.

    An unexpected verdict is a failure, as is an unexpected pass, and an unavailable required target. A cell
    that was not run is an error. Expected failures, and verdicts that say nothing about the EP, are skipped,
    with the verdict in the message. Unclean or unexpected ends of a target's processes are an additional
    case, ``exit``, in the first suite of the target.
    """
    ends = dict(exit_outcomes(report, targets))
    required = {row.label for row in targets if row.required}
    by_suite: dict[str, list[tuple[CellRow, str]]] = {row.label: [] for row in targets}
    for cell in cells:
        by_suite[cell.label].append((cell, case_outcome(cell, required=cell.label in required)))
    outcomes = [outcome for its in by_suite.values() for _, outcome in its]
    outcomes += [outcome for outcome, _ in ends.values()]
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield f"<testsuites name={_attribute(report.name)}{_counts(outcomes)}>\n"
    facts = {row.label: row for row in targets}
    for label, its in by_suite.items():
        yield from _suite(report, facts[label], its, ends.get(label))
    yield "</testsuites>\n"


def exit_outcomes(
    report: Report, targets: Sequence[TargetRow]
) -> Iterator[tuple[str, tuple[str, TargetExit]]]:
    """Yield the label of a target's first row, with the outcome of its processes' ends, and these ends."""
    labels: dict[str, str] = {}
    for row in targets:
        labels.setdefault(row.target, row.label)
    for target, exits in report.run.exits.items():
        if target in labels and (exits.unclean or not exits.expected):
            yield labels[target], ("skipped" if exits.expected else "failure", exits)


def _suite(
    report: Report,
    row: TargetRow,
    cells: Sequence[tuple[CellRow, str]],
    end: tuple[str, TargetExit] | None,
) -> Iterator[str]:
    label = row.label
    seconds = sum(case_seconds(cell) for cell, _ in cells)
    started = min((cell.started for cell, _ in cells if cell.started), default="")
    stamp = f" timestamp={_attribute(started[:_SECONDS])}" if started else ""
    counts = _counts([*(outcome for _, outcome in cells), *([] if end is None else [end[0]])])
    yield f'<testsuite name={_attribute(label)}{counts} time="{seconds:.6f}"{stamp}>\n'
    yield "<properties>\n"
    yield _property("complete", "true" if report.complete else "false")
    yield _property("not_run", str(report.not_run))
    yield from (_property(name, getattr(row, name)) for name in _OF_TARGET)
    if row.simulated:
        yield _property("simulated", row.simulated)
    yield from (_property("notice", notice) for notice in report.run.notices)
    yield "</properties>\n"
    for cell, outcome in cells:
        yield from _case(label, cell, outcome)
    if end is not None:
        yield from _end_case(label, *end)
    yield "</testsuite>\n"


def _end_case(label: str, outcome: str, exits: TargetExit) -> Iterator[str]:
    yield f'<testcase classname={_attribute(label.replace(".", "_"))} name="exit" time="0.000000">'
    verdict = Verdict.UNCLEAN_EXIT.value if exits.unclean else "clean"
    yield f"<properties>{_property('verdict', verdict).strip()}</properties>"
    message = _attribute(f"{verdict}: {exits.reason}")
    if outcome == "skipped":
        yield f"<skipped message={_attribute(f'expected failure: {verdict}: {exits.reason}')}/>"
    else:
        yield f'<failure type="{Verdict.UNCLEAN_EXIT.value}" message={message}/>'
    yield "</testcase>\n"


def _case(label: str, cell: CellRow, outcome: str) -> Iterator[str]:
    # Servers read the part before a dot in the class's name as a package.
    where = f"{label.replace('.', '_')}.{cell.suite.replace('.', '_')}"
    head = f"<testcase classname={_attribute(where)} name={_attribute(cell.cell)}"
    yield f'{head} time="{case_seconds(cell):.6f}">'
    yield f"<properties>{_property('verdict', cell.verdict.value).strip()}</properties>"
    message = _attribute(case_message(cell))
    if outcome == "skipped":
        yield f"<skipped message={message}/>"
    elif outcome:
        yield f"<{outcome} type={_attribute(cell.verdict.value)} message={message}>"
        yield f"{_text(f'again: {cell.command}')}</{outcome}>"
    yield "</testcase>\n"


def case_message(cell: CellRow) -> str:
    """Return the verdict with its reason, and whether the matrix expects it."""
    cause = f" ({cell.cause})" if cell.cause else ""
    message = f"{cell.verdict.value}{cause}: {cell.reason or cell.verdict.meaning}"
    if cell.family is Family.FAILED:
        known = f" ({cell.known})" if cell.known else ""
        return f"expected failure{known}: {message}" if cell.expected else message
    return message if cell.expected else f"unexpected {message}"


def case_outcome(cell: CellRow, *, required: bool) -> str:
    """Return the element of a case; empty if it passed."""
    if cell.family is Family.MISSING:
        return "error"
    if not cell.expected or (required and lacks_target(cell.verdict, cell.phase)):
        return "failure"
    return "skipped" if cell.family in _SKIPPED or cell.family is Family.FAILED else ""


def _counts(outcomes: list[str]) -> str:
    return (
        f' tests="{len(outcomes)}" failures="{outcomes.count("failure")}"'
        f' errors="{outcomes.count("error")}" skipped="{outcomes.count("skipped")}"'
    )


def case_seconds(cell: CellRow) -> float:
    """Return the time that a cell took, in seconds."""
    return ((cell.create_ms or 0.0) + (cell.first_run_ms or 0.0)) / 1000


def _property(name: str, value: str) -> str:
    return f'<property name="{name}" value={_attribute(value)}/>\n'


def _attribute(text: str) -> str:
    return f'"{_text(text)}"'


def _text(text: str) -> str:
    # XML 1.0 cannot represent most control characters; they are spelled out.
    return html.escape(one_line(visible(text), _MAX_CHARS), quote=True)

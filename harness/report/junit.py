"""The report as JUnit XML for CI servers."""

import html
from collections.abc import Iterable, Iterator, Sequence

from harness.core.errors import one_line
from harness.core.text import visible
from harness.core.verdict import Family, lacks_target
from harness.report.identity import Identity
from harness.report.rows import CellRow, TargetRow
from harness.report.view import Report

_MAX_CHARS = 2_000
_SECONDS = len("2026-11-20T10:00:00")
"""Length of a time without the fractions and the zone, which servers do not read."""
_SKIPPED = frozenset({Family.SKIPPED, Family.EXCLUDED, Family.UNTESTED, Family.UNSUPPORTED})


_OF_IDENTITY = ("onnxruntime", "provider", "ep_version", "library", "driver", "device")


def to_junit(report: Report, targets: Sequence[TargetRow], cells: Iterable[CellRow]) -> Iterator[str]:
    """Yield the file in pieces: a suite for each row of the targets, a case for each cell.

    An unexpected verdict is a failure, also an unexpected pass and a required target that is unavailable. A
    cell that was not run is an error. Expected failures, and verdicts that say nothing about the EP, are
    skipped, with the verdict in the message.
    """
    of_label = {row.label: row.target for row in targets}
    required = {row.label for row in targets if row.required}
    known = {each.target: each for each in reversed(report.identities)}
    by_suite: dict[str, list[tuple[CellRow, str]]] = {row.label: [] for row in targets}
    for cell in cells:
        by_suite[cell.label].append((cell, _outcome(cell, required=cell.label in required)))
    outcomes = [outcome for its in by_suite.values() for _, outcome in its]
    yield '<?xml version="1.0" encoding="utf-8"?>\n'
    yield f"<testsuites name={_attribute(report.name)}{_counts(outcomes)}>\n"
    for label, its in by_suite.items():
        yield from _suite(report, label, its, known.get(of_label[label]))
    yield "</testsuites>\n"


def _suite(
    report: Report, label: str, cells: Sequence[tuple[CellRow, str]], what: Identity | None
) -> Iterator[str]:
    seconds = sum(_seconds(cell) for cell, _ in cells)
    started = min((cell.started for cell, _ in cells if cell.started), default="")
    stamp = f" timestamp={_attribute(started[:_SECONDS])}" if started else ""
    counts = _counts([outcome for _, outcome in cells])
    yield f'<testsuite name={_attribute(label)}{counts} time="{seconds:.6f}"{stamp}>\n'
    yield "<properties>\n"
    yield _property("complete", "true" if report.complete else "false")
    yield _property("not_run", str(report.not_run))
    if what is not None:
        yield from (_property(name, str(getattr(what, name))) for name in _OF_IDENTITY)
        yield _property("device_is", what.hardware)
    yield from (_property("notice", notice) for notice in report.run.notices)
    yield "</properties>\n"
    for cell, outcome in cells:
        yield from _case(label, cell, outcome)
    yield "</testsuite>\n"


def _case(label: str, cell: CellRow, outcome: str) -> Iterator[str]:
    # Servers read the part before a dot in the class's name as a package.
    where = f"{label.replace('.', '_')}.{cell.suite.replace('.', '_')}"
    head = f"<testcase classname={_attribute(where)} name={_attribute(cell.cell)}"
    yield f'{head} time="{_seconds(cell):.6f}">'
    yield f"<properties>{_property('verdict', cell.verdict.value).strip()}</properties>"
    cause = f" ({cell.cause})" if cell.cause else ""
    message = f"{cell.verdict.value}{cause}: {cell.reason or cell.verdict.meaning}"
    if outcome == "skipped":
        known = f" ({cell.known})" if cell.known else ""
        expected = f"expected failure{known}: " if cell.family is Family.FAILED else ""
        yield f"<skipped message={_attribute(expected + message)}/>"
    elif outcome:
        prefix = "unexpected " if not cell.expected and cell.family is not Family.FAILED else ""
        yield f"<{outcome} type={_attribute(cell.verdict.value)} message={_attribute(prefix + message)}>"
        yield f"{_text(f'again: {cell.command}')}</{outcome}>"
    yield "</testcase>\n"


def _outcome(cell: CellRow, *, required: bool) -> str:
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


def _seconds(cell: CellRow) -> float:
    return ((cell.create_ms or 0.0) + (cell.first_run_ms or 0.0)) / 1000


def _property(name: str, value: str) -> str:
    return f'<property name="{name}" value={_attribute(value)}/>\n'


def _attribute(text: str) -> str:
    return f'"{_text(text)}"'


def _text(text: str) -> str:
    # XML 1.0 cannot represent most control characters; they are spelled out.
    return html.escape(one_line(visible(text), _MAX_CHARS), quote=True)

"""The report as CTRF JSON, a common format of test reports (ctrf.io): the outcomes of JUnit XML."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from harness import __version__
from harness.core.text.errors import one_line
from harness.core.text.visible_text import visible
from harness.report.formats.cell_columns import CellRow
from harness.report.formats.junit import case_message, case_outcome, case_seconds, exit_outcomes
from harness.report.formats.rows import TargetRow
from harness.report.view import Report
from harness.report.words.inert import inert_json
from harness.report.words.utc_moment import epoch_ms

_SPEC = "0.0.0"
"""The version of the specification that its schema has until its first release."""

_STATUS = {"": "passed", "failure": "failed", "error": "other", "skipped": "skipped"}
_MAX_CHARS = 2_000


def to_ctrf(report: Report, targets: Sequence[TargetRow], cells: Iterable[CellRow]) -> bytes:
    """Render the file."""
    tests = list(_tests(report, targets, cells))
    statuses = [one["status"] for one in tests]
    counts = {name: statuses.count(name) for name in ("passed", "failed", "skipped", "pending", "other")}
    told = {
        "reportFormat": "CTRF",
        "specVersion": _SPEC,
        "generatedBy": "ort-ep-harness",
        "results": {
            "tool": {"name": "ort-ep-harness", "version": __version__},
            "summary": {
                "tests": len(tests),
                **counts,
                "start": epoch_ms(report.first),
                "stop": epoch_ms(report.last),
            },
            "tests": tests,
            "environment": {"appName": report.name, "extra": {"complete": report.complete}},
        },
    }
    return inert_json(told)


def _tests(
    report: Report, targets: Sequence[TargetRow], cells: Iterable[CellRow]
) -> Iterator[dict[str, Any]]:
    required = {row.label for row in targets if row.required}
    for cell in cells:
        outcome = case_outcome(cell, required=cell.label in required)
        one: dict[str, Any] = {
            "name": _text(cell.cell),
            "status": _STATUS[outcome],
            "duration": round(1000 * case_seconds(cell)),
            "rawStatus": cell.verdict.value,
            "flaky": cell.flaky,
            "extra": {"target": _text(cell.label), "suite": _text(cell.suite), "model": _text(cell.model)},
        }
        if outcome:
            one["message"] = _text(case_message(cell))
        if cell.command:
            one["extra"]["command"] = cell.command
        yield one
    for label, (outcome, exits) in exit_outcomes(report, targets):
        yield {
            "name": _text(f"{label}: exit"),
            "status": _STATUS[outcome],
            "duration": 0,
            "message": _text(exits.reason),
        }


def _text(text: str) -> str:
    return one_line(visible(text), _MAX_CHARS)

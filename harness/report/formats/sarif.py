"""The causes of failed cells as SARIF 2.1.0, for code scanning: a result for each cause, not each cell."""

import hashlib
from pathlib import PurePath
from typing import Any

from harness import __version__
from harness.core.records.verdict import Family, Verdict
from harness.report.pages.main_causes import MainCause, all_causes
from harness.report.view import Report
from harness.report.words.inert import inert_json

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_MOST_RESULTS = 5_000
"""Results of one run that GitHub accepts."""


def to_sarif(report: Report) -> bytes:
    """Render the file: unexpected failures are errors, those that the matrix expects are notes."""
    causes = all_causes(report)[:_MOST_RESULTS]
    rules = [verdict for verdict in Verdict if verdict.family is Family.FAILED]
    told = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ort-ep-harness",
                        "version": __version__,
                        "rules": [
                            {"id": verdict.value, "shortDescription": {"text": verdict.meaning}}
                            for verdict in rules
                        ],
                    }
                },
                "results": [_result(cause, report, rules.index(cause.verdict)) for cause in causes],
            }
        ],
    }
    return inert_json(told)


def _result(cause: MainCause, report: Report, rule: int) -> dict[str, Any]:
    models, targets = ", ".join(cause.models), ", ".join(cause.targets)
    return {
        "ruleId": cause.verdict.value,
        "ruleIndex": rule,
        "level": "error" if cause.unexpected else "note",
        "message": {"text": f"{cause.words} ({cause.count:,} cells: {targets}; models: {models})"},
        "locations": [
            {
                # GitHub shows no result without a file: the matrix is what one can change.
                "physicalLocation": {
                    "artifactLocation": {"uri": _matrix_uri(report.matrix_path)},
                    "region": {"startLine": 1},
                },
                "logicalLocations": [{"fullyQualifiedName": cause.first_cell, "kind": "member"}],
            }
        ],
        "occurrenceCount": cause.count,
        # Figures in a reason change from night to night; what a cause is grouped by does not.
        "partialFingerprints": {"epHarnessCause/v1": hashlib.sha256(cause.key.encode()).hexdigest()[:32]},
    }


def _matrix_uri(path: str) -> str:
    """Return a relative path without folders of the machine."""
    plain = PurePath(path.replace("\\", "/"))
    outside = plain.is_absolute() or ".." in plain.parts or ":" in path
    return plain.name if outside else plain.as_posix()

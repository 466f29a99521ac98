"""JSON Schemas of results as JSON: `report`, `diff` and `compare-speed`; published in docs/reference."""

from typing import Any

from harness.core.files.json_schema import json_schema_of
from harness.core.timing.speed_change import SpeedComparison
from harness.report.changes.run_diff import Diff
from harness.report.formats.cell_columns import MEANINGS
from harness.report.formats.json_report import ReportFile


def report_schema() -> dict[str, Any]:
    """Return the schema of ``report.json``: docs/reference/report.schema.json."""
    schema = json_schema_of(ReportFile, "report.json")
    for name, meaning in MEANINGS.items():
        schema["$defs"]["CellRow"]["properties"][name]["description"] = meaning
    return schema


def diff_schema() -> dict[str, Any]:
    """Return the schema of a difference: docs/reference/diff.schema.json."""
    return json_schema_of(Diff, "ep-harness diff --json")


def speed_schema() -> dict[str, Any]:
    """Return the schema of a comparison of two builds: docs/reference/speed.schema.json."""
    return json_schema_of(SpeedComparison, "ep-harness compare-speed --json")

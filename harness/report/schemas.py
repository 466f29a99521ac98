"""JSON Schemas of the output of `report --format json` and `diff --json`, published in docs/reference."""

import json
import sys
from typing import Any

import msgspec

from harness.report.diff import Diff
from harness.report.json_report import ReportFile


def report_schema() -> dict[str, Any]:
    """Return the schema of ``report.json``: docs/reference/report.schema.json."""
    return schema_of(ReportFile, "report.json")


def diff_schema() -> dict[str, Any]:
    """Return the schema of a difference: docs/reference/diff.schema.json."""
    return schema_of(Diff, "ep-harness diff --json")


def schema_of(kind: type[msgspec.Struct], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a file that this package writes."""
    (root,), definitions = msgspec.json.schema_components(
        (kind,), schema_hook=_hook, ref_template="#/$defs/{name}"
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"ort-ep-harness: {title}",
        **root,
        "$defs": definitions,
    }


def _hook(kind: type) -> dict[str, Any]:
    if kind is object:  # facts of an environment: any JSON
        return {"description": "any JSON value"}
    raise NotImplementedError(kind)


if __name__ == "__main__":  # python -m harness.report.schemas report > docs/reference/report.schema.json
    schemas = {"report": report_schema, "diff": diff_schema}
    sys.stdout.write(json.dumps(schemas[sys.argv[1]](), indent=2) + "\n")

"""Write what is generated in the documentation: `tox -e generate`, or `python -m docs.site.generate`.

Each page or schema is made of what the code says. A test refuses a tree in which this would change something.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.annex.conformance.profiles.profile import profile_schema
from harness.annex.conformance.submission import statement_schema
from harness.annex.made.decoders.reference import reference as decoders
from harness.annex.made.variants.reference import page as variants
from harness.annex.made.zoo.reference import reference as zoo
from harness.annex.publication.formats import data_schema
from harness.annex.store.reference import reference as views
from harness.annex.triage.manifest import manifest_schema
from harness.catalog.catalog import load_catalog
from harness.catalog.reference import reference as providers
from harness.core.records.fault import fault_schema
from harness.core.records.selection_study import selection_schema
from harness.core.records.trace import trace_schema
from harness.operators.reference import reference as operators
from harness.plan.baseline_file import baseline_schema
from harness.plan.file_format import matrix_schema
from harness.report.formats.schemas import diff_schema, report_schema, speed_schema

REFERENCE = Path(__file__).parents[1] / "reference"
_FIRST_VIEW = "### `records`\n"


def _schema(of: Callable[[], dict[str, Any]]) -> Callable[[], str]:
    return lambda: json.dumps(of(), indent=2) + "\n"


def _query() -> str:
    """Return the page about queries: what is written by hand, and then the views."""
    text = (REFERENCE / "query.md").read_text("utf-8")
    return text.partition(_FIRST_VIEW)[0] + "\n".join(views()).strip() + "\n"


GENERATED: Mapping[str, Callable[[], str]] = {
    "baseline.schema.json": _schema(baseline_schema),
    "bundle.schema.json": _schema(manifest_schema),
    "decoders.md": decoders,
    "diff.schema.json": _schema(diff_schema),
    "fault.schema.json": _schema(fault_schema),
    "operators.md": operators,
    "matrix.schema.json": _schema(matrix_schema),
    "policies.schema.json": _schema(selection_schema),
    "profile.schema.json": _schema(profile_schema),
    "providers.md": lambda: providers(load_catalog()) + "\n",
    "publication.schema.json": _schema(data_schema),
    "query.md": _query,
    "report.schema.json": _schema(report_schema),
    "speed.schema.json": _schema(speed_schema),
    "statement.schema.json": _schema(statement_schema),
    "trace.schema.json": _schema(trace_schema),
    "variants.md": variants,
    "zoo.md": zoo,
}
"""File of docs/reference -> what is to be in it."""


def write_all() -> Iterator[str]:
    """Write every file, and yield the names of those that change."""
    for name, text in GENERATED.items():
        path, content = REFERENCE / name, text()
        if not path.exists() or path.read_text("utf-8") != content:
            path.write_text(content, encoding="utf-8", newline="\n")
            yield name


if __name__ == "__main__":
    for changed in write_all():
        print(f"wrote    docs/reference/{changed}")

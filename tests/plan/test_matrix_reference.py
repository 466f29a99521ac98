"""The published reference of the matrix file agrees with the code."""

import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from harness.core.files.structure import expected
from harness.core.records.model_settings import InputSettings
from harness.core.records.precision import CONVERSIONS
from harness.core.records.verdict import Verdict
from harness.plan import (
    expectation,
    file_format,
    places_entry,
    runs_entry,
    scenarios,
    selector,
    tolerance_entry,
    where,
)
from harness.plan.file_format import matrix_schema
from harness.plan.matrix import matrix_from

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
TABLES = [
    file_format.MatrixFile,
    file_format.ModelsTable,
    file_format.ModelTable,
    InputSettings,
    file_format.AxesTable,
    scenarios.Scenarios,
    scenarios.Concurrent,
    scenarios.Lifecycle,
    scenarios.Sessions,
    scenarios.Generate,
    file_format.TargetTable,
    file_format.RuntimeTable,
    places_entry.PlaceTable,
    places_entry.PlacesTable,
    file_format.Timeouts,
    file_format.RenewAfter,
    selector.SelectorTable,
    tolerance_entry.ToleranceTable,
    tolerance_entry.NoiseTable,
    expectation.ExpectTable,
    where.WhereTable,
    runs_entry.LatencyTable,
    runs_entry.RepeatTable,
]


def rows(table: type[msgspec.Struct]) -> list[str]:
    """One line of a Markdown table for each key: name, type, default, meaning."""
    kind = inspect.type_info(table)
    assert isinstance(kind, inspect.StructType)
    inherited = selector.SelectorTable.__struct_fields__ if table is not selector.SelectorTable else ()
    return [
        f"| `{field.encode_name}` | {_type(field.type)} | {_default(field)} | {_meaning(field.type)} |"
        for field in kind.fields
        if field.name not in inherited or not issubclass(table, selector.SelectorTable)
    ]


def _type(kind: inspect.Type) -> str:
    return "a verdict" if "reference_disputed" in expected(kind) else expected(kind)


def _meaning(kind: inspect.Type) -> str:
    assert isinstance(kind, inspect.Metadata)
    return str((kind.extra_json_schema or {})["description"])


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    return "" if field.default is msgspec.NODEFAULT else f"`{json.dumps(msgspec.to_builtins(field.default))}`"


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.__name__)
def test_every_key_is_in_the_reference(table: type[msgspec.Struct]) -> None:
    page = (REFERENCE / "matrix.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows(table) if row not in page] == []


def test_every_conversion_is_in_the_reference() -> None:
    page = (REFERENCE / "matrix.md").read_text(encoding="utf-8").splitlines()
    rows = [f"| `{name}` | {one.what} | {one.by} |" for name, one in CONVERSIONS.items()]
    assert [row for row in rows if row not in page] == []


def test_the_example_of_the_reference_is_a_matrix() -> None:
    page = (REFERENCE / "matrix.md").read_text(encoding="utf-8")
    examples = page.split("```toml\n")[1:]
    matrix = matrix_from(tomllib.loads(examples[0].split("```")[0]), Path("example.toml"))
    assert len(matrix.targets) == 2


def test_the_schema_refuses_unknown_keys_everywhere() -> None:
    tables: dict[str, Any] = matrix_schema()["$defs"]
    objects = {name: table for name, table in tables.items() if "properties" in table}
    assert len(objects) == 23
    assert all(table["additionalProperties"] is False for table in objects.values())
    with_options = {name for name, table in objects.items() if "patternProperties" in table}
    selecting = {"ExcludeTable", "ToleranceTable", "ExpectTable", "LatencyTable", "RepeatTable"}
    assert with_options == {"AxesTable", *selecting}
    globs = tables["ExcludeTable"]["properties"]["suite"]["anyOf"]
    assert tables["ExcludeTable"]["patternProperties"] == {"^option\\..+$": {"anyOf": globs}}


def test_the_schema_has_every_verdict() -> None:
    assert set(matrix_schema()["$defs"]["Verdict"]["enum"]) == {verdict.value for verdict in Verdict}

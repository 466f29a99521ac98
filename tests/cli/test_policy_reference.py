"""What is published about the policy of a gate says what the code does."""

import json
import tomllib
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from harness.cli.gate_policy import FlakyTable, load_gate_policy
from harness.core.files.structure import expected
from harness.plan.selector import SelectorTable
from harness.report.changes.gate import Enter, GateLimits

DOCS = Path(__file__).parents[2] / "docs"


def rows(table: type[msgspec.Struct]) -> list[str]:
    """One line of a Markdown table for each key: name, type, default, meaning."""
    kind = inspect.type_info(table)
    assert isinstance(kind, inspect.StructType)
    selects = SelectorTable.__struct_fields__ if issubclass(table, SelectorTable) else ()
    return [
        f"| `{field.encode_name}` | {_type(field.type)} | {_default(field)} | {_meaning(field.type)} |"
        for field in kind.fields
        if field.name not in selects and isinstance(field.type, inspect.Metadata)
    ]


def _type(kind: inspect.Type) -> str:
    words = expected(kind)
    return "a verdict, or a list" if "reference_disputed" in words else words


def _default(field: inspect.Field) -> str:
    if field.required:
        return "required"
    return "" if field.default in (msgspec.UNSET, msgspec.NODEFAULT) else f"`{json.dumps(field.default)}`"


def _meaning(kind: inspect.Type) -> str:
    assert isinstance(kind, inspect.Metadata)
    return str((kind.extra_json_schema or {})["description"])


@pytest.mark.parametrize("table", [GateLimits, Enter, FlakyTable], ids=lambda table: table.__name__)
def test_every_key_is_in_the_reference(table: type[msgspec.Struct]) -> None:
    page = (DOCS / "reference" / "diff.md").read_text(encoding="utf-8").splitlines()
    assert [row for row in rows(table) if row not in page] == []


def test_the_example_is_a_policy(tmp_path: Path) -> None:
    page = (DOCS / "how-to" / "gate.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    assert tomllib.loads(example)
    path = tmp_path / "gate.toml"
    path.write_text(example, "utf-8")
    policy = load_gate_policy(path)
    assert (policy.limits.gone, len(policy.flakes)) == (5, 1)

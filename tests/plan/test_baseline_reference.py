"""What is published about baselines says what the code does."""

import json
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from harness.core.files.structure import expected
from harness.plan.baseline_file import BaselineFile, BaselineTarget, load_baselines

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


def rows(table: type[msgspec.Struct]) -> list[str]:
    """One line of a Markdown table for each key: name, type, default, meaning."""
    kind = inspect.type_info(table)
    assert isinstance(kind, inspect.StructType)
    found = []
    for field in kind.fields:
        assert isinstance(field.type, inspect.Metadata)
        meaning = (field.type.extra_json_schema or {})["description"]
        default = "required" if field.required else "`{}`"
        found.append(f"| `{field.encode_name}` | {expected(field.type)} | {default} | {meaning} |")
    return found


@pytest.mark.parametrize("table", [BaselineFile, BaselineTarget])
def test_every_key_is_in_the_reference(table: type[msgspec.Struct]) -> None:
    page = (REFERENCE / "baseline.md").read_text("utf-8").splitlines()
    assert [row for row in rows(table) if row not in page] == []


def test_the_example_is_a_baseline(tmp_path: Path) -> None:
    page = (REFERENCE / "baseline.md").read_text("utf-8")
    file = tmp_path / "b.toml"
    file.write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")
    (read,) = load_baselines(file)
    assert len(read.by_cell) == 3
    assert json.loads((REFERENCE / "baseline.schema.json").read_text("utf-8"))["title"]

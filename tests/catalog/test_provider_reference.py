"""The reference of all providers has everything in the catalogue."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.catalog.catalog import Catalog, load_catalog
from harness.catalog.provider import Provider
from harness.catalog.reference import reference
from harness.data_files import data_root

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "providers.md"
FILES = sorted((data_root() / "matrices" / "providers").glob("*.toml"))


def published() -> str:
    return PAGE.read_text(encoding="utf-8")


def section(page: str, name: str) -> str:
    return page.split(f"\n## {name}\n", 1)[1].split("\n## ", 1)[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_option_and_mode_of_every_file_is_in_it(file: Path) -> None:
    table: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    rows = section(published(), table["name"]).splitlines()
    for key, name in [
        ("option", "key"),
        ("dynamic_option", "key"),
        ("variable", "name"),
        ("precision", "name"),
    ]:
        for entry in table.get(key, []):
            shown = entry["meaning"].replace("|", "\\|").replace("<", "&lt;")
            row = [row for row in rows if row.startswith(f"| `{entry[name]}` |") and shown in row]
            assert row, f"{entry[name]} of {table['name']}"
    for source in table["source"]:
        assert any(row.endswith(f". {source}") for row in rows)


def test_every_provider_is_in_the_index() -> None:
    index = published().split("\n## ", 1)[0]
    for name in load_catalog().names:
        assert f"| [{name}](#{name.lower()}) |" in index


def test_all_rows_of_a_table_have_as_many_cells() -> None:
    blocks = [block.splitlines() for block in published().split("\n\n") if block.startswith("|")]
    assert blocks
    for head, line, *rows in blocks:
        assert set(line) == {"|", "-"}
        assert {row.replace("\\|", "").count("|") for row in rows} <= {head.count("|")}


def test_no_text_leaves_its_cell(provider: Provider) -> None:
    hostile = "a|b <script>`x` \n\n## c"
    option = msgspec.structs.replace(
        provider.options[1], meaning=hostile, default=hostile, values=(hostile,), source=(hostile,)
    )
    mode = msgspec.structs.replace(provider.precision_modes[0], needs=hostile, options={"mode": hostile})
    written = msgspec.structs.replace(provider, options=(option,), precision_modes=(mode,), advice=hostile)
    page = reference(Catalog((written,)))
    assert page.count("<script") == page.count("\\|b <script>`x` ## c ``")  # only as code
    assert "| a\\|b &lt;script>" in page
    assert "\n## c" not in page
    rows = [line for line in page.splitlines() if line.startswith("| `mode`")]
    assert [row.replace("\\|", "").count("|") for row in rows] == [7]

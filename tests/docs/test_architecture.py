"""The map in docs/explanation/architecture.md names files and folders that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.test_floors import imported_packages

HERE = Path(__file__).parents[2]
ROOT = HERE / "harness"
PAGE = (HERE / "docs" / "explanation" / "architecture.md").read_text("utf-8")
TABLE = re.compile(r"^\|.*\| modules of `harness/([\w/]+)` \|\n\|[-| ]*\|\n((?:\|.*\n)+)", re.MULTILINE)


def modules() -> Iterator[tuple[str, str]]:
    """Folder and name of each module in the tables of parts."""
    for folder, rows in TABLE.findall(PAGE):
        for row in rows.splitlines():
            names = re.findall(r"`([^`]+)`", row)
            assert names, row
            yield from ((folder, name) for name in names)


def test_the_tables_are_found() -> None:
    assert {folder for folder, _ in modules()} == {"engine", "agent", "annex/triage", "annex/fuzz"}


@pytest.mark.parametrize(("folder", "name"), list(modules()))
def test_every_module_of_a_table_is_in_its_folder(folder: str, name: str) -> None:
    path = ROOT / folder / name
    assert path.is_file() if name.endswith(".py") else path.is_dir()


def test_every_package_of_a_floor_is_in_the_map() -> None:
    _, _, text = PAGE.partition("## Packages of a floor")
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", text.partition("\n## ")[0], re.MULTILINE)
    assert {floor for floor, _ in rows} == {"core", "corpus", "engine", "report"}
    for floor, row in rows:
        named = re.findall(r"`(\w+)`", row)
        imported = imported_packages(ROOT / floor)
        assert {f"harness.{floor}.{name}" for name in named} == imported.keys()
        for at, name in enumerate(named):  # in their order
            before = {f"harness.{floor}.{one}" for one in named[:at]}
            assert imported[f"harness.{floor}.{name}"] <= before, name


def test_every_path_in_the_text_is_there() -> None:
    named = re.findall(r"`(\w+(?:/\w+)+\.py)`", TABLE.sub("", PAGE))
    assert len(named) >= 8  # else nothing is looked at
    for path in named:
        assert (ROOT / path).is_file() or (HERE / path).is_file(), path


def test_every_folder_of_the_floors_is_there() -> None:
    rows = re.findall(r"^\| \d \| ((?:`\w+`(?:, )?)+) \|", PAGE, re.MULTILINE)
    folders = {folder for row in rows for folder in re.findall(r"`(\w+)`", row)}
    assert {*folders, "annex"} == {path.parent.name for path in ROOT.glob("*/__init__.py")}
    annexes = set(re.findall(r"^\| \[`(\w+)`\]", PAGE, re.MULTILINE))
    assert annexes == {path.parent.name for path in ROOT.glob("annex/*/__init__.py")}

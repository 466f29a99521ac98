"""The recipes of CONTRIBUTING.md name files, folders and tables that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "CONTRIBUTING.md"
RECIPES = PAGE.read_text("utf-8").partition("\n## Recipes\n")[2].partition("\n## Rules\n")[0]
TABLE = re.compile(r"[A-Z][A-Z_]+")
MOST_FILES = {
    "Add a provider": 2,
    "Add a scenario": 2,
    "Add a command": 4,
    "Add an option to `run`": 2,
    "Add a page to the report": 3,
    "Add a column to the table of cells": 1,
    "Mend the noise of an operator": 2,
    "Add an operator, or a fact about one": 4,
    "Add a fact": 4,
    "Add or change a verdict rule": 3,
    "Add a verdict": 4,
    "Add a task whose answers are compared": 5,
    "Add a transformation of the reducer": 3,
    "Add a variation of a fault": 3,
    "Add a transformation that keeps the answer of a model": 3,
    "Try a fault of an execution provider": 6,
    "Change how an agent starts": 2,
    "Change the agent protocol": 6,
    "Change a tolerance": 3,
    "Try a new release of onnxruntime": 8,
    "Add a page to the documentation": 1,
    "Try what strangers may send": 1,
}
"""Recipe -> files that it links to, at most. An operator is one row: the others are the page that is
generated, and modules with rules. A fact is measured in one of two modules, and a tolerance is in one matrix,
or in one module with the page that publishes it."""


def recipes() -> dict[str, str]:
    return {part.partition("\n")[0]: part for part in RECIPES.split("\n### ")[1:]}


def linked(text: str) -> list[str]:
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    children = [child for token in tokens for child in token.children or ()]
    return [str(child.attrGet("href")) for child in children if child.type == "link_open"]


def paths(text: str) -> Iterator[str]:
    """What reads as a path of the repository: targets of links, and code with a slash and no space."""
    yield from linked(text)
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        for child in token.children or ():
            if child.type == "code_inline" and "/" in child.content and " " not in child.content:
                yield child.content


def test_these_are_the_recipes() -> None:
    assert list(recipes()) == list(MOST_FILES)


@pytest.mark.parametrize("name", MOST_FILES)
def test_every_file_that_a_recipe_names_is_there(name: str) -> None:
    named = list(paths(recipes()[name]))
    assert named
    for path in named:
        target = (ROOT / path).resolve()
        assert target.exists(), path
        assert target.is_relative_to(ROOT), path


@pytest.mark.parametrize("name", MOST_FILES)
def test_a_recipe_takes_few_files(name: str) -> None:
    assert len(set(linked(recipes()[name]))) <= MOST_FILES[name]


def test_every_table_that_a_recipe_names_is_in_the_file_beside_it() -> None:
    steps = [step for text in recipes().values() for step in re.split(r"\n(?=\d\. |\* |\| )", text)]
    found = 0
    for step in steps:
        tables = [code for code in re.findall(r"`([^`]+)`", step) if TABLE.fullmatch(code)]
        modules = [path for path in linked(step) if path.endswith(".py")]
        for table in tables:
            assert any(
                re.search(rf"^{table}\b", (ROOT / path).read_text("utf-8"), re.MULTILINE) for path in modules
            ), step
            found += 1
    assert found >= 4  # else nothing is looked at

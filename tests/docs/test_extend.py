"""The examples of docs/how-to/extend.md are the modules of tests/extension, which tests run."""

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = (TESTS.parent / "docs" / "how-to" / "extend.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_example_is_a_module_that_is_tested() -> None:
    modules = {path.read_text("utf-8") for path in (TESTS / "extension").glob("*.py")}
    assert {*blocks("python")} == modules
    assert all(len(one.splitlines()) <= 30 for one in modules)


def test_every_entry_point_is_one_of_that_package() -> None:
    (path,) = (TESTS / "extension").glob("*.dist-info/entry_points.txt")
    shown = "".join(blocks("toml")).replace('[project.entry-points."', "[").replace('"]', "]")
    lines = [line.replace('"', "") for line in shown.splitlines() if line]
    assert lines == [line for line in path.read_text("utf-8").splitlines() if line]


def test_the_template_is_the_one_of_that_package() -> None:
    assert blocks("html") == [(TESTS / "extension" / "page_slow.html").read_text("utf-8")]

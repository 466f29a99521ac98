"""Templates: compiled once, and again when they or their compiler change."""

import os
import sys
from pathlib import Path

import jinja2
import pytest

from harness.report.pages import template_loader
from harness.report.pages.template_loader import TemplateLoader


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the templates that Jinja compiles."""
    names: list[str] = []
    compile_ = jinja2.Environment.compile

    def noted(self: jinja2.Environment, source: str, name: str, filename: str) -> object:
        names.append(name)
        return compile_(self, source, name, filename)

    monkeypatch.setattr(jinja2.Environment, "compile", noted)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    return names


def rendered(folder: Path, shipped: Path) -> str:
    """The page, by an environment of its own: that of another process."""
    environment = jinja2.Environment(loader=TemplateLoader([folder], shipped), autoescape=True)
    return environment.get_template("page.html").render(name="<b>")


def test_a_shipped_template_is_compiled_once_for_each_of_its_contents(
    tmp_path: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.html"
    page.write_text("one {{ name }}", encoding="utf-8")
    assert [rendered(tmp_path, tmp_path) for _ in range(3)] == ["one &lt;b&gt;"] * 3
    assert compiled == ["page.html"]

    page.write_text("two {{ name }}", encoding="utf-8")
    os.utime(page, (1, 1))  # whatever the clock of the file system
    assert [rendered(tmp_path, tmp_path) for _ in range(2)] == ["two &lt;b&gt;"] * 2
    assert len(compiled) == 2

    monkeypatch.setattr(template_loader, "_MADE_BY", "another Jinja")
    assert rendered(tmp_path, tmp_path) == "two &lt;b&gt;"
    assert len(compiled) == 3


def test_nothing_is_written_into_a_folder_of_the_user(tmp_path: Path, compiled: list[str]) -> None:
    (tmp_path / "page.html").write_text("{{ name }}", encoding="utf-8")
    assert rendered(tmp_path, tmp_path / "shipped") == "&lt;b&gt;"
    assert [path.name for path in tmp_path.iterdir()] == ["page.html"]
    assert compiled == ["page.html"]

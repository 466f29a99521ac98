"""A new page of the report takes one module, one template and one entry in the table, and nothing else."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jinja2 import meta

from harness.core.records.verdict import Verdict
from harness.report.pages.page import Pages
from harness.report.site import PAGES, SitePage
from harness.report.view import Report
from tests.changed_package import changed_package
from tests.kit import record, write_run

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "report_templates"
ENTRY = '    SitePage(title="Crashes", stem="crashes", template="page_crashes.html", views=crash_views),\n'
IMPORT = "from harness.report.pages.crashes import crash_views\n"
MODULE = """
import msgspec

from harness.core.records.verdict import Verdict

class Crashes(msgspec.Struct, frozen=True, kw_only=True):
    target: str
    models: tuple[str, ...]

def crash_views(report):
    for column in report.columns:
        models = tuple(r.model for r in report.by_column[column] if r.verdict is Verdict.CRASH)
        if models:
            yield Crashes(target=column.label, models=models)
"""
TEMPLATE = """{% extends "site_page.html" %}
{% block content %}
<h1>Crashes of {{ view.target }}</h1>
<p>{{ view.models|join(", ") }} in {{ report.name }}</p>
{% endblock %}
"""


CHANGES = {
    "harness/report/site.py": {
        "from harness.report.pages.details import": IMPORT,
        '    SitePage(title="Changes"': ENTRY,
    }
}


def test_a_module_a_template_and_an_entry_are_enough(tmp_path: Path) -> None:
    home = changed_package(tmp_path / "changed", CHANGES)
    (home / "harness" / "report" / "pages" / "crashes.py").write_text(MODULE, encoding="utf-8")
    (home / "report_templates" / "page_crashes.html").write_text(TEMPLATE, encoding="utf-8")
    records = [
        record("a", target="npu", verdict=Verdict.CRASH),
        record("b", target="gpu", verdict=Verdict.CRASH),
        record("c", target="cpu"),
    ]
    out = tmp_path / "site"
    command = [
        sys.executable,
        "-m",
        "harness",
        "report",
        str(write_run(tmp_path / "run", records)),
        "--out",
        str(out),
    ]
    env = {**os.environ, "PYTHONPATH": str(home)}
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 0, done.stderr + done.stdout
    first, second = ((out / name).read_text(encoding="utf-8") for name in ("crashes.html", "crashes-2.html"))
    assert "<h1>Crashes of npu</h1>\n<p>a in local.toml</p>" in first
    assert "<h1>Crashes of gpu</h1>\n<p>b in local.toml</p>" in second
    for page in out.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert text.count('<a href="crashes.html"') == 1, page.name
        assert ('<a href="crashes.html" aria-current="page">Crashes</a>' in text) is ("crashes" in page.name)


@pytest.mark.parametrize("page", PAGES, ids=[page.template for page in PAGES])
def test_every_page_is_made_that_way(page: SitePage) -> None:
    """Its module has its views, and its template uses nothing but the report and its view."""
    module = inspect.getmodule(page.views)
    assert module is not None
    assert module.__name__.rpartition(".")[0] == "harness.report.pages"
    (parameter,) = inspect.signature(page.views).parameters.values()
    assert parameter.annotation is Report
    assert page.template.startswith("page_")
    assert (
        (TEMPLATES / page.template).read_text(encoding="utf-8").startswith('{% extends "site_page.html" %}')
    )
    wanted = set()
    environment = Pages().environment
    names = {page.template}
    while names:
        parsed = environment.parse((TEMPLATES / names.pop()).read_text(encoding="utf-8"))
        wanted |= meta.find_undeclared_variables(parsed) - environment.globals.keys()
        names |= {str(name) for name in meta.find_referenced_templates(parsed)} - {"site_page.html"}
    assert wanted <= {"report", "view"}


def test_only_the_table_names_the_pages() -> None:
    view = (ROOT / "harness" / "report" / "view.py").read_text(encoding="utf-8")
    modules = {Path(str(inspect.getfile(page.views))).stem for page in PAGES}
    assert len(modules) == len(PAGES) - 1  # the two pages of operators share theirs
    assert not [name for name in modules if f"harness.report.{name} " in view]

"""Another distribution adds a page of the report by an entry point."""

from collections.abc import Callable
from pathlib import Path

from harness.core.record import Record
from harness.report.render import render

PAGE = """
from pathlib import Path

from harness.report.site import SitePage

def counted(report):
    yield len(report.run.records)

HERE = Path(__file__).parent
COUNTED = SitePage(
    title="Counted", stem="counted", template="page_counted.html", views=counted, templates=HERE
)
"""
TEMPLATE = '{% extends "site_page.html" %}{% block content %}<p>{{ view }} <b>records</b></p>{% endblock %}'


def test_a_page_from_another_distribution(
    install: Callable[..., Path],
    record: Callable[..., Record],
    write_run: Callable[..., Path],
    tmp_path: Path,
) -> None:
    folder = install("acme", "[ep_harness.report_pages]\ncounted = acme_module:COUNTED\n", PAGE)
    (folder / "page_counted.html").write_text(TEMPLATE)
    out = tmp_path / "site"
    render([write_run("run", [record("a"), record("b")])], out)
    assert "<p>2 <b>records</b></p>" in (out / "counted.html").read_text(encoding="utf-8")
    assert '<a href="counted.html"' in (out / "index.html").read_text(encoding="utf-8")

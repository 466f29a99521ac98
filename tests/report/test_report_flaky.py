"""Flaky cells in the report: failed, and counted apart."""

from pathlib import Path

import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.report.cells.report_cell import SHOWN_RETRIES
from harness.report.pages.details import detail_pages
from harness.report.pages.failures import Failures
from harness.report.pages.model_grid import model_pages
from harness.report.view import build_report
from tests.kit import merged, record, site


def nothing(_folder: Path, _record: Record) -> str:
    return ""


@pytest.fixture
def flaky() -> list[Record]:
    return [
        record("a", verdict=Verdict.MISMATCH, retries=(Verdict.PASS, Verdict.PASS)),
        record("b", verdict=Verdict.CRASH, retries=(Verdict.CRASH, Verdict.HANG)),
        record("c", verdict=Verdict.CRASH, retries=(Verdict.CRASH, Verdict.CRASH)),
        record("d"),
    ]


def test_a_flaky_cell_never_counts_as_passed(flaky: list[Record]) -> None:
    report = build_report(merged(flaky), nothing, {})
    (column,) = report.summary
    assert (column.by_ep.count, column.failed.count, column.flaky) == (1, 3, 2)
    (models,) = model_pages(report)
    assert [share.count for share in models.suites[0].passed] == [1]
    assert report.unexpected_failures.count == 3
    assert dict(report.verdicts) == {Verdict.CRASH: 2, Verdict.MISMATCH: 1, Verdict.PASS: 1}


def test_flaky_cells_are_listed_with_what_each_try_gave(flaky: list[Record]) -> None:
    report = build_report(merged(flaky), nothing, {})
    assert [(cell.record.cell, cell.record.verdict, cell.record.retries) for cell in report.flaky] == [
        ("onnx-node/a[npu]", Verdict.MISMATCH, (Verdict.PASS, Verdict.PASS)),
        ("onnx-node/b[npu]", Verdict.CRASH, (Verdict.CRASH, Verdict.HANG)),
    ]
    (page,) = detail_pages(report)
    details = {cell.record.cell: dict(cell.facts) for section in page.sections for cell in section.details}
    assert details["onnx-node/b[npu]"]["Tried again"] == "crash, hang"
    assert details["onnx-node/c[npu]"]["Tried again"] == "crash, crash"
    (models,) = model_pages(report)
    squares = [row.cells[0] for row in models.suites[0].rows]
    assert [square.text for square in squares if square] == ["mismatch, flaky", "crash, flaky", "crash", ""]


def test_the_site_says_it_where_the_other_counts_are(flaky: list[Record], tmp_path: Path) -> None:
    pages = site(tmp_path, build_report(merged(flaky), nothing, {}))
    text = " ".join(pages["index.html"].split())
    assert "2 flaky cells</strong></a> failed and gave another verdict when tried again; they count" in text
    assert "Flaky: 2 of the failed cells gave another verdict when tried again." in text
    assert "Flaky cells <span" in pages["failures.html"]


def test_without_flaky_cells_no_page_mentions_them(tmp_path: Path) -> None:
    steady = record("a", verdict=Verdict.MISMATCH, retries=(Verdict.MISMATCH,))
    report = build_report(merged([steady, record("b")]), nothing, {})
    assert report.flaky == ()
    for page in site(tmp_path, report).values():
        assert "flaky" not in page.partition("</style>")[2].lower()


def test_endless_flakes_and_retries_do_not_fill_the_page(tmp_path: Path) -> None:
    retries = (Verdict.HANG,) * (SHOWN_RETRIES + 5)
    count = Failures.shown_flaky + 7
    many = [record(f"m{i:03}", verdict=Verdict.CRASH, retries=retries) for i in range(count)]
    report = build_report(merged(many), nothing, {})
    assert len(report.flaky) == count
    first = next(iter(detail_pages(report))).sections[0].details[0]
    assert dict(first.facts)["Tried again"] == ", ".join(["hang"] * SHOWN_RETRIES) + ", 5 more"
    table = site(tmp_path, report)["failures.html"].partition('id="flaky"')[2].partition("</table>")
    assert table[0].count('<tr><th scope="row">') == Failures.shown_flaky
    assert table[0].count("hang") == Failures.shown_flaky * SHOWN_RETRIES
    assert table[0].count("and 5 more") == Failures.shown_flaky
    assert "and 7 more" in table[2]

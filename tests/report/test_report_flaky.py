"""Flaky cells in the report: failed, and counted apart."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.record import Record
from harness.core.verdict import Verdict
from harness.report.flaky import SHOWN_FLAKY, SHOWN_RETRIES
from harness.report.merge import MergedRun
from harness.report.view import Report, build_report

MakeRecord = Callable[..., Record]
Merged = Callable[..., MergedRun]
Site = Callable[[Report], dict[str, str]]


def nothing(_folder: Path, _record: Record) -> str:
    return ""


@pytest.fixture
def flaky(record: MakeRecord) -> list[Record]:
    return [
        record("a", verdict=Verdict.MISMATCH, retries=(Verdict.PASS, Verdict.PASS)),
        record("b", verdict=Verdict.CRASH, retries=(Verdict.CRASH, Verdict.HANG)),
        record("c", verdict=Verdict.CRASH, retries=(Verdict.CRASH, Verdict.CRASH)),
        record("d"),
    ]


def test_a_flaky_cell_never_counts_as_passed(flaky: list[Record], merged: Merged) -> None:
    report = build_report(merged(flaky), nothing, {})
    (lane,) = report.summary
    assert (lane.by_ep.count, lane.failed.count, lane.flaky) == (1, 3, 2)
    assert [share.count for share in report.models[0].suites[0].passed] == [1]
    assert report.unexpected_failures.count == 3
    assert dict(report.verdicts) == {Verdict.CRASH: 2, Verdict.MISMATCH: 1, Verdict.PASS: 1}


def test_flaky_cells_are_listed_with_what_each_try_gave(flaky: list[Record], merged: Merged) -> None:
    report = build_report(merged(flaky), nothing, {})
    assert report.flaky.count == 2
    assert [(cell.cell, cell.verdict, cell.retries) for cell in report.flaky.shown] == [
        ("onnx-node/a[npu]", Verdict.MISMATCH, (Verdict.PASS, Verdict.PASS)),
        ("onnx-node/b[npu]", Verdict.CRASH, (Verdict.CRASH, Verdict.HANG)),
    ]
    details = {
        cell.cell: dict(cell.facts) for section in report.details[0].sections for cell in section.details
    }
    assert details["onnx-node/b[npu]"]["Tried again"] == "crash, hang"
    assert details["onnx-node/c[npu]"]["Tried again"] == "crash, crash"
    squares = [row.cells[0] for row in report.models[0].suites[0].rows]
    assert [square.text for square in squares if square] == ["mismatch, flaky", "crash, flaky", "crash", ""]


def test_the_site_says_it_where_the_other_counts_are(flaky: list[Record], merged: Merged, site: Site) -> None:
    pages = site(build_report(merged(flaky), nothing, {}))
    text = " ".join(pages["index.html"].split())
    assert "2 flaky cells</strong></a> failed and gave another verdict when tried again; they count" in text
    assert "Flaky: 2 of the failed cells gave another verdict when tried again." in text
    assert "Flaky cells <span" in pages["failures.html"]


def test_without_flaky_cells_nobody_speaks_of_them(record: MakeRecord, merged: Merged, site: Site) -> None:
    steady = record("a", verdict=Verdict.MISMATCH, retries=(Verdict.MISMATCH,))
    report = build_report(merged([steady, record("b")]), nothing, {})
    assert report.flaky.count == 0
    for page in site(report).values():
        assert "flaky" not in page.partition("</style>")[2].lower()


def test_endless_flakes_and_retries_do_not_fill_the_page(
    record: MakeRecord, merged: Merged, site: Site
) -> None:
    retries = (Verdict.HANG,) * (SHOWN_RETRIES + 5)
    many = [record(f"m{i:03}", verdict=Verdict.CRASH, retries=retries) for i in range(SHOWN_FLAKY + 7)]
    report = build_report(merged(many), nothing, {})
    assert (report.flaky.count, len(report.flaky.shown), report.flaky.left_out) == (
        SHOWN_FLAKY + 7,
        SHOWN_FLAKY,
        7,
    )
    first = report.flaky.shown[0]
    assert (len(first.retries), first.left_out) == (SHOWN_RETRIES, 5)
    facts = dict(report.details[0].sections[0].details[0].facts)
    assert facts["Tried again"] == ", ".join(["hang"] * SHOWN_RETRIES) + ", 5 more"
    assert "and 7 more" in site(report)["failures.html"]

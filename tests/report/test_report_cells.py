"""The table of outputs in a cell's details: each figure stands below its own heading."""

import html
import re
from pathlib import Path

from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.records.facts import Repeats
from harness.core.records.run_work import Unchecked
from harness.core.records.verdict import Verdict
from harness.report.formats.markdown import to_markdown
from harness.report.formats.rows import cell_rows, target_rows
from harness.report.view import build_report
from harness.report.words.facts_in_words import evidence
from tests.kit import merged, record, site

WRONG = OutputMetrics(
    name="wrong",
    dtype="float32",
    shape=(3, 4),
    max_abs=0.25,
    max_rel=0.5,
    delivered_bits=6.75,
    mismatched=3,
    elements=12,
    rtol=0.001,
    atol=0.0002,
    headroom=17.5,
    noise=Noise(precision="float32", rms=40.0, max=400.0, like="bfloat16"),
)
EXACT = OutputMetrics(name="exact", dtype="int64", shape=(), max_abs=0.0, max_rel=0.0, elements=1)


def words(part: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", part)).split())


def test_each_figure_is_below_its_heading(tmp_path: Path) -> None:
    one = record("m", verdict=Verdict.MISMATCH, outputs=(WRONG, EXACT))
    page = site(tmp_path, build_report(merged([one]), lambda *_: "", {}))["cells.html"]
    (table,) = re.findall(r'<table class="metrics">(.*?)</table>', page, re.DOTALL)
    head, *rows = [
        [words(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in re.findall(r"<tr[^>]*>(.*?)</tr>", table, re.DOTALL)
    ]
    wrong, exact = (dict(zip(head, row, strict=True)) for row in rows)
    noise = wrong.pop("Error / noise")
    assert "40" in noise
    assert wrong == {
        "Output": "wrong float32[3, 4]",
        "Out of tolerance": "3 of 12",
        "Max abs": "0.25",
        "Max rel": "0.5",
        "Allowed": "0.0002 + 0.001 · |golden|",
        "Error / allowed": "17.5",
        "Bits": "6.75",
    }
    assert (exact["Output"], exact["Out of tolerance"], exact["Bits"]) == ("exact int64[]", "0 of 1", "exact")
    assert exact["Error / noise"] == ""


def test_what_was_not_checked_is_told_on_the_page_and_in_the_table(tmp_path: Path) -> None:
    why = "one run takes 2.1e+10 operations, more than 1e+10"
    left = tuple(Unchecked(check=check, because=why) for check in ("second run", "other inputs"))
    once = Repeats(runs=1, sessions=1, distinct=1)
    often = Repeats(runs=10, sessions=1, distinct=2, differing=3, max_abs=0.5)
    records = [record("large", unchecked=left, repeats=once), record("small", repeats=often)]
    report = build_report(merged(records), lambda *_: "", {})
    page = words(site(tmp_path, report)["cells.html"])
    assert f"second run, other inputs; because {why}" in page
    large, small = cell_rows(report.run)
    assert large.unchecked == f"not checked: second run, other inputs; because {why}"
    assert (large.runs, small.runs, small.results, small.unchecked) == (1, 10, 2, "")
    (target,) = target_rows(report)
    assert target.unchecked == 1
    assert "Not checked: 1 cell without a second run or another check" in to_markdown(report, (target,))


def test_how_often_a_cell_ran_and_how_many_runs_differ() -> None:
    often = Repeats(runs=10, sessions=1, distinct=2, differing=3, max_abs=0.5)
    told = dict(evidence(record("small", repeats=often)))["Repeats"]
    assert (
        told
        == "10 runs in one session: 2 different results, up to 0.5 from the first, 3 runs unlike the first"
    )


def test_what_was_fed_is_on_the_page(tmp_path: Path) -> None:
    one = record("m", verdict=Verdict.MISMATCH, fed="generated 2x3x64x96, seed 0")
    page = words(site(tmp_path, build_report(merged([one]), lambda *_: "", {}))["cells.html"])
    assert "Fed generated 2x3x64x96, seed 0" in page

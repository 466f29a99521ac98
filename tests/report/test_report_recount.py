"""The overview, counted again from ``records.jsonl`` by other means than the product's."""

import html
import random
import re
from collections import Counter
from pathlib import Path

from harness.core.records.verdict import Verdict
from harness.report.report_files import write_report
from tests.kit import read_rows, record, write_run

HEADINGS = ("Passed", "Passed in part", "Untested", "Unsupported", "Failed")


def test_every_figure_of_the_overview_is_what_the_records_say(tmp_path: Path) -> None:
    draw = random.Random(7)  # noqa: S311 - a choice of verdicts, the same in each run
    targets: dict[str, list[Verdict]] = {
        "mixed": [verdict for verdict in Verdict if verdict is not Verdict.NOT_RUN],
        "good": [Verdict.PASS],
        "bad": [Verdict.CRASH, Verdict.HANG],
        "absent": [Verdict.UNAVAILABLE],
        "nearly": [Verdict.PASS] * 400 + [Verdict.FALLBACK],
    }
    records = [
        record(f"m{i}", target=target, verdict=draw.choice(verdicts), axes={"precision": precision})
        for target, verdicts in targets.items()
        for precision in ("fp32", "fp16")
        for i in range(700)
    ]
    run = write_run(tmp_path / "run", records)
    # So many columns have a page of their own; the overview has one table of them.
    shown = overview(write_report([run], run / "report")[0].with_name("targets.html"))
    rows = read_rows(run)
    columns = {(row["target"], row["axes"]["precision"]) for row in rows}
    assert len(shown) == len(columns) == 10
    for target, precision in columns:
        its = [r for r in rows if r["target"] == target and r["axes"]["precision"] == precision]
        families = Counter(row["family"] for row in its)
        tried = len(its) - families["skipped"] - families["excluded"] - families["missing"]
        partly = sum(row["verdict"] == "pass_partial" for row in its)
        counts = (
            families["passed"] - partly,
            partly,
            families["untested"],
            families["unsupported"],
            families["failed"],
        )
        row = shown[target if precision == "fp32" else f"{target} precision=fp16"]
        for heading, count in zip(HEADINGS, counts, strict=True):
            assert row[heading] == expected(count, tried), (target, precision, heading)
        assert row["Tried"] == f"{tried:,} of {len(its):,} planned"


def expected(count: int, tried: int) -> str:
    if not tried:
        return "0 no data"
    share = f"{round(100 * count / tried, 1):.1f}%"
    if count in {0, tried}:
        share = "100%" if count else "0%"
    elif share in {"100.0%", "0.0%"}:
        share = "99.9%" if share == "100.0%" else "0.1%"
    return f"{count:,} of {tried:,} · {share}"


def overview(page: Path) -> dict[str, dict[str, str]]:
    """Return column of the report -> heading -> text of its row in the summary."""
    summary = page.read_text("utf-8").partition('<section id="summary">')[2].partition("</section>")[0]
    found = {}
    for body in summary.split("<tbody>")[1:]:
        name, setting = (
            re.search(rf'<span class="{part}">(.*?)</span>', body) for part in ("name", "setting")
        )
        assert name
        column = name[1] + (f" {setting[1]}" if setting else "")
        cells = re.findall(r'<td class="num" data-label="([^"]*)">(.*?)</td>', body, re.DOTALL)
        found[column] = {
            label: " ".join(html.unescape(re.sub(r"<[^>]*>", " ", cell)).split()) for label, cell in cells
        }
    return found

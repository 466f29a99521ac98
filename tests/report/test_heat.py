"""The overview of a big matrix: one table of targets by scenarios, and the bars on a page of their own."""

from pathlib import Path
from urllib.parse import parse_qs

from harness.core.records.verdict import Verdict
from harness.report.pages.heat import CROWDED, heat_of
from harness.report.view import build_report
from tests.kit import merged, record, site

SCENARIOS = ("concurrent", "io_binding", "plain", "sessions", "zero_size")


def test_a_square_for_each_target_and_scenario(tmp_path: Path) -> None:
    records = [
        record(f"m{i}", target=target, axes={"scenario": scenario}, verdict=verdict)
        for target in ("npu", "gpu")
        for scenario in SCENARIOS
        for i in range(10)
        for verdict in [
            Verdict.CRASH
            if target == "gpu" and scenario == "plain" and i < 4
            else Verdict.FALLBACK
            if scenario == "zero_size"
            else Verdict.PASS
        ]
    ]
    report = build_report(merged(records), lambda *_: "", {})
    heat = heat_of(report)
    assert heat is not None
    assert (heat.axis, heat.values) == (
        "scenario",
        ("plain", "concurrent", "io_binding", "sessions", "zero_size"),
    )
    by_target = {row.target: row.cells for row in heat.rows}
    worst = by_target["gpu"][0]
    assert worst is not None
    assert (worst.passed.text, worst.failed, worst.unexpected, worst.tone) == (
        "6 of 10 (60.0%)",
        4,
        4,
        "heat-4",
    )
    assert [cell.tone for cell in by_target["npu"] if cell] == [*["heat-0"] * 4, "heat-idle"]
    assert parse_qs(worst.href.partition("#?")[2]) == {
        "column.target": ["gpu"],
        "column.scenario": ["plain"],
    }
    pages = site(tmp_path, report)
    assert 'class="heat"' in pages["index.html"]
    assert 'class="barrow"' not in pages["index.html"]
    assert pages["targets.html"].count('class="barrow"') == 10


def test_few_columns_have_their_bars_on_the_overview(tmp_path: Path) -> None:
    report = build_report(merged([record("m", target=f"t{i}") for i in range(CROWDED)]), lambda *_: "", {})
    assert heat_of(report) is None
    pages = site(tmp_path, report)
    assert "targets.html" not in pages
    assert pages["index.html"].count('class="barrow"') == CROWDED

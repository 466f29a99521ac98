"""The page *Package*: what is selected on each target, and what that means."""

from pathlib import Path
from typing import Any

from harness.core.records.facts import OptionEffect
from harness.core.records.verdict import Verdict
from harness.report.pages.package_page import PackageTable, package_view
from harness.report.view import Report, build_report
from tests.kit import latency, merged, record, site

_VARIANTS = ("cpu", "slow<b>")


def selection(target: str, chosen: str, verdict: Verdict = Verdict.PASS, **facts: Any) -> Any:
    return record(
        "main",
        target=target,
        suite="p",
        verdict=verdict,
        scenario={
            "variants": _VARIANTS,
            "answers": ("EP_NOT_APPLICABLE", "another provider"),
            "chosen": chosen,
        }
        | facts,
        axes={"scenario": "package"},
    )


def alone(variant: str, target: str, ms: float, verdict: Verdict = Verdict.PASS, **fields: Any) -> Any:
    # A first run has what later ones do not: its time is no basis for a comparison.
    timings = {"create": 1.0, "first_run": 100 / ms}
    found = latency(*[ms] * 3, waiting_threads=0.0)
    name = f"main/{variant}"
    return record(name, verdict, target=target, suite="p", timings_ms=timings, latency=found, **fields)


def report_of(*records: Any) -> Report:
    return build_report(merged(records), lambda _folder, _record: "", {})


def table(*records: Any) -> PackageTable:
    (view,) = package_view(report_of(*records))
    (found,) = view.tables
    return found


def test_no_page_without_a_package() -> None:
    assert not list(package_view(report_of(record("m"))))


def test_a_hole_is_told_in_words() -> None:
    found = table(selection("npu", "", Verdict.NO_VARIANT), alone("cpu", "cpu", 1.0))
    assert "Nothing matches" in found.columns[0].told
    assert [row[1][0].verdict for row in found.rows] == [None, None]


def test_a_slow_selection_is_told_with_the_fastest_right_one() -> None:
    records = [alone("cpu", "t", 1.0), alone("slow<b>", "t", 3.0)]
    assert table(selection("t", "slow<b>"), *records).columns[0].told == (
        "slow<b> is right, but slower: 3 times the time of cpu, which is right, too."
    )
    wrong = [alone("cpu", "t", 1.0, Verdict.MISMATCH), alone("slow<b>", "t", 3.0)]
    assert table(selection("t", "slow<b>"), *wrong).columns[0].told == "slow<b> is right."


def test_an_option_without_effect_is_told(tmp_path: Path) -> None:
    idle = alone("cpu", "t", 1.0, effect=OptionEffect(options=("made_up",), seen=False))
    page = site(tmp_path, report_of(selection("t", "cpu"), idle))["package.html"]
    assert "no effect: made_up" in page
    assert "first run 100.0 ms, median 1 ms" in page


def test_the_page_escapes_names(tmp_path: Path) -> None:
    page = site(tmp_path, report_of(selection("t", "slow<b>"), alone("slow<b>", "t", 1.0)))["package.html"]
    assert "slow&lt;b&gt;" in page
    assert "slow<b>" not in page

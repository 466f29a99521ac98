"""The files of the site: their size, files of earlier reports, own templates."""

from pathlib import Path

import pytest

from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.report.site import write_site
from harness.report.view import build_report
from tests.kit import merged, record, site


def test_pages_stay_small_where_there_are_many_cells(tmp_path: Path) -> None:
    mix = [Verdict.PASS] * 11 + [Verdict.FALLBACK] * 3 + [Verdict.INVALID_MODEL] * 3
    mix += [Verdict.UNSUPPORTED, Verdict.MISMATCH, Verdict.PASS_PARTIAL]
    reason = "output 'y': 3 of 60 elements (5.0%) differ; greatest absolute difference 0.012 at (1, 2) " * 3
    records = [
        record(
            f"test_operator_with_a_long_name_{model:04}",
            target=f"target-{target}",
            verdict=(verdict := mix[(7 * model + target) % len(mix)]),
            bits=20.3 + model / 7919,
            reason="" if verdict is Verdict.PASS else reason[:280],
        )
        for model in range(2000)
        for target in range(6)
    ]
    found = site(tmp_path, build_report(merged(records), lambda *_: "", {}))
    assert {"models.html", "models-2.html", "cells.html"} <= found.keys()
    assert {name: len(html) for name, html in found.items() if len(html.encode()) > 3_000_000} == {}
    assert sum(html.count("_1999</th>") for html in found.values()) == 1


def test_pages_of_a_larger_report_go(tmp_path: Path) -> None:
    large = build_report(merged([record(target=name) for name in "abc"]), lambda *_: "", {})
    (tmp_path / "models-mine.html").write_text("not ours", encoding="utf-8")
    write_site(large, tmp_path)
    assert (tmp_path / "operators-3.html").exists()
    write_site(build_report(merged([record()]), lambda *_: "", {}), tmp_path)
    assert not (tmp_path / "operators-3.html").exists()
    assert (tmp_path / "operators-1.html").exists()
    nothing_tried = merged([record(verdict=Verdict.UNAVAILABLE)])
    write_site(build_report(nothing_tried, lambda *_: "", {}), tmp_path)
    assert not list(tmp_path.glob("operators*.html"))
    assert (tmp_path / "models-mine.html").exists()


def test_own_templates_take_the_place_of_the_shipped_ones(tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "words.html").write_text("<p>{{ report.name }} by us</p>", encoding="utf-8")
    (own / "report.css").write_text("body { color: red; }", encoding="utf-8")
    report = build_report(merged([record()]), lambda *_: "", {})
    text = write_site(report, tmp_path / "site", templates=own).read_text(encoding="utf-8")
    assert "<p>local.toml by us</p>" in text
    assert "body { color: red; }" in text
    (own / "words.html").write_text("\n{% if %}", encoding="utf-8")
    with pytest.raises(UsageError, match=r"words.html: line 2: the template is wrong"):
        write_site(report, tmp_path / "site", templates=own)
    (own / "words.html").write_text("{{ report.nothing }}", encoding="utf-8")
    with pytest.raises(UsageError, match="has no attribute 'nothing'"):
        write_site(report, tmp_path / "site", templates=own)
    with pytest.raises(UsageError, match="no such folder of templates"):
        write_site(report, tmp_path / "site", templates=tmp_path / "nowhere")

"""Another distribution adds a page of the report by an entry point."""

from pathlib import Path

import pytest

from harness.report.report_files import write_report
from tests.kit import record, write_run


def test_a_page_from_another_distribution(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "extension")
    out = tmp_path / "site"
    write_report([write_run(tmp_path / "run", [record("a"), record("b")])], out)
    page = (out / "slow.html").read_text(encoding="utf-8")
    assert "<h1>Slow cells</h1>" in page
    assert page.count("<li>onnx-node/") == 2
    assert '<a href="slow.html"' in (out / "index.html").read_text(encoding="utf-8")

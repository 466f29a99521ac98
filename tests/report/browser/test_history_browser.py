"""The page of a history in headless Chromium."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.core.records.verdict import Verdict
from harness.report.history.history_file import History
from harness.report.history.nights import with_nights
from harness.report.history.trend import trends
from harness.report.pages.history_page import write_history_page
from tests.kit import record, write_run

if TYPE_CHECKING:
    from tests.report.browser.conftest import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.platform == "win32", reason="the pipe needs file descriptors 3 and 4"),
]

HOSTILE = '</script><img src=x onerror=alert(1)>"\u202e'


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_of_a_history(browser: "Browser", history_page: Path, width: int, scheme: str) -> None:
    browser.size(width)
    browser.look(prefers_color_scheme=scheme)
    browser.open(history_page.as_uri())
    assert browser.complaints == []
    assert browser.requests == {history_page.as_uri()}
    assert browser.value("document.querySelectorAll('img, iframe, object').length") == 0
    browser.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.value("document.documentElement.scrollWidth") <= width
    assert browser.low_contrast() == {}
    charts = "document.querySelectorAll('.chart svg')"
    assert browser.value(f"Array.from({charts}, (each) => each.clientWidth > 100).every(Boolean)")
    assert browser.value(f"{charts}.length") == 6
    assert browser.value("document.getElementById('failing').textContent.includes('onerror')")


@pytest.fixture(scope="module")
def history_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nights; one target, model and fact of an environment have a hostile name."""
    home = tmp_path_factory.mktemp("history")
    with History(home / "h.sqlite", create=True) as history:
        for night, verdict in enumerate((Verdict.PASS, Verdict.ERROR), start=1):
            names = ("npu", HOSTILE)
            records = [
                record(
                    name,
                    target=target,
                    verdict=Verdict.PASS if name == "m" else verdict,
                    bits=20.0 - night,
                    op="MatMul",
                    started=f"2026-11-0{night}T02:00:00Z",
                )
                for target in names
                for name in ("m", HOSTILE)
            ]
            facts = {HOSTILE: f"{HOSTILE}{night}" * 20}
            history.add(write_run(home / f"night{night}", records, targets=dict.fromkeys(names, facts)))
        return write_history_page(*with_nights(history, trends(history)), home / "out")

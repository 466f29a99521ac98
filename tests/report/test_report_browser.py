import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.core.record import Record
from harness.core.verdict import Verdict
from harness.report import render

MakeRecord = Callable[..., Record]
WriteRun = Callable[..., Path]

pytestmark = pytest.mark.browser

QUIET = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)


@pytest.fixture(scope="module")
def chromium() -> str:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must have a browser: the page is checked in it")
        pytest.skip("no Chromium here")
    return path


@pytest.fixture
def page(record: MakeRecord, write_run: WriteRun) -> Path:
    records = [record(f"m_{verdict.value}", verdict=verdict, reason="why") for verdict in Verdict]
    folder = write_run("run", records)
    return render([folder], folder / "report")


def browse(chromium: str, tmp_path: Path, url: str, *arguments: str) -> tuple[str, str]:
    profile = f"--user-data-dir={tmp_path / 'profile'}"
    done = subprocess.run(
        [chromium, *QUIET, profile, *arguments, url],
        capture_output=True,
        timeout=60,
        check=True,
        encoding="utf-8",
        errors="replace",
    )
    return done.stdout, done.stderr


def test_the_browser_runs_the_script_under_the_policy(chromium: str, tmp_path: Path, page: Path) -> None:
    anchor = "c3"
    dom, log = browse(chromium, tmp_path, f"{page.as_uri()}#{anchor}", "--dump-dom")
    assert "Content Security Policy" not in log
    assert "CONSOLE" not in log
    assert '<form class="filter" id="filter">' in dom, "the script did not show the filter"
    (opened,) = [line for line in dom.splitlines() if f'id="{anchor}"' in line]
    assert ' open=""' in opened.partition(">")[0], "following a link did not open the cell"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_browser_draws_the_page(chromium: str, tmp_path: Path, page: Path, scheme: str) -> None:
    picture = tmp_path / f"{scheme}.png"
    preferred = "--blink-settings=preferredColorScheme=" + {"dark": "0", "light": "1"}[scheme]
    _, log = browse(
        chromium,
        tmp_path,
        page.as_uri(),
        preferred,
        f"--screenshot={picture}",
        "--window-size=1280,1600",
    )
    assert "Content Security Policy" not in log
    content = picture.read_bytes()
    assert content.startswith(b"\x89PNG")
    # A blank page of this size compresses to some 10 kB.
    assert len(content) > 40_000

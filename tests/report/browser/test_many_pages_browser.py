"""A table that is split into several files, in headless Chromium; and every page by keyboard alone."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.report import paging
from harness.report.report_files import write_report
from tests.heavy import heavy_runs

if TYPE_CHECKING:
    from tests.report.browser.conftest import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.platform == "win32", reason="the pipe needs file descriptors 3 and 4"),
]

SHOWN = (
    "Array.from(document.querySelectorAll('.grid tbody:not([hidden]) tr:not(.suite):not([hidden]) th'),"
    " (head) => head.textContent)"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of 40 models and ten columns, in several files of a table."""
    folder = tmp_path_factory.mktemp("many")
    run, older = heavy_runs(folder, 400)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paging, "PART_CHARS", 30_000)
        write_report([run], folder / "site", baseline=older)
    return folder / "site"


def test_filters_order_and_links_cover_the_rows_of_every_file(browser: "Browser", site: Path) -> None:
    first = (site / "models.html").as_uri()
    browser.open(first)
    browser.until("typeof suites !== 'undefined' && suites.some(({ rows }) => rows.some(({ file }) => file))")
    here = browser.value(SHOWN)
    assert 0 < len(here) < 40
    last = "test_operator7_case_00039"
    assert last not in here
    browser.value("form.elements.q.value = 'case_00039'; form.dispatchEvent(new Event('input'))")
    assert browser.value(SHOWN) == [last]
    assert browser.value("document.getElementById('filter-count').textContent") == "1 of 40 models"
    # A reload keeps it, and the link of the row leads to its file.
    browser.open(browser.value("location.href"))
    browser.until(f"{SHOWN}.length === 1")
    browser.value("document.querySelector('.grid tbody tr:not(.suite):not([hidden]) th a').click()")
    browser.until(f"/models-\\d+\\.html/.test(location.href) && {SHOWN}.join() === '{last}'")
    assert browser.value("document.querySelector('a.same-state').textContent") == "Look in all 40 models"
    # An order covers all.
    browser.open(first + "#?sort=-npu-fp32")
    browser.until(f"{SHOWN}.length === 40")
    assert set(here) < set(browser.value(SHOWN))
    # A link to a cell leads to the file that has it, and opens it.
    browser.open(f"{first}#?cell=suite-0/{last}%5Bgpu-fp32%5D")
    browser.until("document.getElementById('drawer')?.open")
    assert last in browser.value("document.querySelector('#drawer .id').textContent")
    assert "models-" in browser.value("location.href")
    assert browser.complaints == []

"""A table that is split into several files, in headless Chromium; and every page by keyboard alone."""

import re
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.data_files import data_root
from harness.report.cells import paging
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


CONTROLS = """
Array.from(document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']"))
  .filter((each) =>
  each.tabIndex >= 0 && each.checkVisibility({ contentVisibilityAuto: false }))
"""
FOCUSED = """
(() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1
    && document.activeElement.getClientRects().length > 0;
})()
"""
HEADINGS = (
    "Array.from(document.querySelectorAll('main :is(h1, h2, h3, h4)'), (head) => Number(head.localName[1]))"
)
HEADS_WITHOUT_SCOPE = "document.querySelectorAll('main th:not([scope])').length"


@pytest.mark.parametrize(
    "page",
    [
        "models.html",
        *(
            pytest.param(f"{name}.html", marks=pytest.mark.long)
            for name in ("operators", "changes", "failures", "cells", "performance")
        ),
    ],
)
def test_every_control_is_reached_by_keyboard_and_seen(browser: "Browser", site: Path, page: str) -> None:
    browser.size(1280)
    browser.open((site / page).as_uri())
    # A long list of like links would take its time: the first controls are of every kind.
    wanted = min(70, browser.value(f"{CONTROLS}.length"))
    browser.value(
        f"window.wanted = {CONTROLS}.slice(0, {wanted}); window.reached = new Set();"
        "addEventListener('focusin', (event) => reached.add(event.target)); 0"
    )
    for _ in range(wanted):
        browser.press("Tab")
        assert browser.value(FOCUSED), browser.value("document.activeElement.outerHTML.slice(0, 200)")
    missed = "wanted.filter((each) => !reached.has(each)).map((each) => each.outerHTML.slice(0, 200))"
    assert browser.value(missed) == []
    # What a screen reader goes by: one first heading, no level left out, a scope of each heading of a table.
    levels = browser.value(HEADINGS)
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert browser.value(HEADS_WITHOUT_SCOPE) == 0


@pytest.mark.parametrize("page", ["models.html", "operators.html", "changes.html"])
def test_a_table_is_sorted_by_keyboard(browser: "Browser", site: Path, page: str) -> None:
    browser.open((site / page).as_uri())
    browser.value("document.querySelector('thead button.sort').focus()")
    browser.press("Enter")
    assert browser.value("document.activeElement.closest('th').getAttribute('aria-sort')") is not None
    assert "sort" in browser.value("location.hash")


def test_a_print_has_every_column_and_says_which_part_it_is(browser: "Browser", site: Path) -> None:
    try:
        browser.size(718)  # A4 without its margins
        browser.call("Emulation.setEmulatedMedia", media="print")
        browser.open((site / "models-2.html").as_uri() + "#?column.target=npu-fp32")
        assert browser.value("document.documentElement.scrollWidth") <= 718
        seen = browser.value("document.querySelector('main').innerText")
        assert "Page 2 of " in seen
        assert "2 of 10 columns" in seen
        assert not browser.value("document.querySelector('nav.pages').checkVisibility()")
    finally:
        browser.look()


def test_nothing_moves_for_a_reader_who_wants_no_motion() -> None:
    """The report has no animation at all, so there is nothing to reduce."""
    for path in (data_root() / "report_templates").glob("*.*s"):
        assert not re.search(
            r"transition|animation|scroll-behavior|behavior: *.smooth", path.read_text("utf-8")
        )

"""What a reader asks of a big site: each answer is found in three clicks or fewer, and no page is heavy."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.annex.publication.publisher_site import write_publication
from tests.annex.conformance.small_profiles import operators_profile
from tests.annex.publication.many import many_submissions
from tests.annex.publication.publisher import DAY, Publisher

if TYPE_CHECKING:
    from tests.report.browser.conftest import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.platform == "win32", reason="the pipe needs file descriptors 3 and 4"),
]

MOST_CLICKS = 3
HEAVY = 300_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a site of 400 submissions of 60 devices, 12 products and 40 versions."""
    return site_of(tmp_path_factory.mktemp("many"), submissions=400, devices=60)


def site_of(home: Path, *, submissions: int, devices: int) -> Path:
    publisher = Publisher(home)
    publisher.submit("one")
    (one,) = publisher.gathered().entries
    gathered = many_submissions(one, operators_profile(), submissions=submissions, devices=devices)
    write_publication(gathered, home / "site", title="Many", today=DAY)
    return home / "site"


QUESTIONS: dict[str, tuple[Sequence[str], str]] = {
    # question: texts of the links to click, from the first page on; what the page then shows
    "which devices get Gather right": (["Operators", "Gather"], "Every case passes"),
    "on how many devices does each product get Gather right": (["Operators"], " of "),
    "since which version does it": (["Operators", "Gather"], "Since which version"),
    "since which version does an element type work": (["Types"], "at least since"),
    "where did an element type break": (["Types"], "broke in"),
    "which case of it fails": (["Operators", "Gather"], "suite/gather_003"),
    "what is my device": (["Devices", "NPU Maker2 device_id 3"], "vendor 4002 · device 3"),
    "which drivers did it have": (["Devices", "NPU Maker2 device_id 3"], "Drivers"),
    "what changed on it": (["Devices", "NPU Maker2 device_id 3"], "gained"),
    "which versions load with which onnxruntime": (["Versions"], "onnxruntime 1.32.0"),
    "which devices has a product": (["Product 03"], "device_id"),
    "which versions ran on a device": (["Product 03", "Product 03 1."], "Versions"),
    "A against B": (["Compare", "operators@1"], "have the same verdict"),
    "what works": ([], "conformant"),
    "what broke, and in which version": (["Operators", "Gather"], "broke in"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_a_few_clicks_away(browser: "Browser", site: Path, question: str) -> None:
    clicks, answer = QUESTIONS[question]
    assert len(clicks) <= MOST_CLICKS
    browser.size(1280)
    browser.open((site / "index.html").as_uri())
    for text in clicks:
        found = f"Array.from(document.links).find((one) => one.textContent.trim().startsWith({text!r}))"
        address = browser.value(f"{found}?.href")
        assert address, f"no link {text!r}"
        browser.open(address)
    browser.until(f"document.querySelector('main').innerText.includes({answer!r})")
    assert browser.complaints == []


def test_least_values_narrow_a_table_and_stay_in_its_address(browser: "Browser", site: Path) -> None:
    browser.open((site / "versions.html").as_uri())
    shown = (
        "Array.from(document.querySelector('table').tBodies[0].rows)"
        ".filter((row) => !row.hidden).map((row) => row.dataset.version)"
    )
    every = browser.value(shown)
    least = "document.querySelector('[data-least=version]')"
    browser.value(f"({least}.value = '1.9', {least}.dispatchEvent(new Event('input')), 0)")
    kept = browser.value(shown)
    assert kept == [one for one in every if int(one.partition(".")[2]) >= 9]
    assert 0 < len(kept) < len(every)
    browser.open(browser.value("location.href"))
    assert browser.value(shown) == kept


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_no_kind_of_page_breaks_a_rule_of_accessibility(
    browser: "Browser", axe: str, site: Path, width: int, scheme: str
) -> None:
    browser.size(width)
    browser.look(prefers_color_scheme=scheme)
    kinds = {
        re.sub(r"^([a-z])/[^/]+/", r"\1/", one.relative_to(site).as_posix()): one
        for one in site.rglob("*.html")
    }
    assert {"index.html", "since.html", "m/index.html", "d/index.html", "o/index.html"} <= set(kinds)
    broken = {}
    for kind, page in kinds.items():
        browser.open(page.as_uri())
        broken[kind] = browser.violations(axe)
    assert {kind: found for kind, found in broken.items() if found} == {}


@pytest.mark.long
def test_no_page_of_five_thousand_submissions_is_heavy(tmp_path: Path) -> None:
    home = site_of(tmp_path, submissions=5000, devices=300)
    heavy = {
        path.relative_to(home).as_posix(): path.stat().st_size
        for path in home.rglob("*.html")
        if path.stat().st_size > HEAVY
    }
    assert heavy == {}

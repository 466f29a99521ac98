"""The publisher's site in headless Chromium: no overflow, no request, filters and comparisons by address."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.annex.conformance.submissions import fallen, refused, wrong
from tests.annex.publication.publisher import Publisher

if TYPE_CHECKING:
    from tests.report.browser.conftest import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.platform == "win32", reason="the pipe needs file descriptors 3 and 4"),
]

HOSTILE = "</script><img src=x onerror=alert(1)>"
SHOWN = (
    "Array.from(document.querySelectorAll('#{} tbody tr:not(.suite)')).filter((one) => one.checkVisibility())"
)
COUNT = "document.getElementById('count').textContent"
CHANGES = "Array.from(document.querySelectorAll('#differences tbody tr'), (one) => one.textContent)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A site of three versions and a provider with a hostile name; version or name -> id."""
    publisher = Publisher(tmp_path_factory.mktemp("publication"))
    publisher.submit("a", {0: refused, 4: fallen}, version="1.8")
    publisher.submit("b", {3: wrong}, version="1.9")
    publisher.submit("c", version="1.24")
    publisher.submit("d", dict.fromkeys(range(6), refused), name=HOSTILE, vendor=HOSTILE, contact=HOSTILE)
    publisher.site()
    gathered = publisher.gathered()
    assert gathered.refused == ()
    ids = {entry.statement.product.version: entry.id for entry in gathered.entries}
    return publisher.home / "site", ids | {HOSTILE: ids["2.7.0"]}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_every_page(browser: "Browser", site: tuple[Path, dict[str, str]], width: int, scheme: str) -> None:
    home, _ = site
    browser.size(width)
    browser.look(prefers_color_scheme=scheme)
    pages = sorted(home.rglob("*.html"))
    assert len(pages) == 21
    for page in pages:
        browser.open(page.as_uri())
        assert browser.complaints == [], page
        assert browser.requests == {page.as_uri()}, page
        assert browser.value("document.querySelectorAll('img, iframe, object').length") == 0
        assert browser.value("document.documentElement.scrollWidth") <= width, page


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_no_page_breaks_a_rule_of_accessibility(
    browser: "Browser", axe: str, site: tuple[Path, dict[str, str]], width: int, scheme: str
) -> None:
    home, _ = site
    browser.size(width)
    browser.look(prefers_color_scheme=scheme)
    broken = {}
    for page in home.rglob("*.html"):
        browser.open(page.as_uri())
        broken[page.relative_to(home).as_posix()] = browser.violations(axe)
    assert {name: found for name, found in broken.items() if found} == {}


def test_an_address_compares_any_two(browser: "Browser", site: tuple[Path, dict[str, str]]) -> None:
    home, ids = site
    address = (home / "p" / "operators@1" / "compare.html").as_uri()
    browser.open(f"{address}#?a={ids['1.8']}&b={ids['1.24']}")
    browser.until(f"{CHANGES}.length == 2")
    assert browser.value(CHANGES) == ["suite/add_000– unsupported✓ pass", "suite/neg_004○ fallback✓ pass"]  # noqa: RUF001
    assert browser.value(COUNT).startswith("2 gained, 0 lost, 0 other")
    browser.value("document.getElementById('swap').click()")
    assert browser.value(COUNT).startswith("0 gained, 2 lost, 0 other")
    assert browser.value("location.hash") == f"#?a={ids['1.24']}&b={ids['1.8']}"
    link = browser.value("document.querySelector('#differences a').href")
    assert link.endswith(f"s/{ids['1.8']}/index.html#case-suite/add_000")
    browser.open(link)
    assert browser.value("document.querySelector(':target').textContent").startswith("suite/add_000")
    browser.open(f"{address}#?from={ids[HOSTILE]}&to={ids['1.9']}")
    browser.until(f"{CHANGES}.length == 6")
    assert browser.value(COUNT).startswith("5 gained, 0 lost, 1 other")
    assert HOSTILE in browser.value("document.querySelector('select').selectedOptions[0].textContent")
    browser.open(f"{address}#?a=0000000000000000&b={ids['1.9']}")
    browser.until("document.getElementById('count').textContent.includes('not here any more')")
    browser.open(f"{address}#?from={ids['1.8']}&to={ids['1.24']}")  # of releases before
    browser.until(f"{CHANGES}.length == 2")
    browser.open((home / "compare.html").as_uri() + f"#?a={ids['1.8']}&b={ids['1.24']}")
    browser.until("location.pathname.endsWith('p/operators%401/compare.html')")
    browser.until(f"{CHANGES}.length == 2 && document.readyState == 'complete'")


@pytest.mark.parametrize("width", [400, 1280])
def test_filters_are_kept_in_the_address(
    browser: "Browser", site: tuple[Path, dict[str, str]], width: int
) -> None:
    home, _ = site
    browser.size(width)
    address = (home / "p" / "operators@1" / "index.html").as_uri()
    browser.open(address)
    assert browser.value(f"{SHOWN.format('cases')}.length") == 6
    browser.value(
        "(() => { const input = document.querySelector('input[name=q]'); input.value = 'gather INT64';"
        " input.dispatchEvent(new Event('input')); })()"
    )
    assert browser.value(f"{SHOWN.format('cases')}.map((one) => one.id)") == ["case-suite/gather_003"]
    headings = "Array.from(document.querySelectorAll('.suite')).filter((one) => one.checkVisibility()).length"
    assert browser.value(headings) == 1
    kept = browser.value("location.href")
    assert kept == f"{address}#?q=gather+INT64"
    browser.open(kept)
    assert browser.value("document.querySelector('output').textContent") == "1 of 6"
    browser.open(f"{address}#?show=differing")
    assert browser.value(f"{SHOWN.format('cases')}.length") == 6  # one provider passes all, another none
    browser.open((home / "index.html").as_uri() + "#?level=partial")
    assert browser.value(f"{SHOWN.format('providers')}.length") == 1
    browser.value("document.querySelector('thead button').click()")
    assert set(browser.value("location.hash")[2:].split("&")) == {"level=partial", "sort.providers=provider"}
    browser.open((home / "search.html").as_uri() + "#?q=neg&kind=case")
    assert browser.value(f"{SHOWN.format('index')}.length") == 2


def test_a_table_can_be_embedded(browser: "Browser", site: tuple[Path, dict[str, str]]) -> None:
    home, _ = site
    browser.open((home / "index.html").as_uri() + "#?embed=providers&level=partial")
    shown = "Array.from(document.body.querySelectorAll('header, footer, h1, table'))"
    shown += ".filter((one) => one.checkVisibility()).map((one) => one.id || one.localName)"
    assert browser.value(shown) == ["providers"]
    assert browser.value(f"{SHOWN.format('providers')}.length") == 1
    browser.value("document.querySelector('thead button').click()")
    assert "embed=providers" in browser.value("location.hash")
    assert browser.value("Array.from(document.links).every((one) => one.target == '_top')")
    browser.open((home / "index.html").as_uri())
    assert browser.value(shown)[0] == "header"


TYPED = "({0}.value = '{1}', {0}.dispatchEvent(new Event('input', {{bubbles: true}})), 0)"


@pytest.mark.parametrize(
    ("name", "value", "some"),
    [
        ("from", "2099-01-01", "2020-01-01"),
        ("onnxruntime", "1.100", "1.31"),
    ],
)
def test_least_values_are_kept_from_page_to_page(
    browser: "Browser", site: tuple[Path, dict[str, str]], name: str, value: str, some: str
) -> None:
    home, _ = site
    field = f"document.querySelector('[data-least={name}]')"
    browser.open((home / "index.html").as_uri())
    every = browser.value(SHOWN.format("providers") + ".length")
    browser.value(TYPED.format(field, some))
    assert browser.value(SHOWN.format("providers") + ".length") == every > 0
    browser.value(TYPED.format(field, value))
    assert browser.value(SHOWN.format("providers") + ".length") == 0
    for link, table in (("Types", "traits"), ("Devices", "devices")):
        browser.open(browser.value(f"Array.from(document.links).find((one) => one.text == '{link}').href"))
        assert browser.value(f"document.getElementById('{table}') !== null")
    assert browser.value(f"{field}.value") == value
    assert browser.value(SHOWN.format("devices") + ".length") == 0
    # and to a device itself, though its row is hidden here; a comparison has no such filter
    browser.open(browser.value("document.querySelector('#devices tbody a').href"))
    assert browser.value(SHOWN.format("submissions") + ".length") == 0
    assert "#" not in browser.value("Array.from(document.links).find((one) => one.text == 'Compare').href")


def test_a_least_value_counts_in_every_table_of_a_page(
    browser: "Browser", site: tuple[Path, dict[str, str]]
) -> None:
    home, _ = site
    browser.open((home / "versions.html").as_uri())
    shown = "Array.from(document.querySelectorAll('tbody tr')).filter((row) => !row.hidden).length"
    assert browser.value("document.querySelectorAll('[name=from]').length") > 1
    browser.value(TYPED.format("document.querySelectorAll('[name=from]')[1]", "2099-01-01"))
    assert browser.value(shown) == 0
    assert browser.value("document.querySelector('[name=from]').value") == "2099-01-01"
    browser.value(TYPED.format("document.querySelector('[name=from]')", ""))
    versions = "Array.from(document.querySelectorAll('[data-least=version]'))"
    assert browser.value(f"new Set({versions}.map((one) => one.name)).size == {versions}.length")

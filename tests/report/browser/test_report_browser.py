"""The site in headless Chromium."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from harness.core.latency import Latency
from harness.core.output_metrics import Noise, PrecisionError
from harness.core.record import ModelContent, OptionEffect, Record
from harness.core.reference import Adjudication
from harness.core.verdict import Verdict
from harness.report.publish import publish

if TYPE_CHECKING:
    from tests.report.browser.conftest import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.platform == "win32", reason="the pipe needs file descriptors 3 and 4"),
]

MakeRecord = Callable[..., Record]
WriteRun = Callable[..., Path]
PAGES = (
    "index.html",
    "models.html",
    "operators.html",
    "operators-1.html",
    "precision.html",
    "performance.html",
    "failures.html",
    "changes.html",
    "cells.html",
)
HOSTILE = '</script><img src=x onerror=alert(1)>"\u202e'
SHOWN_MODELS = (
    "Array.from(document.querySelectorAll('.grid tbody:not([hidden]) tr:not(.suite):not([hidden]) th'),"
    " (head) => head.textContent)"
)
SHOWN_COLUMNS = (
    "Array.from(document.querySelectorAll('.grid thead .name'))"
    ".filter((name) => name.offsetParent).map((name) => name.textContent)"
)


LATENCY = Latency(
    runs=3,
    warm_up=1,
    stopped_by="repeats",
    min_ms=1.0,
    p50_ms=2.0,
    p90_ms=None,
    p99_ms=None,
    max_ms=4.0,
    mean_ms=2.3,
    stddev_ms=1.2,
    samples_ms=(1.0, 2.0, 4.0),
    io="copied",
    intra_op_threads=0,
    inter_op_threads=0,
    waiting_threads=0.0,
    host_peak_mib=100.0,
    device_mib=None,
)


def content(op: str) -> ModelContent:
    return ModelContent(opsets={"ai.onnx": 21}, ops={op: 1}, types=("float32",))


def with_noise(record: Record) -> Record:
    noise = Noise(
        precision="float32", rms=123456.0, max=3e5, rms_limit=4.0, max_limit=32.0, like=HOSTILE[:40]
    )
    lost = PrecisionError(error=1e-3, cpu_error=9e-4, ratio=1.11) if record.target == "half" else None
    judged = Adjudication(output=HOSTILE, by=HOSTILE, golden=1e-8, ep=1e-3, nearer="golden")
    outputs = (msgspec.structs.replace(each, noise=noise, precision_error=lost) for each in record.outputs)
    return msgspec.structs.replace(record, outputs=tuple(outputs), adjudication=(judged,))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, module_record: MakeRecord, module_run: WriteRun) -> Path:
    """A site with everything in it; one model, target, message and operator have a hostile name."""
    records = [
        with_noise(
            module_record(
                f"m_{verdict.value}",
                verdict=verdict,
                target=target,
                reason="why",
                bits=20.5,
                op="MatMul",
                content=content("MatMul"),
                latency=LATENCY if verdict is Verdict.PASS else None,
                axes={"precision": "fp16"} if target == "half" else {},
                effect=OptionEffect(options=("mode",), seen=False) if target == "half" else None,
            )
        )
        for verdict in Verdict
        for target in ("full", "half")
    ]
    old = module_run("old", [module_record(record.model, target=record.target) for record in records[:9]])
    records.append(
        module_record(
            HOSTILE,
            target=HOSTILE,
            suite=HOSTILE,
            op=HOSTILE,
            verdict=Verdict.ERROR,
            reason=HOSTILE,
            retries=(Verdict.PASS,),
            content=content(HOSTILE),
        )
    )
    out = tmp_path_factory.mktemp("site")
    publish([module_run("new", records)], out, ("html",), baseline=old)
    return out


def test_every_page_renders_without_a_complaint_or_a_request(browser: "Browser", site: Path) -> None:
    assert {path.name for path in site.glob("*.html")} >= set(PAGES)
    for path in sorted(site.glob("*.html")):
        browser.open(path.as_uri())
        assert browser.complaints == [], path.name
        assert browser.requests == {path.as_uri()}, path.name
        assert browser.value("document.querySelectorAll('img, iframe, object').length") == 0
        assert browser.value("document.querySelectorAll('h1').length") == 1, path.name


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_pages_fit_their_window(browser: "Browser", site: Path, width: int, scheme: str) -> None:
    browser.size(width)
    browser.look(prefers_color_scheme=scheme)
    grounds = set()
    for name in PAGES:
        browser.open((site / name).as_uri())
        assert browser.value("document.documentElement.scrollWidth") <= width, name
        grounds.add(browser.value("getComputedStyle(document.body).backgroundColor"))
        # A blank page of either size compresses to some 5 kB.
        assert len(browser.picture()) > 15_000, name
    assert grounds == {"rgb(20, 23, 27)" if scheme == "dark" else "rgb(255, 255, 255)"}


def test_pages_print(browser: "Browser", site: Path) -> None:
    browser.size(1280)
    browser.look(prefers_color_scheme="light")
    for name in PAGES:
        browser.open((site / name).as_uri())
        browser.call("Emulation.setEmulatedMedia", media="print")
        assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
        assert browser.value("getComputedStyle(document.querySelector('h1')).display") != "none"
        browser.look(prefers_color_scheme="light")
        assert browser.printed().startswith(b"%PDF"), name


def test_models_are_filtered_and_ordered_and_a_reload_keeps_it(browser: "Browser", site: Path) -> None:
    browser.size(1280)
    browser.open((site / "models.html").as_uri())
    every = browser.value(SHOWN_MODELS)
    assert len(every) == len(Verdict) + 1
    browser.value(
        "form.elements.q.value = 'MISM'; form.dispatchEvent(new Event('input', { bubbles: true }));"
    )
    mismatches = {"m_mismatch", "m_shape_mismatch", "m_dtype_mismatch", "m_nan_mismatch"}
    assert set(browser.value(SHOWN_MODELS)) == mismatches
    assert (
        browser.value("document.getElementById('filter-count').textContent")
        == f"4 of {len(Verdict) + 1} models"
    )
    browser.value(
        "form.elements.verdict.value = 'nan mismatch';"
        "form.querySelector('select.columns[name=\"column.precision\"]').value = 'fp16';"
        "form.querySelector('input[value=failed]').checked = true;"
        "form.dispatchEvent(new Event('input', { bubbles: true }));"
    )
    assert browser.value(SHOWN_MODELS) == ["m_nan_mismatch"]
    assert browser.value(SHOWN_COLUMNS) == ["half"]
    browser.open(browser.value("location.href"))
    assert browser.value(SHOWN_MODELS) == ["m_nan_mismatch"]
    assert browser.value(SHOWN_COLUMNS) == ["half"]
    browser.value("form.reset()")
    browser.until(f"{SHOWN_MODELS}.length === {len(every)}")
    assert not browser.value("location.hash")
    browser.value("document.querySelector('.grid thead th:nth-child(2) button').click()")
    ordered = browser.value(SHOWN_MODELS)
    assert ordered != every
    assert browser.value("location.hash") == "#?sort=0"
    browser.open(browser.value("location.href"))
    assert browser.value(SHOWN_MODELS) == ordered
    assert browser.complaints == []


def test_the_drawer_shows_everything_recorded_as_text(browser: "Browser", site: Path) -> None:
    browser.size(1280)
    browser.open((site / "models.html").as_uri())
    browser.value("document.querySelector('.grid td.failed').click()")
    browser.until("document.getElementById('drawer').open")
    text = browser.value("document.getElementById('drawer').textContent")
    assert HOSTILE.replace("\u202e", "\\u202e") in text
    assert browser.value("document.querySelectorAll('#drawer img').length") == 0
    assert browser.value("document.querySelector('#drawer a').getAttribute('href')").startswith("file:")
    browser.press("Escape")
    browser.until("!document.getElementById('drawer').open")
    # The same by keyboard, from the first passed square one down and one to the right.
    browser.value("focusOn(document.querySelector('.grid td.passed'))")
    model = browser.value("document.activeElement.parentElement.cells[0].textContent")
    browser.press("ArrowRight")
    browser.press("ArrowLeft")
    browser.press("Enter")
    browser.until("document.getElementById('drawer').open")
    text = browser.value("document.getElementById('drawer').textContent")
    assert f"onnx-node/{model}[" in text
    assert "20.5" in text
    heads = "Array.from(document.querySelectorAll('#drawer th'), (head) => head.textContent)"
    assert {"noise rms", "noise max", "noise like"} <= set(browser.value(heads))
    assert f"--model onnx-node/{model}" in text
    # The address leads to the open cell, and forgets it when it is closed.
    browser.until("location.href.includes('cell=onnx-node')")
    address = browser.value("location.href")
    browser.press("Escape")
    browser.until("!location.hash")
    browser.open(address)
    browser.until("document.getElementById('drawer').open")
    assert browser.value("document.getElementById('drawer').textContent") == text
    # It is told of its closing when it is open again.
    told = "new Promise((resolve) => drawer.addEventListener('close', () => resolve(), { once: true }))"
    browser.value(f"(() => {{ const closed = {told}; drawer.close(); open(current); return closed; }})()")
    browser.until("document.getElementById('drawer').open")
    assert "?cell=" in browser.value("location.href")
    assert browser.complaints == []


def test_operators_are_sorted_and_filtered_and_a_reload_keeps_it(browser: "Browser", site: Path) -> None:
    browser.open((site / "operators.html").as_uri())
    names = (
        "Array.from(document.querySelectorAll('#operators tbody tr:not([hidden]) th'), (h) => h.textContent)"
    )
    every = browser.value(names)
    assert "MatMul" in every
    browser.value("document.querySelector('#operators thead th button').click()")
    browser.value("document.querySelector('#operators thead th button').click()")
    assert browser.value(names) == sorted(every, key=str.lower, reverse=True)
    browser.value(
        "const input = document.querySelector('.table-filter'); input.value = 'matm';"
        "input.dispatchEvent(new Event('input'));"
    )
    assert browser.value(names) == ["MatMul"]
    browser.open(browser.value("location.href"))
    assert browser.value(names) == ["MatMul"]
    assert browser.value("document.querySelector('#operators th').getAttribute('aria-sort')") == "descending"
    assert browser.complaints == []


def test_a_link_opens_the_cell_that_it_leads_to(browser: "Browser", site: Path) -> None:
    browser.open((site / "models.html").as_uri())
    href = browser.value("document.querySelector('.grid td a').href")
    browser.open(href)
    assert browser.value("document.getElementById(location.hash.slice(1)).open") is True


def test_without_a_script_everything_is_there_but_the_forms(browser: "Browser", site: Path) -> None:
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        for name in PAGES:
            browser.open((site / name).as_uri())
            document = browser.call("DOM.getDocument")["root"]["nodeId"]
            main = browser.call("DOM.querySelector", nodeId=document, selector="main")["nodeId"]
            html = browser.call("DOM.getOuterHTML", nodeId=main)["outerHTML"]
            text = re.sub(r"<[^>]*>", " ", html)
            wanted = {
                "index.html": "Right answers:",
                "models.html": "m_nan_mismatch",
                "operators.html": "MatMul",
                "precision.html": "Cost of a lower precision",
                "performance.html": "Latency by model",
                "failures.html": "Failed, and no failure is expected",
                "changes.html": "Regressed",
                "cells.html": "Out of tolerance",
            }
            assert wanted.get(name, "MatMul") in text
            assert not re.search(r'<form class="filter" id="filter">', html)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)

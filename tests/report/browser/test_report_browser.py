"""The site in headless Chromium."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from harness.core.comparison.output_metrics import Noise, PrecisionError
from harness.core.records.facts import OptionEffect
from harness.core.records.fault import Fault, Frame, GraphNode, GraphTensor, NativeCrash, Repetition
from harness.core.records.generation_figures import Generated, GenerationFigures, GenerationSpeed
from harness.core.records.record import ModelContent, Record
from harness.core.records.reference_answer import Adjudication
from harness.core.records.shape_times import ShapeTime
from harness.core.records.verdict import Verdict
from harness.core.timing.latency import Latency
from harness.core.timing.node_times import PARTS_IN_WORDS, Boundary, NodeTime, NodeTimes
from harness.report.history.history_file import History
from harness.report.report_files import write_report
from tests.kit import record, write_run
from tests.triages import fault, write_triage

if TYPE_CHECKING:
    from tests.report.browser.conftest import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(sys.platform == "win32", reason="the pipe needs file descriptors 3 and 4"),
]

PAGES = (
    "index.html",
    "models.html",
    "operators.html",
    "operators-1.html",
    "api.html",
    "precision.html",
    "performance.html",
    "time.html",
    "generation.html",
    "failures.html",
    "faults.html",
    "compare.html",
    "changes.html",
    "nights.html",
    "cells.html",
)
NARROW = 400
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


GENERATION = GenerationFigures(
    ways=(
        Generated(way="at_once", positions=4096, kl=(1e-11,) * 4096, golden_perplexity=12.0, perplexity=12.0),
        Generated(
            way=HOSTILE,
            positions=40,
            kl=(*(1e-9,) * 20, *(0.5,) * 15, *(None,) * 5),
            first_bad=20,
            first_cache=HOSTILE * 9,
            cache_from=19,
            golden_perplexity=1e30,
        ),
    ),
    declined={HOSTILE * 9: HOSTILE * 99},
    disagreements=(HOSTILE,),
    text=tuple(range(1 << 40, (1 << 40) + 99)),
    golden_text=(1 << 40, 7),
    speed=GenerationSpeed(
        first_token_ms={1 << size: 12345.678 for size in range(20)},
        tokens_per_s={1 << size: 123456.789 for size in range(20)},
        cache_mib=1e9,
    ),
)


NODE_TIMES = NodeTimes(
    runs=90,
    run_ms=(2.0, 2.1, 2.2),
    parts=dict.fromkeys(PARTS_IN_WORDS, (0.4, 0.4, 0.4)),
    nodes=tuple(
        NodeTime(node=f"{HOSTILE} {number}", op=HOSTILE, side=side, ms=(0.04,) * 3, low_ms=0.03, high_ms=0.05)
        for number in range(10)
        for side in ("ep", "cpu", "copy")
    ),
    boundaries=(Boundary(after=HOSTILE * 9, before="", ms=(0.3,) * 3, copies=2, nbytes=1 << 34),),
    boundary_count=99,
    create_ms=(5.0, 6.0, 7.0),
    waiting_threads=0.5,
)
SHAPES = tuple(f"{HOSTILE}={rows}, sequence={length}" for rows in (1, 2) for length in (8, 512, 1 << 20))


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


def faults_of(records: Sequence[Record]) -> tuple[Fault, ...]:
    """A fault of a failed cell, one of a crash with hostile names and 60 nodes, and an inconclusive one."""
    plain = fault("F0000000001", next(record.cell for record in records if record.model == "m_mismatch"))
    assert plain.reduced is not None
    nodes = tuple(
        GraphNode(
            name=HOSTILE,
            op_type=HOSTILE,
            inputs=(f"t{max(0, index - 4)}", f"t{index}"),
            outputs=(f"t{index + 1}",),
            attributes={HOSTILE: HOSTILE},
            guilty=index == 30,
        )
        for index in range(60)
    )
    tensors = (
        GraphTensor(name="t0", role="input", dtype=HOSTILE, shape=HOSTILE),
        GraphTensor(name="t60", role="output"),
    )
    frames = tuple(Frame(library=HOSTILE, function=HOSTILE * 9, offset=n) for n in range(50))
    large = fault(
        "F0000000002",
        records[-1].cell,
        sentence=HOSTILE * 20,
        reduced=msgspec.structs.replace(plain.reduced, nodes=nodes, tensors=tensors),
        crash=NativeCrash(signal="SIGSEGV", frames=frames, culprit=HOSTILE, address="0x0"),
        bundle="",
    )
    unknown = Repetition(outcome="never", trials=40, failures=0)
    again = fault("I0000000003", "a", inconclusive=HOSTILE, reduced=None, bundle="", confirmation=unknown)
    return plain, large, again


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with everything in it; one model, target, message and operator have a hostile name."""
    records = [
        with_noise(
            record(
                f"m_{verdict.value}",
                verdict=verdict,
                target=target,
                reason="why",
                bits=20.5,
                op="MatMul",
                content=content("MatMul"),
                latency=LATENCY if verdict is Verdict.PASS else None,
                node_times=NODE_TIMES if verdict is Verdict.PASS else None,
                axes={"precision": "fp16"} if target == "half" else {},
                effect=OptionEffect(options=("mode",), seen=False) if target == "half" else None,
            )
        )
        for verdict in Verdict
        for target in ("full", "half")
    ]
    home = tmp_path_factory.mktemp("runs")
    old = write_run(home / "old", [record(each.model, target=each.target) for each in records[:9]])
    records.append(
        record(
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
    records += [
        record(
            f"m_{verdict.value}",
            target=target,
            verdict=verdict,
            axes={"scenario": "generate"},
            generation=GENERATION,
        )
        for target, verdict in (("full", Verdict.PASS), (HOSTILE, Verdict.MISMATCH))
    ]
    records += [
        record(
            "sizes",
            target=target,
            axes={"scenario": "dynamic_shapes"},
            scenario={"shapes": SHAPES[:count]},
            shape_times=tuple(
                ShapeTime(runs=9, p50_ms=ms * (1 + at), low_ms=1.0, high_ms=9.0, waiting_threads=0.5)
                for at in range(count)
            ),
        )
        for target, ms, count in (("full", 1.0, 6), (HOSTILE, 1234.5, 5))
    ]
    out = tmp_path_factory.mktemp("site")
    new = write_run(home / "new", records)
    write_triage(new, *faults_of(records))
    with History(out.with_suffix(".sqlite"), create=True) as history:
        history.add(old)
        history.add(new)
        write_report([new], out, ("html",), baseline=old, history=history)
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
@pytest.mark.parametrize("width", [NARROW, 1280])
def test_pages_fit_their_window(browser: "Browser", site: Path, width: int, scheme: str) -> None:
    browser.size(width)
    browser.look(prefers_color_scheme=scheme)
    grounds = set()
    for name in PAGES:
        browser.open((site / name).as_uri())
        assert browser.value("document.documentElement.scrollWidth") <= width, name
        if width > NARROW:
            browser.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            assert browser.low_contrast() == {}, name
        grounds.add(browser.value("getComputedStyle(document.body).backgroundColor"))
        # A blank page of either size compresses to some 5 kB.
        assert len(browser.picture()) > 15_000, name
    assert grounds == {"rgb(20, 23, 27)" if scheme == "dark" else "rgb(255, 255, 255)"}


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [NARROW, 1280])
def test_no_page_breaks_a_rule_of_accessibility(
    browser: "Browser", axe: str, site: Path, width: int, scheme: str
) -> None:
    browser.size(width)
    browser.look(prefers_color_scheme=scheme)
    broken = {}
    for name in PAGES:
        browser.open((site / name).as_uri())
        broken[name] = browser.violations(axe)
    assert {name: found for name, found in broken.items() if found} == {}
    browser.value("document.querySelector('main').append(new Image())")
    assert any(one.startswith("image-alt: ") for one in browser.violations(axe))  # it does look


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
    assert len(every) == len(Verdict) + 2
    browser.value(
        "form.elements.q.value = 'MISM'; form.dispatchEvent(new Event('input', { bubbles: true }));"
    )
    mismatches = {"m_mismatch", "m_shape_mismatch", "m_dtype_mismatch", "m_nan_mismatch"}
    assert set(browser.value(SHOWN_MODELS)) == mismatches
    assert (
        browser.value("document.getElementById('filter-count').textContent")
        == f"4 of {len(Verdict) + 2} models"
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
    name = browser.value("document.querySelector('.grid thead th:nth-child(2) .name').textContent")
    assert browser.value("location.hash").startswith(f"#?sort={name}")
    for address in (browser.value("location.href"), (site / "models.html").as_uri() + "#?sort=0"):
        browser.open(address)  # by its number in links of releases before
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


def test_every_square_can_be_chosen_by_pointer_and_by_keyboard(browser: "Browser", site: Path) -> None:
    browser.size(1280)
    browser.open((site / "models.html").as_uri())
    chosen = """
    (async () => {
      const opened = [];
      for (const cell of document.querySelectorAll('.grid tbody tr:not(.suite) td[class]')) {
        for (const choose of [
          () => (cell.querySelector('a') ?? cell).click(),
          () => cell.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })),
          () => cell.dispatchEvent(new KeyboardEvent('keydown', { key: ' ', bubbles: true })),
        ]) {
          choose();
          for (let tries = 0; tries < 200 && !drawer.open; tries += 1) {
            await new Promise((resolve) => setTimeout(resolve, 5));
          }
          const model = cell.parentElement.cells[0].textContent;
          const id = drawer.querySelector('.id')?.textContent ?? '';
          opened.push(drawer.open && decodeURIComponent(id).includes(model.slice(0, 8)));
          drawer.close();
          drawer.replaceChildren();
        }
      }
      return [opened.length, opened.filter(Boolean).length];
    })()
    """
    count, opened = browser.value(chosen)
    assert count == opened > 3
    # Tab reaches one square, whichever has a link; the arrows reach the others.
    reached = "document.querySelectorAll('.grid tbody td a:not([tabindex=\"-1\"])').length"
    assert browser.value(reached) == 0
    assert browser.value("document.querySelectorAll('.grid td[tabindex=\"0\"]').length") == 1


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


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_curves_of_generated_text_fill_their_place(
    browser: "Browser", site: Path, width: int, scheme: str
) -> None:
    browser.size(width)
    browser.look(prefers_color_scheme=scheme)
    browser.open((site / "generation.html").as_uri())
    browser.value("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert browser.value("document.documentElement.scrollWidth") <= width
    curves = "document.querySelectorAll('svg.curve')"
    assert browser.value(f"{curves}.length") == 6
    assert browser.value(f"Array.from({curves}, (each) => each.clientWidth > 100).every(Boolean)")
    labels = browser.value(f"Array.from({curves}, (each) => each.getAttribute('aria-label'))")
    assert len(set(labels)) == 2
    # A line has a colour of its own on its ground, in either scheme.
    seen = browser.value(
        "(() => { const line = document.querySelector('.curve .line'); return ["
        "getComputedStyle(line).stroke, getComputedStyle(line.parentElement).backgroundColor]; })()"
    )
    assert len(set(seen)) == 2
    browser.open((site / "generation.html").as_uri() + "#g1")
    assert browser.value("document.getElementById('g1').open") is True
    assert browser.complaints == []


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
                "compare.html": "Any two targets of this report",
                "models.html": "m_nan_mismatch",
                "operators.html": "MatMul",
                "api.html": "run with a cache",
                "precision.html": "Cost of a lower precision",
                "performance.html": "Latency by model",
                "time.html": "Where the time of a run goes",
                "generation.html": "Free text, which is never judged",
                "failures.html": "Failed, and no failure is expected",
                "changes.html": "Regressed",
                "faults.html": "Still fails with",
                "nights.html": "Cell by night",
                "cells.html": "Out of tolerance",
            }
            assert wanted.get(name, "MatMul") in text
            assert not re.search(r'<form class="filter" id="filter">', html)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.parametrize("width", [400, 1280])
def test_a_fault_is_drawn_and_its_links_lead_on(browser: "Browser", site: Path, width: int) -> None:
    browser.size(width)
    browser.open((site / "faults.html").as_uri())
    drawings = "document.querySelectorAll('.graph svg')"
    assert browser.value(f"{drawings}.length") == 2
    assert browser.value(f"{drawings}[0].querySelectorAll('.node').length") == 2
    assert browser.value(f"{drawings}[1].querySelectorAll('.node').length") == 60
    assert browser.value(f"{drawings}[1].querySelectorAll('.guilty').length") == 1
    # No text is wider than the box that it is in.
    wide = (
        "Array.from(document.querySelectorAll('.graph g')).filter((box) => {"
        " const outer = box.querySelector('.body').getBBox();"
        " return Array.from(box.querySelectorAll('text')).some((text) => {"
        " const inner = text.getBBox();"
        " return inner.x < outer.x || inner.x + inner.width > outer.x + outer.width; }); }).length"
    )
    assert browser.value(wide) == 0
    # Nor do boxes lie on each other.
    overlaps = (
        "Array.from(document.querySelectorAll('.graph svg'), (svg) => {"
        " const boxes = Array.from(svg.querySelectorAll('.body'), (body) => body.getBBox());"
        " return boxes.filter((one, index) => boxes.slice(index + 1).some((other) =>"
        " one.x < other.x + other.width && other.x < one.x + one.width &&"
        " one.y < other.y + other.height && other.y < one.y + one.height)).length;"
        " }).reduce((sum, count) => sum + count, 0)"
    )
    assert browser.value(overlaps) == 0
    assert (site / browser.value("document.querySelector('a.download').getAttribute('href')")).is_file()
    browser.value("document.querySelector('.faults a').click()")
    browser.until("location.hash === '#f1'")
    detail = browser.value("document.querySelector('.fault .cells a').href")
    browser.open(detail)
    opened = "document.getElementById(location.hash.slice(1))"
    assert browser.value(f"{opened}.open") is True
    assert browser.value(f"{opened}.querySelector('.explained a').getAttribute('href')") == "faults.html#f1"
    assert browser.complaints == []

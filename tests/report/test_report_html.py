import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.facts import OptionEffect
from harness.core.records.record import ModelContent, ProcessState, Record
from harness.core.records.verdict import Phase, Verdict
from harness.core.timing.latency import Latency
from harness.report.runs.merge import merge
from harness.report.runs.merged_run import MergedRun
from harness.report.view import build_report
from harness.report.words.tone import TONES, WEAK
from tests.kit import merged, record, run_of, site

VOID = {"meta", "link", "input", "br"}
HOSTILE = (
    '</code></script><script>alert(1)</script><img src=x onerror=alert(1)>"\' onmouseover="x '
    "\x1b[31mred\x1b[0m \x00\x07 \u202eexe.gpj {{ 7 * 7 }} javascript:alert(1) ]]> <!--"
)


LATENCY = Latency(
    runs=2,
    warm_up=0,
    stopped_by="budget",
    min_ms=1.0,
    p50_ms=2.0,
    p90_ms=None,
    p99_ms=None,
    max_ms=3.0,
    mean_ms=2.0,
    stddev_ms=1.4,
    samples_ms=(1.0, 3.0),
    io="copied",
    intra_op_threads=0,
    inter_op_threads=0,
    waiting_threads=0.5,
    host_peak_mib=100.0,
    device_mib=None,
)


class Page(HTMLParser):
    """Checks nesting, and collects elements and text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.raw: dict[str, str] = {}
        self.text = ""
        self.feed(html)
        self.close()
        assert not self.stack, f"left open: {self.stack}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"attribute twice in <{tag}>: {names}"
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] in {"script", "style"}:
            key = "archive" if self.elements[-1][1].get("id") == "archive" else self.stack[-1]
            self.raw[key] = self.raw.get(key, "") + data
        else:
            self.text += data

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.elements if name == tag]

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


@pytest.fixture
def pages(tmp_path: Path) -> Callable[..., dict[str, Page]]:
    def build(run: MergedRun, captured: str = "") -> dict[str, Page]:
        report = build_report(run, lambda _folder, _record: captured, {"NpuExecutionProvider": {"Abs": ""}})
        return {name: Page(html) for name, html in site(tmp_path, report).items()}

    return build


Pages = Callable[..., dict[str, Page]]


PAGES_IN_ORDER = [
    "index.html",
    "models.html",
    "operators.html",
    "precision.html",
    "performance.html",
    "failures.html",
    "cells.html",
]


def every_verdict(text: str = "a reason") -> list[Record]:
    return [
        record(f"m_{verdict.value}", verdict=verdict, reason=text, cause="cause", phase=Phase.RUN)
        for verdict in Verdict
    ]


def test_pages_are_well_formed_and_their_links_lead_somewhere(pages: Pages) -> None:
    records = [
        *every_verdict(),
        record("x", target="gpu"),
        record(
            "f",
            verdict=Verdict.ERROR,
            retries=(Verdict.PASS,),
            effect=OptionEffect(options=("a",), seen=False),
        ),
        record("timed", latency=LATENCY),
    ]
    found = pages(merged(records, planned=99), "captured")
    assert found.keys() >= {
        "index.html",
        "models.html",
        "operators.html",
        "operators-1.html",
        "precision.html",
        "performance.html",
        "failures.html",
        "cells.html",
    }
    ids = {name: [attrs["id"] for _, attrs in page.elements if "id" in attrs] for name, page in found.items()}
    for name, page in found.items():
        assert len(ids[name]) == len(set(ids[name])), name
        assert len(page.of("h1")) == 1, name
        pages_of_the_site = [attrs["href"] for attrs in page.of("a") if attrs["href"] in PAGES_IN_ORDER]
        assert [href for href in pages_of_the_site if href != "index.html"][:6] == PAGES_IN_ORDER[1:], name
        for attrs in page.of("a"):
            file, _, anchor = attrs["href"].partition("#")
            assert (file or name) in found, f"{name} leads to {attrs['href']}"
            assert not anchor or anchor in ids[file or name], f"{name} leads to {attrs['href']}"
    linked = {attrs["href"] for attrs in found["models.html"].of("a") if ".html#c" in attrs["href"]}
    assert len(linked) == len(found["cells.html"].of("details")) > 10
    used = {name for attrs in found["models.html"].of("td") for name in attrs.get("class", "").split()}
    assert used >= set(TONES) - {WEAK}


def test_nothing_is_loaded_from_anywhere(tmp_path: Path) -> None:
    report = build_report(merged(every_verdict()), lambda *_: "", {})
    for name, html in site(tmp_path, report).items():
        page = Page(html)
        without_archive = html.replace(page.raw.get("archive", "no archive"), "")
        assert not re.search(r"https?://|[\"'(]//|@import|url\((?!#)", without_archive), name
        for tag, attrs in page.elements:
            assert tag not in {"img", "iframe", "object", "embed", "base", "audio", "video"}
            assert "src" not in attrs
            if "href" in attrs:
                assert re.fullmatch(r"data:,|#[\w-]+|[\w-]+\.html(#\w+)?", attrs["href"]), attrs["href"]


def test_the_security_policy_allows_this_page_and_no_more(pages: Pages) -> None:
    for page in pages(merged(every_verdict())).values():
        metas = page.of("meta")
        (policy,) = [m["content"] for m in metas if m.get("http-equiv") == "Content-Security-Policy"]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        for tag in ("script", "style"):
            digest = base64.b64encode(hashlib.sha256(page.raw[tag].encode()).digest()).decode()
            assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
            assert len([attrs for attrs in page.of(tag) if attrs.get("type") != "text/plain"]) == 1
        for tag, attrs in page.elements:
            assert "style" not in attrs, f"<{tag}> carries a style that the policy forbids"
            assert not [name for name in attrs if name.startswith("on")], f"<{tag}> carries a handler"


def test_hostile_names_and_messages_stay_text(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"suite": HOSTILE, "target": HOSTILE, "provider": HOSTILE}
    harmless = [
        *every_verdict(),
        record(
            "flaky",
            verdict=Verdict.ERROR,
            retries=(Verdict.PASS,),
            process=ProcessState(pid=7, session=1),
            content=ModelContent(opsets={"ai.onnx": 21}, ops={"Abs": 1}, types=("float32",)),
        ),
        record("timed", latency=LATENCY),
        record("other column", axes={"option.x": "1"}, effect=OptionEffect(options=("x",), seen=False)),
        record(target="cuda", provider="Cuda", verdict=Verdict.UNAVAILABLE),
    ]
    hostile = [
        record(
            f"{HOSTILE}{verdict.value}",
            verdict=verdict,
            expected=False,
            op=HOSTILE,
            reason=HOSTILE,
            cause=HOSTILE,
            golden=HOSTILE,
            started=HOSTILE,
            artifacts=HOSTILE,
            timings_ms={HOSTILE: 1.0},
            retries=(Verdict.HANG, verdict),
            process=ProcessState(pid=7, session=1, rss_mib=1e9),
            effect=OptionEffect(options=(HOSTILE,), seen=False),
            content=ModelContent(opsets={HOSTILE: 1}, ops={HOSTILE: 1}, types=(HOSTILE,)),
            latency=LATENCY,
            axes={"option.x": HOSTILE},
            **fields,
        )
        for verdict in Verdict
    ]
    documented = {HOSTILE: {"Abs": HOSTILE}, "NpuExecutionProvider": {"Abs": "some restriction"}}
    fingerprint = {HOSTILE: {HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]}}
    run = merged([*harmless, *hostile], targets={HOSTILE: fingerprint}, folder=HOSTILE.replace("/", "_"))
    found = site(tmp_path, build_report(run, lambda *_: HOSTILE, documented))
    calm = {
        name: Page(html)
        for name, html in site(tmp_path, build_report(merged(harmless), lambda *_: "x", documented)).items()
    }
    known = {tag for page in calm.values() for tag, _ in page.elements} | {"pre", "time"}
    attributes = {a for page in calm.values() for _, attrs in page.elements for a in attrs} | {"datetime"}
    scripts = {(page.raw["style"], page.raw["script"]) for page in calm.values()}
    for name, html in found.items():
        page = Page(html)
        assert {tag for tag, _ in page.elements} <= known, name
        assert {a for _, attrs in page.elements for a in attrs} <= attributes, name
        assert (page.raw["style"], page.raw["script"]) in scripts
        assert not set(html) & {"\x1b", "\x00", "\x07", "\u202e"}, name
        assert "[31m" not in html.replace(page.raw.get("archive", ""), "").replace(page.raw["script"], "")
        if name != "index.html":
            continue
        assert "<script>alert(1)</script>" in page.text
        assert "{{ 7 * 7 }}" in page.text
        assert "\\u202eexe" in page.text


def test_everything_recorded_travels_with_the_table_of_models(pages: Pages) -> None:
    records = [record("a b", reason=HOSTILE), record("c", verdict=Verdict.ERROR, target="gpu")]
    packed = pages(merged(records))["models.html"].raw["archive"]
    lines = zlib.decompress(base64.b64decode(packed)).decode().splitlines()
    entries = [json.loads(line) for line in lines]
    assert [command for command, _ in entries] == [
        "ep-harness run matrices/local.toml --target npu --model 'onnx-node/a b'",
        "ep-harness run matrices/local.toml --target gpu --model onnx-node/c",
    ]
    assert entries[0][1]["reason"] == HOSTILE
    assert entries[0][1]["outputs"][0]["rtol"] == 1e-4
    assert entries[1][1]["verdict"] == "error"


def test_one_endless_text_does_not_bloat_the_site(tmp_path: Path) -> None:
    long = "x" * 1_000_000
    content = ModelContent(opsets={long: 1}, ops={long: 1}, types=(long,))
    endless = record(long, verdict=Verdict.ERROR, reason=long, cause=long, content=content)
    found = site(tmp_path, build_report(merged([endless]), lambda *_: long, {}))
    assert sum(map(len, found.values())) < 500_000


def test_incomplete_and_empty_runs_say_so(pages: Pages) -> None:
    for page in pages(merged([record()], planned=3, complete=False)).values():
        assert "INCOMPLETE" in page.text
        assert "1 of 3 planned cells have a result; 2 not run" in page.words
        assert "100%" not in page.text.replace("100% is the limit", "").replace("to 100%", "")
    for page in pages(merged([], planned=3, complete=False)).values():
        assert "INCOMPLETE" in page.text
    complete = pages(merged([record()]))["index.html"]
    assert "INCOMPLETE" not in complete.text
    assert "1 of 1 · 100%" in complete.words
    assert "Every recorded verdict is as the matrix expects, and none is a failure." in complete.text
    excluded = pages(merged([record(verdict=Verdict.INVALID_MODEL)]))["index.html"]
    assert "No evidence: no cell says anything about a provider" in excluded.words
    assert "as the matrix expects" not in excluded.text
    untried = pages(merged([record(verdict=Verdict.UNAVAILABLE)]))["index.html"]
    assert "no data" in untried.text
    assert "%" not in untried.text


@pytest.mark.parametrize("missing", ["without record", "not_run"])
def test_a_run_with_cells_not_run_never_shows_all_or_none(missing: str, pages: Pages) -> None:
    records = [record(f"m{i}") for i in range(5)]
    if missing == "not_run":
        records.append(record("late", verdict=Verdict.NOT_RUN))
    overview = pages(merged(records, planned=6, complete=False))["index.html"].words
    assert ("− 1 not run = 5 tried" if missing == "not_run" else "5 recorded") in overview  # noqa: RUF001
    assert ("6 planned − 0 skipped" in overview) is (missing == "not_run")  # noqa: RUF001
    assert "5 of 5 · all so far" in overview
    assert "0 of 5 · none so far" in overview
    assert "100%" not in overview
    assert " 0%" not in overview


def test_the_precision_of_each_target_is_in_its_page(pages: Pages) -> None:
    records = [record(f"m{i}", target="default", bits=7.9, op="MatMul") for i in range(3)]
    records += [
        record(f"m{i}", target="f32", bits=20.4, op="MatMul", axes={"precision": "ep:f32"}) for i in range(3)
    ]
    text = pages(merged(records))["precision.html"].words
    assert "default fp32 7.9 bits about bfloat16" in text
    assert "f32 precision=ep:f32 ep:f32 20.4 bits about float32" in text


def test_conflicts_between_runs_are_listed(pages: Pages) -> None:
    one = run_of([record(HOSTILE)], folder="monday")
    other = run_of([record(HOSTILE, verdict=Verdict.MISMATCH)], folder="tuesday", plan="sha256:2")
    found = pages(merge([one, other]))
    text = found["failures.html"].words
    assert "Conflicts between runs 1" in text
    assert "monday: ✓ pass tuesday: ✗ mismatch" in text
    assert "npu @ monday" in found["index.html"].words
    assert "npu @ tuesday" in found["index.html"].words
    packed = found["models.html"].raw["archive"]
    assert zlib.decompress(base64.b64decode(packed)).count(b"--target npu --model") == 2

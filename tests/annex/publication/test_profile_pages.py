"""The cases of a profile by provider, the comparison of any two submissions, and the index of names."""

import base64
import json
import re
import zlib
from typing import Any

from harness.annex.conformance.submission import Totals
from harness.annex.publication.devices import device_id
from harness.annex.publication.lines import changes_between, product_lines
from harness.annex.publication.profile_cases import SEVERAL, ProfileView, view_of
from tests.annex.conformance.small_profiles import operators_profile, tiny_profile
from tests.annex.conformance.submissions import fallen, refused, wrong
from tests.annex.publication.publisher import Publisher

ADD, BLOCK, FUSED, GATHER, NEG_13, NEG_21 = range(6)
"""Cases of ``operators_profile``."""


def view(publisher: Publisher) -> ProfileView:
    gathered = publisher.gathered()
    assert gathered.refused == ()
    return view_of(gathered.profiles["operators@1"], product_lines(gathered.entries))


def compared(site: dict[str, bytes], label: str = "operators@1") -> Any:
    page = site[f"p/{label}/compare.html"].decode()
    (packed,) = re.findall(r'id="archive">([^<]*)<', page)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_cases_are_grouped_by_operator_with_all_some_or_none(publisher: Publisher) -> None:
    publisher.submit("a", {NEG_21: wrong, GATHER: refused, BLOCK: fallen}, name="A")
    publisher.submit("b", name="B")
    found = view(publisher)
    assert [entry.label for entry in found.columns] == ["A 2.7.0", "B 2.7.0"]
    assert [group.name for group in found.groups] == [
        "Add", "Gather", "Neg", "com.microsoft.FusedMatMul", SEVERAL,
    ]  # fmt: skip
    tones = {group.name: [reach.tone for reach in group.reaches] for group in found.groups}
    assert tones == {
        "Add": ["passed", "passed"],
        "Gather": ["unsupported", "passed"],
        "Neg": ["partial", "passed"],
        "com.microsoft.FusedMatMul": ["passed", "passed"],
        SEVERAL: ["unsupported", "passed"],
    }
    neg, _ = found.groups[2].reaches
    assert (neg.types, neg.other_types, neg.opsets) == (("float32",), (), ((13, 1, 1), (21, 0, 1)))
    gather, _ = found.groups[1].reaches
    assert (gather.types, gather.other_types) == ((), ("float32", "int64"))


def test_a_filter_finds_what_fails_and_where_providers_differ(publisher: Publisher) -> None:
    publisher.submit("a", {ADD: refused, GATHER: wrong}, name="A")
    publisher.submit("b", {ADD: wrong, NEG_13: fallen}, name="B")
    rows = {row.label: row.shown for group in view(publisher).groups for row in group.rows}
    assert rows == {
        "suite/add_000": ("failing",),
        "suite/block_001": (),
        "suite/fusedmatmul_002": (),
        "suite/gather_003": ("failing", "differing"),
        "suite/neg_004": ("failing", "differing"),
        "suite/neg_005": (),
    }


def test_features_have_the_totals_of_each_provider(publisher: Publisher) -> None:
    publisher.submit("a", {FUSED: refused}, name="A")
    core, contrib = view(publisher).features
    assert core == ("core", "", (Totals(cases=5, passed=5, missing=0, failed=0, open=0),))
    assert contrib[:2] == ("contrib", "operators of com.microsoft")
    assert contrib[2][0].missing == 1


def test_a_case_that_does_not_pass_links_to_what_failed(publisher: Publisher) -> None:
    publisher.submit("a", {GATHER: wrong})
    (entry,) = publisher.gathered().entries
    page = publisher.site()["p/operators@1/index.html"].decode()
    (row,) = re.findall(r'<tr id="case-suite/gather_003".*?</tr>', page, re.DOTALL)
    assert f'<a href="../../s/{entry.id}/index.html#case-suite/gather_003">✗ mismatch</a>' in row
    assert "core · float32, int64 · opset 13" in row
    assert "<a" not in next(iter(re.findall(r'<tr id="case-suite/add_000".*?</tr>', page, re.DOTALL)))


def test_any_two_submissions_can_be_compared(publisher: Publisher) -> None:
    publisher.submit("a", {ADD: refused}, version="1.8")
    publisher.submit("b", {GATHER: wrong}, version="1.9")
    publisher.submit("c", version="1.24")
    publisher.submit("d", {GATHER: wrong}, name="Another EP")
    gathered = publisher.gathered()
    told = compared(publisher.site())
    assert told["cases"] == [case.name for case in operators_profile().cases]
    verdicts = {
        one["name"].partition(",")[0]: [
            told["verdicts"][ord(letter) - ord("a")] for letter in one["verdicts"]
        ]
        for one in told["sides"]
    }
    assert {one["id"] for one in told["sides"]} == {entry.id for entry in gathered.entries}
    assert verdicts["EP 1.8"][ADD] == ["– unsupported", "unsupported", "missing"]  # noqa: RUF001
    assert verdicts["EP 1.9"] == verdicts["Another EP 2.7.0"]
    assert {tuple(one) for one in verdicts["EP 1.24"]} == {("✓ pass", "passed", "passed")}
    # Submissions of one line stand together, the newest version first.
    assert [one["name"].partition(",")[0] for one in told["sides"]][-3:] == [
        "EP 1.24", "EP 1.9", "EP 1.8",
    ]  # fmt: skip
    # The address of a provider on a device, and of a device, means its newest one.
    line = next(one for one in product_lines(gathered.entries) if len(one.versions) > 1)
    assert [one["ids"] for one in told["groups"] if line.id in one["ids"]] == [[line.id, device_id(line.one)]]
    entries = {entry.label: entry for entry in gathered.entries}
    changes = changes_between(entries["EP 1.8"], entries["EP 1.24"])
    assert (changes.gained, changes.lost) == (("suite/add_000",), ())


def test_a_line_compares_each_version_with_the_one_before(publisher: Publisher) -> None:
    publisher.submit("a", {ADD: refused}, version="1.8")
    publisher.submit("b", {GATHER: wrong}, version="1.9")
    publisher.submit("c", version="1.24")
    ids = {entry.statement.product.version: entry.id for entry in publisher.gathered().entries}
    site = publisher.site()
    (page,) = (text.decode() for name, text in site.items() if re.fullmatch(r"l/\w+/index\.html", name))
    found = r'#\?a=(\w+)&amp;b=(\w+)".*?data-label="Cases">(\d) gained, (\d) lost<'
    steps = re.findall(found, page)
    assert steps == [(ids["1.9"], ids["1.24"], "1", "0"), (ids["1.8"], ids["1.9"], "1", "1")]


def test_the_index_has_names_and_does_not_grow_with_versions(publisher: Publisher) -> None:
    publisher.submit("a", version="1.0")
    publisher.submit("t", version="1.0", profile=tiny_profile())
    first = publisher.site()
    for minor in range(1, 9):
        publisher.submit(f"a{minor}", {minor % 6: wrong}, version=f"1.{minor}")
    later = publisher.site()

    def rows(site: dict[str, bytes]) -> list[str]:
        return re.findall(r'<tr data-kind="(\w+)"', site["search.html"].decode())

    # Two profiles of six and eight cases; five operators, of which MatMul is in no case alone.
    assert {kind: rows(first).count(kind) for kind in rows(first)} == {
        "operator": 5, "provider": 1, "profile": 2, "case": 14,
    }  # fmt: skip
    assert rows(later) == rows(first)
    assert len(later["search.html"]) == len(first["search.html"])
    pages = ("index.html", "operators.html", "p/operators@1/index.html", "p/operators@1/compare.html")
    assert max(len(later[page]) / len(first[page]) for page in pages) < 1.1

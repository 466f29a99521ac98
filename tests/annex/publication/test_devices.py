"""A site counts devices, not submissions, and says since which version something passes."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from harness.annex.conformance.submission import Statement
from harness.annex.publication.devices import counted_lines, devices_of
from harness.annex.publication.entry import AcceptedSubmission
from harness.annex.publication.lines import product_lines
from harness.annex.publication.operator_page import OperatorView, operator_home, operator_views
from harness.annex.publication.product_group import FEW, product_groups, shared_columns
from harness.annex.publication.publisher_site import write_publication
from harness.annex.publication.since_table import since_table
from harness.annex.publication.version_table import version_tables
from tests.annex.conformance.small_profiles import operators_profile
from tests.annex.conformance.submissions import changed, refused, wrong
from tests.annex.publication.many import many_submissions
from tests.annex.publication.publisher import DAY, Publisher

NEG_13, NEG_21 = 4, 5


@pytest.fixture(scope="module")
def entries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AcceptedSubmission]:
    """Version -> submission; 1.8 has no Neg, 1.9 and 1.10 have, 1.24 lost one of its cases."""
    publisher = Publisher(tmp_path_factory.mktemp("devices"))
    publisher.submit("a", {NEG_13: refused}, version="1.8")
    publisher.submit("b", version="1.9")
    publisher.submit("c", version="1.10")
    publisher.submit("d", {NEG_21: wrong}, version="1.24")
    return {entry.statement.product.version: entry for entry in publisher.gathered().entries}


def on(entry: AcceptedSubmission, device: str, number: str = "", **said: Any) -> AcceptedSubmission:
    """Return a submission as if it had run elsewhere."""
    environment = changed(entry.statement.environment, devices=(device,))
    fields = {name: said.pop(name) for name in ("created",) if name in said}
    signer = said.pop("signer", entry.signer)
    runtime = said.pop("onnxruntime", environment.onnxruntime)
    statement: Statement = changed(
        entry.statement,
        environment=changed(environment, onnxruntime=runtime),
        product=changed(entry.statement.product, **said),
        **fields,
    )
    return changed(entry, id=entry.id[:-2] + (number or device[-2:]), statement=statement, signer=signer)


def view_of_neg(*found: AcceptedSubmission) -> OperatorView:
    return next(one for one in operator_views(product_lines(found)) if one.name == "Neg")


def test_a_device_counts_once_and_by_its_newest_version(entries: dict[str, AcceptedSubmission]) -> None:
    good, bad = entries["1.10"], entries["1.24"]
    (product,) = view_of_neg(
        on(entries["1.8"], "NPU A"), on(good, "NPU A"), on(good, "NPU B"), on(bad, "NPU C"), on(good, "NPU C")
    ).products
    assert (product.count.passing, product.count.devices) == (2, 3)
    assert [one.line.one.device for one in product.right] == ["NPU A", "NPU B"]
    assert [one.line.one.device for one in product.others] == ["NPU C"]


def test_the_first_version_that_works_and_where_it_broke_again(
    entries: dict[str, AcceptedSubmission],
) -> None:
    (grown,) = view_of_neg(*(entries[name] for name in ("1.8", "1.9", "1.10"))).products
    assert grown.count.since is entries["1.9"]
    assert (grown.count.from_start, grown.count.broke) == (False, None)
    view = view_of_neg(*entries.values())
    (broken,) = view.products
    assert (broken.count.passing, broken.count.since, broken.count.broke) == (0, None, entries["1.24"])
    by_case = {label: count for (label, _), (count,) in view.cases.items()}
    first, second = by_case["suite/neg_004"], by_case["suite/neg_005"]
    assert first is not None
    assert second is not None
    assert (first.passing, first.since) == (1, entries["1.9"])
    assert (second.passing, second.broke) == (0, entries["1.24"])
    (always,) = view_of_neg(entries["1.9"]).products
    assert always.count.from_start


def test_types_features_and_surfaces_have_their_first_version_as_well(
    entries: dict[str, AcceptedSubmission],
) -> None:
    grown = since_table(product_lines(entries[name] for name in ("1.8", "1.9", "1.10")))
    assert {(row.kind, row.name): row.products[0].count.since for row in grown} == {
        ("element type", "float32"): entries["1.9"],
        ("element type", "int64"): entries["1.8"],
        ("feature", "contrib"): entries["1.8"],
        ("feature", "core"): entries["1.9"],
        ("surface", "plain"): entries["1.9"],
    }
    assert [row.products[0].count.from_start for row in grown] == [False, True, True, False, False]
    (last,) = since_table(product_lines(entries.values()))[-1].products
    assert (last.count.passing, last.count.broke, last.most) == (0, entries["1.24"], (5, 6))


def test_what_one_device_shows_counts_for_the_others(entries: dict[str, AcceptedSubmission]) -> None:
    late = on(entries["1.10"], "NPU B")
    (product,) = view_of_neg(entries["1.8"], entries["1.9"], late).products
    assert product.count.since is entries["1.9"]
    assert not product.count.from_start
    old = on(entries["1.8"], "NPU B", "xx")  # 1.8 fails there as well, and 1.9 was not tried
    (product,) = view_of_neg(entries["1.9"], old, late).products
    assert product.count.since is entries["1.9"]
    failing = on(entries["1.8"], "NPU B", "yy", version="1.9.5")
    (product,) = view_of_neg(entries["1.9"], failing, late).products
    assert product.count.since is late


def test_a_stranger_does_not_replace_a_signed_result(entries: dict[str, AcceptedSubmission]) -> None:
    signed = changed(entries["1.10"], signer="key")
    forged = on(entries["1.24"], entries["1.24"].statement.environment.devices[0], "ff", created="2027-01-01")
    lines = product_lines([signed, forged])
    (on_device,) = counted_lines(lines).values()
    assert [line.one for line in on_device.values()] == [signed]
    (device,) = devices_of(lines)
    assert len(device.lines) == len(device.history) == 2  # its page has both


def test_a_device_has_its_numbers_drivers_and_history(entries: dict[str, AcceptedSubmission]) -> None:
    found = [
        on(entries["1.9"], "GPU NVIDIA ada vendor_id 4318 device_id 8961", "01", created="2026-01-02"),
        on(entries["1.10"], "GPU NVIDIA ada vendor_id 4318 device_id 8961", "02", created="2026-03-04"),
        on(entries["1.9"], "GPU NVIDIA ada vendor_id 4318 device_id 8962", "03"),
    ]
    (one, _) = devices_of(product_lines(found))
    (facts,) = one.facts
    assert (facts.kind, facts.name, facts.vendor_id, facts.device_id) == ("GPU", "NVIDIA ada", "4318", "8961")
    assert one.drivers == ("qcadsprpc 1.0",)
    assert [entry.statement.created for entry, *_ in one.history] == ["2026-03-04", "2026-01-02"]
    assert one.history[0][2] is not None
    assert one.history[0][2].gained == ()


def test_versions_by_onnxruntime_count_the_newest_of_each_device(
    entries: dict[str, AcceptedSubmission],
) -> None:
    old = on(entries["1.24"], "NPU A", "01", created="2026-01-01", onnxruntime="1.9.0")
    new = on(entries["1.9"], "NPU A", "02", created="2026-02-01", onnxruntime="1.9.0", version="1.24")
    other = on(entries["1.8"], "NPU B", onnxruntime="1.24.0")
    (table,) = version_tables(product_lines([old, new, other]))
    assert table.runtimes == ("1.24.0", "1.9.0")
    assert [version for version, _ in table.rows] == ["1.24", "1.8"]
    (empty, count), (_, none) = table.rows[0][1], table.rows[1][1]
    assert empty is none is None
    assert count is not None
    assert (count.devices, count.loads, count.right, count.wrong, count.cases) == (1, 1, 6, 0, 6)


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "\u202e"])
def test_a_name_that_is_no_file_name_has_a_digest(name: str) -> None:
    assert re.fullmatch(r"o/[0-9a-f]{16}", operator_home(name))
    assert operator_home("com.microsoft.FusedMatMul") == "o/com.microsoft.FusedMatMul"


def test_pages_of_devices_operators_and_versions(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    publisher.submit("a", {NEG_13: refused}, version="1.8")
    publisher.submit("b", version="1.9")
    site = publisher.site()
    (device,) = (name for name in site if re.fullmatch(r"d/[0-9a-f]{16}/index\.html", name))
    page = site[device].decode()
    assert page.count("<tr data-from=") == 2
    assert "1 gained, 0 lost" in page
    assert f'href="{device}"' in site["devices.html"].decode()
    assert f'<td data-label="EP build">{"d" * 12}</td>' in page
    assert '<td data-label="Firmware">not known</td>' in page
    newest = json.loads(site["data.json"])["submissions"][0]
    assert (newest["facts"]["vendor"], newest["facts"]["firmware"]) == ("Qualcomm", "")
    told = site[f"s/{newest['id']}/index.html"].decode()
    assert "<dt>Vendor</dt><dd>Qualcomm</dd>" in told
    assert "<dt>Firmware</dt><dd>not known</dd>" in told
    assert "1 of 1" in site["operators.html"].decode()
    (listed,) = json.loads(site["devices.json"])["devices"]
    assert (listed["submissions"], listed["facts"][0]["kind"]) == (2, "NPU")
    own, every = json.loads(site[listed["data"]]), json.loads(site["data.json"])
    assert own == every
    rows = list(csv.DictReader(site[listed["history"]].decode("utf-8-sig").splitlines()))
    assert [(row["version"], row["passed"], row["required"]) for row in rows] == [
        (one["statement"]["product"]["version"], str(one["passed"]), str(one["required"]))
        for one in own["submissions"]
    ]
    assert "since 1.9 <span" in site["o/Neg/index.html"].decode()
    assert "at least since 1.8 <span" in site["o/Add/index.html"].decode()
    types = site["since.html"].decode()
    assert 'id="element-type-float32"' in types
    assert "since 1.9 <span" in types
    assert '<tr data-version="1.9" data-onnxruntime="1.31.1" data-from="20' in site["versions.html"].decode()
    for folder in ("a", "b"):
        for file in (publisher.submissions / folder).rglob("*"):
            if file.is_file():
                file.unlink()
    publisher.submit("c", version="2.0", name="other")
    assert device in publisher.site()  # its address stays, as a page of the same device


def test_a_product_on_many_devices_has_one_row_and_counts(entries: dict[str, AcceptedSubmission]) -> None:
    many = [on(entries["1.10" if place else "1.8"], f"NPU 0{place}") for place in range(FEW + 1)]
    lines = product_lines([*many, on(entries["1.9"], "NPU X", name="small")])
    large, small = sorted(product_groups(lines), key=lambda one: not one.is_large)
    assert (large.is_large, small.is_large) == (True, False)
    assert large.conformant("operators@1") == (FEW, FEW + 1)
    (column,) = shared_columns([large, small], "operators@1")
    assert (column.devices, column.conformant, column.features["core"]) == (FEW + 1, FEW, FEW)
    assert column.cases["suite/neg_004"] == FEW
    assert column.cases["suite/add_000"] == FEW + 1


def test_a_site_with_a_large_product_links_to_all_of_it(tmp_path: Path) -> None:
    publisher = Publisher(tmp_path)
    publisher.submit("one")
    (one,) = publisher.gathered().entries
    gathered = many_submissions(one, operators_profile(), submissions=20, devices=10, products=1, versions=3)
    write_publication(gathered, tmp_path / "site", title="Many", today=DAY)
    pages = {
        path.relative_to(tmp_path / "site").as_posix(): path.read_text("utf-8")
        for path in (tmp_path / "site").rglob("*.html")
    }
    (product,) = (name for name in pages if name.startswith("m/"))
    assert f'href="{product}"' in pages["index.html"]
    assert f'href="../../{product}"' in pages["p/operators@1/index.html"]
    assert f'href="{product}"' in pages["search.html"]
    devices = len([name for name in pages if name.startswith("d/")])
    assert pages[product].count("<tr data-level=") == devices > FEW
    row = pages["p/operators@1/index.html"].partition('<tr id="case-suite/add_000"')[2].partition("</tr>")[0]
    assert f"of {devices}" in row

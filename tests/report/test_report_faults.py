"""Faults from ``triage/faults.jsonl`` to the pages, the bundles and the other formats."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from harness.core.records.fault import (
    Condition,
    Fault,
    Frame,
    NativeCrash,
    Repetition,
    Signature,
    encode_fault,
)
from harness.core.records.verdict import Verdict
from harness.report.cells import paging
from harness.report.history.history_file import History
from harness.report.pages.fault_words import condition_rows, confirmed
from harness.report.pages.faults_page import fault_pages
from harness.report.report_files import write_report
from harness.report.runs import fault_bundle
from harness.report.runs.fault_bundle import bundles_for
from harness.report.runs.fault_merge import SHOWN_FAULT_CELLS
from harness.report.runs.merge import merge
from harness.report.runs.read import read_run
from harness.report.view import Report, build_report
from tests.kit import record, run_of, site, write_run
from tests.triages import fault, write_triage

HOSTILE = "</text></svg><script>alert(1)</script><img src=x>\"' \x1b[31m\x07\u202e {{ 7 * 7 }}"
BAD = "onnx-node/bad[npu]"


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    records = [
        record("bad", verdict=Verdict.MISMATCH, reason="3 of 12 elements differ"),
        record("worse", verdict=Verdict.MISMATCH, reason="4 of 12 elements differ"),
        record("ugly", verdict=Verdict.CRASH, reason="SIGSEGV"),
        record("good"),
    ]
    return write_run(tmp_path / "run", records)


def view(*folders: Path, **fields: object) -> Report:
    runs = [read_run(folder) for folder in folders]
    return build_report(merge(runs), lambda *_: "", {}, **fields)  # type: ignore[arg-type]


def test_without_a_triage_there_is_no_page(run_folder: Path, tmp_path: Path) -> None:
    report = view(run_folder)
    assert report.faults == ()
    found = site(tmp_path, report)
    assert "faults.html" not in found
    assert not [name for name, html in found.items() if "faults.html" in html]


def test_the_page_tells_each_fault(run_folder: Path, tmp_path: Path) -> None:
    again = Repetition(outcome="never", trials=40, failures=0)
    write_triage(
        run_folder,
        fault("I0000000002", "onnx-node/ugly[npu]", inconclusive="not again in 40 trials", reduced=None,
              location=None, confirmation=again),
        fault("F0000000001", BAD, "onnx-node/worse[npu]", "onnx-node/gone[npu]"),
    )  # fmt: skip
    html = site(tmp_path, view(run_folder))["faults.html"]
    words = " ".join(re.sub(r"<[^>]+>", " ", html.partition("</style>")[2]).split())
    assert "1 fault explains 2 of 3 failed cells; 1 triage was inconclusive" in words
    for told in (
        "Npu 1.2 computes Conv wrongly for float32.",
        "F0000000001 · 3 cells",
        "npu (NpuExecutionProvider 1.2, onnxruntime 1.31.1)",
        "every time: 5 of 5 trials",
        "node conv_7 (Conv) of the cell's model",
        "fails with right inputs",
        "2 of 70 nodes, 500 of 1,000,000 bytes; opset ai.onnx 21",
        "one value in each",
        "graph optimization basic ✓ disabled",
        "element type – – float16 (invalid model)",  # noqa: RUF001 - as the page has it
        "Inconclusive 1",
        "onnx-node/ugly[npu] not again in 40 trials 0 of 40 1",
    ):
        assert told in words.replace("&#39;", "'"), told
    assert words.index("F0000000001 ·") < words.index("not again in 40 trials")
    assert re.search(r'<a href="cells.html#c\d+">onnx-node/worse\[npu\]</a>', html)
    assert "<li>onnx-node/gone[npu]</li>" in html  # the run has no such cell


def test_failures_and_details_lead_to_the_fault(run_folder: Path, tmp_path: Path) -> None:
    write_triage(run_folder, fault("F0000000001", BAD, "onnx-node/good[npu]"))
    report = view(run_folder)
    explained = {cell.record.model: cell.fault.href for cell in report.cells if cell.fault}
    assert explained == {"bad": "faults.html#f1"}  # a cell that passes needs no explanation
    found = site(tmp_path, report)
    for name in ("failures.html", "cells.html"):
        assert found[name].count('<a href="faults.html#f1">Fault F0000000001</a>') == 1, name
    assert '<span class="of">1 of 2 cells</span>' in found["failures.html"]


def test_representatives_with_one_id_are_one_fault(run_folder: Path) -> None:
    write_triage(
        run_folder,
        fault("F0000000002", "onnx-node/ugly[npu]"),
        fault("F0000000001", BAD, bundle=""),
        fault("F0000000001", "onnx-node/worse[npu]", target="gpu", bundle="other"),
    )
    (run_folder / "triage" / "other.zip").write_bytes(b"PK")
    first, second = view(run_folder, bundle_of=bundles_for(run_folder / "report")).faults
    assert first.link.id == "F0000000001"  # it explains more
    assert [cell.cell for cell in first.cells] == [BAD, "onnx-node/worse[npu]"]
    assert first.targets == ("npu", "gpu")
    assert first.bundle is not None
    assert first.bundle.href == "../triage/other.zip"
    assert second.link.href == "faults.html#f2"


def test_a_result_is_shown_before_an_open_question_with_the_same_id(run_folder: Path) -> None:
    write_triage(
        run_folder,
        fault("F0000000001", BAD, inconclusive="the board is gone", reduced=None),
        fault("F0000000001", "onnx-node/worse[npu]"),
    )
    (only,) = view(run_folder).faults
    assert only.fault.representative == "onnx-node/worse[npu]"
    assert len(only.found) == 2


def test_of_one_representative_the_later_line_counts(run_folder: Path) -> None:
    write_triage(run_folder, fault("I0000000001", BAD, inconclusive="no time"), fault("F0000000002", BAD))
    assert [each.id for each in read_run(run_folder).faults] == ["F0000000002"]


def test_merged_runs_keep_apart_what_conflicts(tmp_path: Path) -> None:
    monday = write_run(tmp_path / "monday", [record("bad", verdict=Verdict.MISMATCH)])
    tuesday = write_run(tmp_path / "tuesday", [record("bad", verdict=Verdict.CRASH)], plan="sha256:2")
    write_triage(monday, fault("F0000000001"))
    write_triage(tuesday, fault("F0000000002"))
    report = view(monday, tuesday)
    ids = {cell.record.target: cell.fault.id for cell in report.cells if cell.fault}
    assert ids == {"npu @ monday": "F0000000001", "npu @ tuesday": "F0000000002"}
    hrefs = [each.cells[0].href for each in report.faults]
    assert len(set(hrefs)) == 2
    # A fault of one run says nothing about the other result of the cell.
    (tuesday / "triage" / "faults.jsonl").unlink()
    ids = {cell.record.target: cell.fault.id for cell in view(monday, tuesday).cells if cell.fault}
    assert ids == {"npu @ monday": "F0000000001"}


def test_equal_results_of_merged_runs_share_a_fault(tmp_path: Path) -> None:
    folders = [
        write_run(tmp_path / name, [record("bad", verdict=Verdict.MISMATCH)]) for name in ("one", "two")
    ]
    write_triage(folders[1], fault("F0000000001"))
    report = view(*folders)
    (cell,) = report.cells
    assert cell.folder == folders[0]
    assert cell.fault is not None
    (shown,) = report.faults
    assert shown.runs == ("two",)
    assert shown.cells[0].href == cell.href


def test_a_damaged_line_costs_its_fault_and_is_told(run_folder: Path) -> None:
    path = write_triage(run_folder, fault("F0000000001")) / "faults.jsonl"
    good = path.read_bytes()
    other = encode_fault(fault("F0000000002", schema=7))
    deep = b'{"later":' + b"[" * 100_000
    path.write_bytes(b"\n" + good + b'{"id":1}\n' + other + b"\n" + deep + b"\n{torn")
    run = read_run(run_folder)
    assert [each.id for each in run.faults] == ["F0000000001"]
    assert [problem.where for problem in run.damaged_faults] == [f"{path}: line {n}" for n in (3, 4, 5, 6)]
    (notice,) = (one for one in merge([run]).notices if "faults.jsonl" in one)
    assert "4 lines of triage/faults.jsonl without a fault (first: line 3, not a fault:" in notice
    path.write_bytes(b"\xff\xfe")
    assert read_run(run_folder).faults == ()
    path.unlink()
    path.mkdir()
    (problem,) = read_run(run_folder).damaged_faults
    assert "the file cannot be read" in problem.what


def test_a_bundle_is_linked_in_the_run_and_copied_elsewhere(run_folder: Path, tmp_path: Path) -> None:
    write_triage(run_folder, fault("F0000000001"))
    index = write_report([run_folder], run_folder / "report", ("html",))[0]
    assert 'href="../triage/F0000000001.zip" download' in index.with_name("faults.html").read_text("utf-8")
    assert not (run_folder / "report" / "bundles").exists()
    out = tmp_path / "site"
    write_report([run_folder], out, ("html", "json"))
    assert 'href="bundles/F0000000001.zip" download' in (out / "faults.html").read_text("utf-8")
    assert (out / "bundles" / "F0000000001.zip").read_bytes() == b"PKF0000000001"
    write_report([run_folder], out, ("html",))  # again, over the first
    only_json = tmp_path / "json"
    write_report([run_folder], only_json, ("json",))
    assert {path.name for path in only_json.iterdir()} == {"report.json"}


def test_a_large_bundle_is_named_and_not_copied(
    run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_triage(run_folder, fault("F0000000001"))
    monkeypatch.setattr(fault_bundle, "MAX_COPIED_BYTES", 3)
    out = tmp_path / "site"
    write_report([run_folder], out, ("html",))
    html = (out / "faults.html").read_text("utf-8")
    assert "too large to be copied here: <code>triage/F0000000001.zip</code>" in html
    assert "download" not in html.partition("</style>")[2].replace('class="download"', "")
    assert not (out / "bundles").exists()


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "..", "", "a/b", "link", "x" * 200, "nul\0"])
def test_a_bundle_outside_of_the_triage_is_not_followed(name: str, run_folder: Path, tmp_path: Path) -> None:
    folder = write_triage(run_folder, fault("F0000000001"))
    (run_folder / "secret.zip").write_bytes(b"secret")
    (folder / "link.zip").symlink_to(run_folder / "secret.zip")
    for out in (run_folder / "report", tmp_path / "site"):
        assert bundles_for(out)(run_folder, fault(bundle=name)) is None


def test_hostile_texts_stay_text_and_are_cut(run_folder: Path, tmp_path: Path) -> None:
    plain = fault()
    assert plain.reduced is not None
    node = msgspec.structs.replace(
        plain.reduced.nodes[0], name=HOSTILE, op_type=HOSTILE, domain=HOSTILE,
        inputs=("x", HOSTILE), outputs=(HOSTILE * 2,), attributes={HOSTILE: HOSTILE * 1000},
    )  # fmt: skip
    tensors = [msgspec.structs.replace(t, name=HOSTILE * 3, dtype=HOSTILE, shape=HOSTILE * 1000)
               for t in plain.reduced.tensors]  # fmt: skip
    frame = Frame(library=HOSTILE, function=HOSTILE * 1000)
    hostile = fault(
        HOSTILE, BAD, HOSTILE * 1000,
        sentence=HOSTILE * 10_000, target=HOSTILE, provider=HOSTILE, library=HOSTILE, onnxruntime=HOSTILE,
        signature=Signature(verdict=Verdict.CRASH, cause=HOSTILE, message=HOSTILE * 1000),
        reduced=msgspec.structs.replace(
            plain.reduced, nodes=(node,), tensors=tuple(tensors), opsets={HOSTILE: 1, "a": 10**30}
        ),
        conditions=[Condition(kind="option", name=HOSTILE + str(n), value=HOSTILE, verdict=HOSTILE)
                    for n in range(500)],
        crash=NativeCrash(signal=HOSTILE, frames=(frame,) * 500, culprit=HOSTILE, address=HOSTILE),
        preceding=(HOSTILE,) * 500, scenario=HOSTILE, bundle=HOSTILE,
    )  # fmt: skip
    hostile = msgspec.convert(msgspec.to_builtins(hostile), Fault)
    write_triage(
        run_folder, hostile, fault(HOSTILE + "2", HOSTILE, inconclusive=HOSTILE * 1000, reduced=None)
    )
    calm = site(tmp_path, view(run_folder))
    for name, html in calm.items():
        assert "<script>alert" not in html, name
        assert "<img" not in html, name
        assert not set(html) & {"\x1b", "\x07", "\u202e"}, name
    assert len(calm["faults.html"]) < 300_000
    page = calm["faults.html"].partition("</style>")[2]
    assert set(re.findall(r' id="([^"]*)"', page)) == {
        "hatch", "content", "faults", "f1", "f2", "inconclusive",
    }  # fmt: skip
    assert "{{ 7 * 7 }}" in page


def test_many_cells_and_faults_are_bounded(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(paging, "PART_CHARS", 50_000)
    many = [f"onnx-node/m{n}[npu]" for n in range(SHOWN_FAULT_CELLS + 5)]
    write_triage(run_folder, *(fault(f"F000000000{n}", *many[n:]) for n in range(5)))
    report = view(run_folder)
    pages = list(fault_pages(report))
    assert [page.file for page in pages] == ["faults.html", "faults-2.html", "faults-3.html"]
    assert [len(page.faults) for page in pages] == [2, 2, 1]
    assert pages[0].faults[0].cells_left_out == 5
    found = site(tmp_path, report)
    for page in pages:
        for each in page.faults:
            file, _, anchor = each.shown.link.href.partition("#")
            assert f'<section id="{anchor}"' in found[file]
    assert "and 5 more; <code>faults.jsonl</code> has them all." in found["faults.html"]


def test_the_baseline_says_since_when(run_folder: Path, tmp_path: Path) -> None:
    old = write_run(
        tmp_path / "old", [record("bad"), record("worse", verdict=Verdict.MISMATCH), record("ugly")]
    )
    write_triage(
        run_folder,
        fault("F0000000001", BAD, "onnx-node/worse[npu]"),
        fault("F0000000002", "onnx-node/ugly[npu]"),
        fault("F0000000003", "onnx-node/worse[npu]"),
    )
    write_report([run_folder], tmp_path / "out", ("html",), baseline=old)
    html = (tmp_path / "out" / "faults.html").read_text("utf-8")
    told = re.findall(r"<dt>Since when</dt><dd>(.*?)</dd>", html)
    name = str(old)
    assert told == [
        f"1 of its 2 cells did not fail in {name}, the others did",
        f"after {name}, in which none of its cells failed",
        f"its cells failed in {name} as well",
    ]


def test_the_history_says_since_when(tmp_path: Path) -> None:
    failing = Verdict.MISMATCH
    nights = (
        {"always": failing},
        {"always": failing, "lately": Verdict.PASS, "on_and_off": failing},
        {"always": failing, "lately": failing, "on_and_off": Verdict.PASS, "today": Verdict.PASS},
        {"always": failing, "lately": failing, "on_and_off": failing, "today": failing},
    )
    database, run = tmp_path / "history.sqlite", tmp_path
    with History(database, create=True) as history:
        for number, night in enumerate(nights, start=1):
            records = [
                msgspec.structs.replace(
                    record(model, verdict=verdict), started=f"2026-11-0{number}T02:00:00Z"
                )
                for model, verdict in night.items()
            ]
            run = write_run(
                tmp_path / f"night{number}", records, targets={"npu": {"onnxruntime": f"1.3{number // 3}"}}
            )
            if number < len(nights):
                history.add(run)
    write_triage(
        run,
        fault("F0000000001", "onnx-node/always[npu]"),
        fault("F0000000002", "onnx-node/lately[npu]", "onnx-node/today[npu]"),
        fault("F0000000003", "onnx-node/today[npu]"),
        fault("F0000000004", "onnx-node/on_and_off[npu]"),
    )
    with History(database) as history:
        write_report([run], tmp_path / "out", ("html",), history=history)
    html = (tmp_path / "out" / "faults.html").read_text("utf-8")
    shown = re.findall(
        r'<span class="count">(F\d+) .*?<dt>In the history</dt><dd>(.*?)</dd>', html, re.DOTALL
    )
    assert {number[-1]: told for number, told in shown} == {
        "1": "since 2026-11-01T02:00:00Z, in night1, where the history begins",
        "2": "since 2026-11-03T02:00:00Z, in night3; pass in night2 before "
        "(onnxruntime: 1.30 -&gt; 1.31); 1 of its 2 cells are new",
        "3": "new: none of its cells fails in the newest run",
        "4": "new: none of its cells fails in the newest run",
    }


def test_other_formats_have_the_faults(run_folder: Path, tmp_path: Path) -> None:
    write_triage(
        run_folder, fault("F0000000001", BAD), fault("F0000000001", "onnx-node/worse[npu]", target="gpu")
    )
    write_report([run_folder], tmp_path, ("json", "markdown"))
    (row,) = json.loads((tmp_path / "report.json").read_bytes())["faults"]
    assert row["targets"] == ["npu", "gpu"]
    assert row["runs"] == ["run"]
    assert msgspec.convert(row["fault"], Fault).cells == (BAD, "onnx-node/worse[npu]")
    markdown = (tmp_path / "report.md").read_text("utf-8")
    assert "## Faults: 1" in markdown
    assert f"| `F0000000001` | `Npu 1.2 computes Conv wrongly for float32.` | `{BAD}` | 2 |" in markdown


def test_how_often_is_told_in_words() -> None:
    def told(outcome: str, failures: int, trials: int, repeats: int = 1) -> str:
        fields = {"outcome": outcome, "trials": trials, "failures": failures, "repeats": repeats}
        return confirmed(msgspec.convert(fields, Repetition))

    assert told("always", 5, 5) == "every time: 5 of 5 trials"
    assert told("sometimes", 3, 10, 9) == (
        "sometimes: 3 of 10 trials (30.0%); gone only if 9 trials in a row pass"
    )
    assert told("never", 0, 40) == "not again: 0 of 40 trials"
    assert told("unknown", 0, 2).startswith("unknown: the trials did not run")


def test_conditions_of_one_kind_are_one_row() -> None:
    rows = condition_rows(
        [
            Condition(kind="option", name="a", value="1", fails=True),
            Condition(kind="option", name="b", value="1", fails=False, verdict="pass"),
            Condition(kind="option", name="a", value="2", fails=False, verdict="fallback"),
            Condition(kind="option", name="a", value="3", verdict="shape_mismatch"),
        ]
    )
    assert [(row.varied, row.fails, row.right, row.unknown) for row in rows] == [
        ("option a", "1", "2 (fallback)", "3 (shape mismatch)"),
        ("option b", "", "1", ""),
    ]


def test_a_run_without_faults_costs_nothing() -> None:
    run = run_of([record("a", verdict=Verdict.MISMATCH)])
    assert merge([run]).faults == ()
    assert build_report(merge([run]), lambda *_: "", {}).cells[0].fault is None

import html
import re
from pathlib import Path

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from harness.core.records.record import Record
from harness.core.records.verdict import Phase, Verdict
from harness.report.cells import paging, report_cell
from harness.report.cells.cell_groups import SHOWN_CELLS, SHOWN_GROUPS
from harness.report.cells.report_cell import command_of
from harness.report.pages import details, model_grid
from harness.report.pages.details import detail_pages
from harness.report.pages.precision_page import precision_view
from harness.report.view import Report, build_report
from tests.kit import merged, record, site


def detailed(report: Report) -> list[details.CellDetail]:
    return [cell for page in detail_pages(report) for section in page.sections for cell in section.details]


def suites_of(report: Report) -> tuple[model_grid.GridSuite, ...]:
    (page,) = model_grid.model_pages(report)
    return page.suites


def nothing(_folder: Path, _record: Record) -> str:
    return ""


@pytest.fixture
def small() -> Report:
    """The report of a small run with something of everything."""
    records = [
        record("test_matmul", bits=7.7, op="MatMul"),
        record("test_conv", verdict=Verdict.MISMATCH, bits=7.1, op="Conv", reason="3 of 12 elements differ"),
        record("test_gather", verdict=Verdict.PASS_PARTIAL),
        record("test_stft", verdict=Verdict.CRASH, cause="SIGSEGV", phase=Phase.CREATE, expected=True),
        record("test_abs", expected=False, reason="expected crash: see the tracker"),
        record("test_abs", target="gpu", verdict=Verdict.UNAVAILABLE, cause="no_device", reason="no GPU"),
        record("light_resnet50", suite="onnx-light", verdict=Verdict.FALLBACK),
    ]
    run = merged(records, planned=9, complete=False, targets={"npu": {"versions": {"onnxruntime": "1.31.1"}}})
    return build_report(run, lambda _folder, found: f"output of {found.model}" if found.cause else "", {})


def test_what_all_formats_share(small: Report) -> None:
    assert (small.name, small.matrix_path) == ("local.toml", "matrices/local.toml")
    assert small.first == small.last == "2026-11-20T10:00:00Z"
    assert (small.run.planned, small.recorded, small.not_run, small.complete) == (9, 7, 2, False)
    assert (small.named, small.unexpected) == (False, 2)
    assert {verdict.value: count for verdict, count in small.verdicts} == {
        "unavailable": 1,
        "crash": 1,
        "mismatch": 1,
        "fallback": 1,
        "pass_partial": 1,
        "pass": 2,
    }
    assert [(row.column.label, row.cells, row.tried) for row in small.summary] == [
        ("npu", 6, 6),
        ("gpu", 1, 0),
    ]
    assert [(row.column.label, row.measured, row.reading) for row in small.precision] == [
        ("npu", 2, "about bfloat16"),
        ("gpu", 0, ""),
    ]
    assert [(row.column.label, row.cause, row.reason, row.count) for row in small.unavailable] == [
        ("gpu", "no_device", "no GPU", 1)
    ]
    assert [cell.record.cell for cell in small.cells] == [
        "onnx-light/light_resnet50[npu]",
        "onnx-node/test_abs[gpu]",
        "onnx-node/test_abs[npu]",
        "onnx-node/test_conv[npu]",
        "onnx-node/test_gather[npu]",
        "onnx-node/test_matmul[npu]",
        "onnx-node/test_stft[npu]",
    ]
    # Records of a column keep the order in which they were written.
    assert [found.model for found in small.by_column[small.columns[0]]][:2] == ["test_matmul", "test_conv"]


def test_the_squares_of_a_small_run(small: Report) -> None:
    light, node = suites_of(small)
    assert [share.text for share in light.passed] == ["0 of 1 (none so far)", "no data"]
    assert [share.text for share in node.passed] == ["3 of 5 (60.0%)", "no data"]
    squares = {
        f"{row.model} {target}": (cell.symbol, cell.text, cell.title, cell.href, cell.expected)
        for suite in (light, node)
        for row in suite.rows
        for target, cell in zip(("npu", "gpu"), row.cells, strict=True)
        if cell
    }
    assert squares == {
        "light_resnet50 npu": ("○", "fallback", "", "", True),
        "test_abs npu": ("✓", "", "", "cells.html#c2", False),
        "test_abs gpu": ("·", "unavailable", "no device · no GPU", "", True),
        "test_conv npu": ("✗", "mismatch", "", "cells.html#c3", False),
        "test_gather npu": ("◐", "", "", "cells.html#c4", True),
        "test_matmul npu": ("✓", "7.7", "", "", True),
        "test_stft npu": ("✗", "crash", "", "cells.html#c6", True),
    }


def test_the_bands_of_a_small_run(small: Report) -> None:
    (page,) = precision_view(small)
    npu, gpu = page.headroom
    assert (npu.cells, npu.counts, gpu.cells) == (4, (2, 0, 0, 1, 0, 0, 1), 0)
    assert [(each.key, each.count, each.start, each.width) for each in npu.bar] == [
        (0, 2, 0.0, 50.0),
        (3, 1, 50.0, 25.0),
        (6, 1, 75.0, 25.0),
    ]
    assert [(used, cell.record.model) for used, cell in page.closest] == [(0.5, "test_matmul")]


@pytest.mark.parametrize("page", ["cells", "failures"])
def test_the_text_of_a_page_of_a_small_run(
    page: str, small: Report, snapshot: SnapshotAssertion, tmp_path: Path
) -> None:
    main = (
        site(tmp_path, small)[f"{page}.html"].partition("<main")[2].partition("</main>")[0].partition(">")[2]
    )
    rows = re.sub(r"\s*<(?:tr|p|h\d|summary|li|dt|pre)\b[^>]*>", "\0", " ".join(main.split()))
    text = html.unescape(re.sub(r"<[^>]*>", "", re.sub(r"<(?:t[hd]|dd)\b[^>]*>", " | ", rows)))
    lines = [" ".join(line.split()) for line in text.split("\0")]
    assert [line for line in lines if line] == snapshot


def test_details_that_cannot_be_made_cost_one_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = command_of

    def fail(found: Record, matrix_path: str) -> str:
        if found.model == "b" and found.verdict is Verdict.MISMATCH:
            raise RuntimeError("planted")
        return usual(found, matrix_path)

    monkeypatch.setattr(details, "command_of", fail)
    records = [record(name, verdict=Verdict.MISMATCH) for name in "abc"]
    shown = detailed(build_report(merged(records), nothing, {}))
    assert len(shown) == 3
    (lost,) = [cell for cell in shown if cell.record.verdict is Verdict.HARNESS_ERROR]
    assert lost.record.cell.startswith("onnx-node/b")
    assert "RuntimeError: planted; please report it" in lost.record.reason
    assert lost.captured.startswith("Traceback")


def test_planned_recorded_and_not_run() -> None:
    records = [record("a"), record("b", verdict=Verdict.NOT_RUN)]
    report = build_report(merged(records, planned=5), nothing, {})
    assert (report.run.planned, report.recorded, report.not_run, report.complete) == (5, 1, 4, False)
    whole = build_report(merged([record("a")]), nothing, {})
    assert (whole.run.planned, whole.recorded, whole.not_run, whole.complete) == (1, 1, 0, True)


def test_every_failure_is_in_one_list() -> None:
    records = [
        record("new", verdict=Verdict.ERROR),
        record("known", verdict=Verdict.ERROR, expected=True),
        record("mended", expected=False),
        record("fine"),
    ]
    report = build_report(merged(records), nothing, {})
    lists = (report.unexpected_failures, report.unexpected_others, report.expected_failures)
    assert [[member.record.model for group in found.shown for member in group.cells] for found in lists] == [
        ["new"],
        ["mended"],
        ["known"],
    ]
    assert report.unexpected == 2
    assert [section.title for page in detail_pages(report) for section in page.sections] == [
        "Unexpected",
        "Failed as expected",
    ]


def test_reasons_that_differ_in_figures_are_one_group() -> None:
    reason = "output 'y{}': {} of 60 elements ({}.0%) differ; greatest at ({}, 2), 0x7f{}a"
    records = [
        record(f"m{i:03}", verdict=Verdict.MISMATCH, reason=reason.format(i, i, i, i, i)) for i in range(300)
    ]
    records.append(record("crash1", verdict=Verdict.CRASH, cause="SIGSEGV", reason="died"))
    records.append(record("crash2", verdict=Verdict.CRASH, cause="SIGABRT", reason="died"))
    found = build_report(merged(records), nothing, {}).unexpected_failures
    assert [(g.count, g.cause, g.varies) for g in found.shown] == [
        (300, "", True),
        (1, "SIGSEGV", False),
        (1, "SIGABRT", False),
    ]
    assert found.count == 302
    assert (len(found.shown[0].cells), found.shown[0].left_out) == (SHOWN_CELLS, 300 - SHOWN_CELLS)


def test_endless_different_reasons_do_not_fill_the_page() -> None:
    names = [f"{a}{b}" for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"]
    failing = [record(name, verdict=Verdict.ERROR, reason=f"no {name}") for name in names]
    absent = [
        record(name, target="gpu", verdict=Verdict.UNAVAILABLE, cause="no_device", reason=name)
        for name in names
    ]
    report = build_report(merged(failing + absent), nothing, {})
    assert len(report.unexpected_failures.shown) == SHOWN_GROUPS
    assert report.unexpected_failures.more == len(names) - SHOWN_GROUPS
    assert [row.count for row in report.unavailable] == [1, 1, 1, 1, 1, len(names) - 5]
    assert report.unavailable[-1].reason == "251 other reasons"


def test_details_go_to_the_most_urgent_cells_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_cell, "MAX_DETAILS_CHARS", 2000)
    monkeypatch.setattr(report_cell, "MAX_DETAIL_PAGES", 1)
    monkeypatch.setattr(details, "MAX_CAPTURED_CHARS", 5)
    records = [
        record("a", verdict=Verdict.INVALID_MODEL),
        record("b", verdict=Verdict.UNSUPPORTED),
        record("c", verdict=Verdict.ERROR, expected=True),
        record("d", verdict=Verdict.ERROR),
    ]
    report = build_report(merged(records), lambda _folder, found: f"from {found.model}", {})
    shown = {found.record.cell: found.captured for found in detailed(report)}
    assert shown == {"onnx-node/d[npu]": "from d", "onnx-node/c[npu]": ""}
    (page,) = detail_pages(report)
    assert page.left_out == 2
    squares = [row.cells[0] for row in suites_of(report)[0].rows]
    assert [bool(square and square.href) for square in squares] == [False, False, True, True]


def test_outputs_out_of_tolerance_come_first() -> None:
    (output,) = record(verdict=Verdict.MISMATCH).outputs
    wrong = {"a": 0, "b": 2, "c": 0, "d": 1}
    outputs = [msgspec.structs.replace(output, name=name, mismatched=n) for name, n in wrong.items()]
    report = build_report(merged([record(verdict=Verdict.MISMATCH, outputs=outputs)]), nothing, {})
    (found,) = detailed(report)
    assert [row.metrics.name for row in found.outputs] == ["b", "d", "a", "c"]


def test_details_and_models_are_spread_over_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_cell, "MAX_DETAILS_CHARS", 3300)
    monkeypatch.setattr(paging, "PART_CHARS", 640)
    records = [record(f"m{i}", verdict=Verdict.ERROR, suite="a" if i < 3 else "b") for i in range(7)]
    records.append(record("m4", suite="b", target="gpu"))
    report = build_report(merged(records), nothing, {})
    with_details = list(detail_pages(report))
    names = ["cells.html", "cells-2.html", "cells-3.html"]
    assert [page.file for page in with_details] == names
    assert {page.files for page in with_details} == {tuple((name, "Unexpected") for name in names)}
    assert len(detailed(report)) == 7
    models = list(model_grid.model_pages(report))
    pages = [(page.file, [(s.name, len(s.rows), s.models) for s in page.suites]) for page in models]
    assert pages == [
        ("models.html", [("a", 2, 3)]),
        ("models-2.html", [("a", 1, 3), ("b", 1, 4)]),
        ("models-3.html", [("b", 2, 4)]),
        ("models-4.html", [("b", 1, 4)]),
    ]
    assert models[0].files[1] == ("models-2.html", "a/m2 … b/m3")
    assert {page.files for page in models} == {models[0].files}
    assert [found.cell for found in models[2].records] == ["b/m4[npu]", "b/m4[gpu]", "b/m5[npu]"]
    anchors = [
        f"{page.file}#{found.anchor}" for page in with_details for s in page.sections for found in s.details
    ]
    hrefs = [
        square.href
        for page in models
        for s in page.suites
        for row in s.rows
        for square in row.cells
        if square and square.href
    ]
    assert sorted(hrefs) == sorted(anchors)


def test_columns_can_be_chosen_by_target_and_by_axis() -> None:
    records = [
        record(target="a"),
        record(target="a", axes={"precision": "fp16"}),
        record(target="b", axes={"option.streams": "2"}),
    ]
    filters = model_grid.column_filters(build_report(merged(records), nothing, {}).columns)
    assert {found.name: dict(found.choices) for found in filters} == {
        "target": {"a": (0, 1), "b": (2,)},
        "option.streams": {"not set": (0, 1), "2": (2,)},
        "precision": {"fp32": (0, 2), "fp16": (1,)},
    }
    assert model_grid.column_filters(build_report(merged([record()]), nothing, {}).columns) == ()


def test_the_command_names_just_this_cell() -> None:
    records = [
        record("sub dir/a[1]*.onnx", suite="my models", target="t'; rm -rf ~", verdict=Verdict.ERROR),
    ]
    report = build_report(merged(records), nothing, {})
    (found,) = detailed(report)
    assert report.unexpected_failures.shown[0].command == found.command
    assert found.command == (
        "ep-harness run matrices/local.toml --target 't'\"'\"'; rm -rf ~' "
        "--model 'my models/sub dir/a[[]1][*].onnx'"
    )


def test_targets_stand_in_the_order_of_the_matrix() -> None:
    run = merged([record(target="a"), record(target="b"), record(target="c")], targets={"c": {}, "b": {}})
    assert [column.target for column in build_report(run, nothing, {}).columns] == ["c", "b", "a"]
    listed = msgspec.structs.replace(run, matrix={"path": "C:\\m\\local.toml", "targets": [{"name": "b"}]})
    report = build_report(listed, nothing, {})
    assert [column.target for column in report.columns] == ["b", "c", "a"]
    assert report.name == "local.toml"


def test_a_model_without_a_record_leaves_its_square_empty() -> None:
    report = build_report(merged([record("a"), record("b", target="gpu")]), nothing, {})
    (suite,) = suites_of(report)
    rows = [[square is not None for square in row.cells] for row in suite.rows]
    assert rows == [[True, False], [False, True]]
    assert [share.text for share in suite.passed] == ["1 of 1 (100%)", "1 of 1 (100%)"]

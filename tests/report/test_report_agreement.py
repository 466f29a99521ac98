"""Answers of tasks in the report, in a difference and in a gate."""

from pathlib import Path

import msgspec
import pytest

from harness.core.agreement.agreement import Agreement
from harness.core.records.record import Record, decode_record, encode_record
from harness.core.records.verdict import Verdict
from harness.report.changes.diff import compare_merged
from harness.report.changes.diff_text import gate_github, gate_lines
from harness.report.changes.gate import GateLimits, has_answers, judge_changes
from harness.report.changes.run_diff import CellChangeKind, Diff
from harness.report.formats.rows import cell_rows
from harness.report.pages.model_grid import model_pages
from harness.report.pages.task_answers import SHOWN, column_agreements
from harness.report.runs.merge import merge
from harness.report.runs.merged_run import MergedRun
from harness.report.view import Report, build_report
from harness.report.words.facts_in_words import evidence
from tests.kit import merged, record, run_of, site

ALL = Agreement(output="scores", kind="top1", same=40, of=40)
MOST = Agreement(output="scores", kind="top1", same=38, of=40, tied=1)
FAILED = Agreement(output="", kind="task:f", failed="KeyError: 'y'")


def answering(record: Record, *found: Agreement) -> Record:
    return msgspec.structs.replace(record, agreement=found)


def built(run: MergedRun) -> Report:
    return build_report(run, lambda _folder, _record: "", {})


@pytest.fixture
def report() -> Report:
    records = [
        answering(record("a", bits=21.0), ALL),
        answering(record("b", bits=6.2), MOST),
        answering(record("c"), FAILED),
        answering(record("d", verdict=Verdict.MISMATCH), MOST),
        record("e", bits=20.0),
    ]
    return built(merged(records))


def test_a_record_keeps_them_and_one_without_has_no_key() -> None:
    told = answering(record("a"), MOST, FAILED)
    assert decode_record(encode_record(told)) == told
    assert b'"same":38,"of":40,"tied":1' in encode_record(told)
    assert b"agreement" not in encode_record(record("a"))


def test_a_square_of_a_pass_names_what_is_no_longer_the_same(report: Report) -> None:
    (page,) = model_pages(report)
    squares = {row.model: row.cells[0] for suite in page.suites for row in suite.rows}
    tags = {model: square.tag for model, square in squares.items() if square}
    assert tags == {"a": "", "b": "top-1 38/40", "c": "task:f ?", "d": "", "e": ""}
    titles = {model: square.title for model, square in squares.items() if square}
    assert titles["a"] == "scores: top-1 the same in 40 of 40"
    assert titles["e"] == ""


def test_details_and_rows_have_them(report: Report) -> None:
    rows = {row.model: row for row in cell_rows(report.run)}
    assert (rows["b"].agreement, rows["b"].answers) == (
        0.975,
        "scores: top-1 the same in 38 of 40, 1 tied",
    )
    assert (rows["e"].agreement, rows["e"].answers) == (None, "")
    records = {record.model: record for _, record in report.run.records}
    assert dict(evidence(records["b"]))["Answers"] == "scores: top-1 the same in 38 of 40, 1 tied"
    assert "Answers" not in dict(evidence(records["e"]))


def test_the_page_has_a_line_for_each_column_and_task(report: Report, tmp_path: Path) -> None:
    top, own = sorted(column_agreements(report), key=lambda row: row.task, reverse=True)
    assert (top.cells, top.same, top.of, top.tied, top.others, top.percent) == (2, 78, 80, 1, 1, "98.7%")
    assert [cell.record.model for cell, _ in top.differing] == ["b"]
    assert (own.cells, own.unknown, own.percent) == (0, 1, "unknown")
    pages = site(tmp_path, report)
    assert "Answers of the task" in pages["precision.html"]
    assert "top-1 38/40" in pages["models.html"]


def test_without_answers_the_page_has_no_such_section(tmp_path: Path) -> None:
    assert "Answers of the task" not in site(tmp_path, built(merged([record("a")])))["precision.html"]


def test_only_the_worst_models_are_named() -> None:
    records = [answering(record(f"m{n}"), msgspec.structs.replace(MOST, same=n)) for n in range(SHOWN + 3)]
    (row,) = column_agreements(built(merged(records)))
    assert len(row.differing) == SHOWN
    assert row.differing[0][0].record.model == "m0"
    assert row.more == 3


def test_names_are_no_markup(tmp_path: Path) -> None:
    bad = Agreement(output="<b>", kind="top1", same=1, of=2)
    pages = site(tmp_path, built(merged([answering(record("a"), bad)])))
    assert "<b>" not in pages["precision.html"] + pages["models.html"]


def between(old: list[Record], new: list[Record]) -> Diff:
    return compare_merged(merge([run_of(old)]), merge([run_of(new)]), names=("old", "new"))


def test_other_answers_are_a_change_of_a_cell() -> None:
    diff = between([answering(record("a"), ALL)], [answering(record("a"), MOST)])
    (change,) = diff.changes
    assert change.kind is CellChangeKind.CHANGED
    assert change.facts == ("scores: top-1 the same in 40 of 40 -> 38 of 40, 1 tied",)
    assert between([answering(record("a"), MOST)], [answering(record("a"), MOST)]).changes == ()


def test_a_gate_asks_for_a_least_agreement() -> None:
    new = [answering(record("a"), ALL), answering(record("b"), MOST), record("c")]
    diff = between(new, new)
    assert judge_changes(diff, GateLimits(), lambda _: "", new).passed
    assert judge_changes(diff, GateLimits(min_agreement=0.97), lambda _: "", new).passed
    judgement = judge_changes(diff, GateLimits(min_agreement=0.98), lambda _: "", new)
    assert not judgement.passed
    text = " ".join("\n".join(gate_lines(diff, judgement)).split())
    assert "limits.min_agreement: 1 cell below 0.98" in text
    assert "top-1 the same in 38 of 40, 1 tied gate: FAILED" in text
    assert any("top-1 the same in 38 of 40" in line for line in gate_github(judgement))


def test_a_figure_that_failed_does_not_reach_the_limit() -> None:
    new = [answering(record("a"), FAILED)]
    judgement = judge_changes(between(new, new), GateLimits(min_agreement=0.0), lambda _: "", new)
    assert [breach.limit for breach in judgement.breaches] == ["min_agreement"]
    assert has_answers(new)
    assert not has_answers([record("b")])


def test_expected_failures_count_as_the_policy_says() -> None:
    new = [answering(record("a", verdict=Verdict.MISMATCH, expected=True), MOST)]
    diff = between(new, new)
    assert not judge_changes(diff, GateLimits(min_agreement=0.99), lambda _: "", new).passed
    assert judge_changes(
        diff, GateLimits(min_agreement=0.99, expected_failures=False), lambda _: "", new
    ).passed


def test_the_shipped_words_are_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "agree.md").read_text("utf-8")
    for words in ("`top1`", "`top5`", "`argmax`", "`threshold`", "`boxes`", "`ctc`", "`ids`", "`none`"):
        assert words in text

"""What a run folder claims is derived anew when it is read: cells, verdicts, families, expectations."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.annex.conformance.profiles.profile import load_profile
from harness.annex.conformance.profiles.profile_suite import suite_name
from harness.cli import main
from harness.core.records.cell import Cell
from harness.core.records.record import Record, decode_record, encode_record
from harness.core.records.run_info import RunInfo
from harness.core.records.verdict import Family, Verdict
from harness.core.verdicts.own_error import lost_record, own_error
from harness.plan.matrix import Matrix, ModelSelection
from harness.plan.target import Target
from harness.report.changes.diff import compare_merged
from harness.report.changes.gate import GateLimits, judge_changes
from harness.report.changes.run_comparison import read_side
from harness.report.runs.merge import merge
from harness.report.runs.read import read_run
from harness.report.runs.record_claims import Derived
from tests.kit import bare_record, read_rows, with_facts

STORED = Path(__file__).parent / "stored" / "before_policies"
WRONG = "onnx-node/test_top_k_same_values[openvino]"
"""The one wrong answer of the stored run, which its matrix does not expect."""

Row = dict[str, Any]


def copied(to: Path, change: Callable[[list[Row]], object]) -> Path:
    """Return a copy of a run that was really made, with other lines of records."""
    shutil.copytree(STORED, to)
    rows = read_rows(STORED)
    change(rows)
    (to / "records.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return to


def of(rows: list[Row], cell: str) -> Row:
    return next(row for row in rows if row["cell"] == cell)


def renamed(row: Row, model: str) -> Row:
    cell = row["cell"].replace(row["model"], model)
    return {**row, "model": model, "cell": cell}


def passes_gate(new: Path) -> bool:
    diff = compare_merged(read_side(STORED), read_side(new), names=("old", "new"))
    return judge_changes(diff, GateLimits(), lambda _: "").passed


def test_an_honest_run_is_as_it_was_written() -> None:
    run = read_run(STORED)
    assert (run.told, run.foreign, run.info.complete) == ((), 0, True)


@pytest.mark.parametrize(
    ("field", "forged"),
    [("expected", True), ("family", "passed"), ("verdict", "pass"), ("provider", "CPUExecutionProvider")],
)
def test_what_is_written_into_a_record_does_not_count(field: str, forged: object, tmp_path: Path) -> None:
    new = copied(tmp_path / "new", lambda rows: of(rows, WRONG).update({field: forged}))
    run = read_run(new)
    (record,) = (one for one in run.records if one.cell == WRONG)
    assert (record.verdict, record.family, record.expected) == (Verdict.MISMATCH, Family.FAILED, False)
    assert record.provider == "OpenVINOExecutionProvider"
    (told,) = run.told
    assert f"1 record (first: {WRONG})" in told
    assert any(told in notice for notice in merge([run]).notices)


def test_a_history_tells_it_when_the_run_is_added(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = copied(tmp_path / "new", lambda rows: of(rows, WRONG).update(expected=True))
    assert main(["history", "add", str(new), "--db", str(tmp_path / "h.sqlite")]) == 0
    assert capsys.readouterr().err.count("another `expected`") == 1


def test_a_record_that_tells_a_pass_with_every_field_of_one(tmp_path: Path) -> None:
    forged = {"expected": True, "family": "passed", "verdict": "pass"}
    new = copied(tmp_path / "new", lambda rows: of(rows, WRONG).update(forged))
    assert {one.expected for one in read_run(new).records if one.cell == WRONG} == {False}
    assert main(["judge", str(new), "--policy", "onnx"]) in {1, 2}


def test_a_replaced_record_leaves_its_cell_without_one(tmp_path: Path) -> None:
    def replace(rows: list[Row]) -> None:
        at = rows.index(of(rows, WRONG))
        rows[at] = renamed(of(rows, "onnx-node/test_sin_example[cpu]"), "test_other")

    new = copied(tmp_path / "new", replace)
    run = merge([read_run(new)])
    assert (run.complete, run.foreign) == (False, 1)
    assert [record.cell for _, record in run.records if record.verdict is Verdict.NOT_RUN] == [WRONG]
    assert any("of a cell that the plan does not have" in notice for notice in run.notices)
    assert not passes_gate(new)


def test_an_added_record_counts_for_nothing(tmp_path: Path) -> None:
    new = copied(tmp_path / "new", lambda rows: rows.append(renamed(rows[3], "test_other")))
    run = merge([read_run(new)])
    assert (len(run.records), run.planned, run.foreign) == (12, 12, 1)
    assert not passes_gate(new)


def test_a_record_with_the_fields_of_another_cell(tmp_path: Path) -> None:
    new = copied(tmp_path / "new", lambda rows: of(rows, WRONG).update(model="test_sin_example"))
    assert read_run(new).foreign == 1
    assert not passes_gate(new)


def test_a_record_of_a_target_that_the_matrix_does_not_have(tmp_path: Path) -> None:
    new = copied(tmp_path / "new", lambda _: None)
    info = json.loads((new / "run.json").read_bytes())
    info["matrix"]["targets"] = [one for one in info["matrix"]["targets"] if one["name"] != "npu"]
    (new / "run.json").write_text(json.dumps(info), "utf-8")
    assert read_run(new).foreign == 3


def test_without_the_plan_its_digest_tells_that_cells_are_others(tmp_path: Path) -> None:
    same = copied(tmp_path / "same", lambda _: None)
    (same / "plan.txt").unlink()
    assert read_run(same).info.complete
    new = copied(tmp_path / "new", lambda rows: rows.append(renamed(rows.pop(), "test_other")))
    (new / "plan.txt").unlink()
    run = read_run(new)
    assert (run.info.complete, run.foreign) == (False, 1)
    assert "there is no plan.txt" in run.told[0]
    assert not passes_gate(new)


def test_without_a_matrix_no_failure_is_expected(tmp_path: Path) -> None:
    new = copied(tmp_path / "new", lambda rows: of(rows, WRONG).update(expected=True))
    info = json.loads((new / "run.json").read_bytes())
    (new / "run.json").write_text(json.dumps({**info, "matrix": {}}), "utf-8")
    run = read_run(new)
    assert {one.expected for one in run.records if one.verdict.family is Family.FAILED} == {False}
    assert "the matrix of run.json cannot be read" in run.told[0]


def test_a_cell_that_the_harness_lost_is_read_as_it_was_written(tmp_path: Path) -> None:
    def lose(rows: list[Row]) -> None:
        row = of(rows, WRONG)
        cell = Cell(
            suite=row["suite"],
            model=row["model"],
            target=row["target"],
            axes=tuple(sorted(row["axes"].items())),
        )
        lost = lost_record(cell, row["provider"], row["started"], own_error(ValueError("x")))
        rows[rows.index(row)] = json.loads(encode_record(lost))

    run = read_run(copied(tmp_path / "new", lose))
    assert run.told == ()
    (record,) = (one for one in run.records if one.cell == WRONG)
    assert (record.verdict, record.expected) == (Verdict.HARNESS_ERROR, False)


def derived_with_profile(label: str, record: Record) -> Record | None:
    """Return what is derived of a record, in a run of a profile."""
    matrix = Matrix(
        path="m.toml",
        schema=1,
        models=ModelSelection(suites=(f"profile:{label}",)),
        targets=(Target(name=record.target, provider=(record.provider,)),),
    )
    info = RunInfo(
        schema=1,
        plan="",
        cells=1,
        matrix=msgspec.to_builtins(matrix),
        targets={record.target: {}},
        complete=True,
    )
    return Derived(info, None).of(record)


def test_a_case_of_a_profile_is_judged_by_the_rules_of_the_profile() -> None:
    profile = load_profile("cnn@1")
    case = profile.cases[0]
    suite = suite_name(profile)
    (wrong,) = (
        decode_record(line)
        for line in (STORED / "records.jsonl").read_bytes().splitlines()
        if decode_record(line).cell == WRONG
    )
    forged = msgspec.structs.replace(
        wrong,
        cell=f"{suite}/{case.name}[ep]",
        suite=suite,
        model=case.name,
        target="ep",
        axes={},
        verdict=Verdict.PASS,
        family=Family.PASSED,
    )
    found = derived_with_profile("cnn@1", forged)
    assert found is not None
    assert (found.verdict, found.policy["judge_by"]) == (Verdict.MISMATCH, "both")


def test_a_profile_of_a_later_version_leaves_verdicts_as_they_are() -> None:
    record = with_facts(bare_record("s/a", Verdict.CRASH, suite="later-9", expected=False))
    assert derived_with_profile("later@9", record) == record

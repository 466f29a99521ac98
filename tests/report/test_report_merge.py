from collections.abc import Callable

import pytest

from harness.core.errors import UsageError
from harness.core.record import Record
from harness.core.verdict import Verdict
from harness.report.merge import merge
from harness.report.read import RunData

MakeRecord = Callable[..., Record]
MakeRun = Callable[..., RunData]


def test_runs_with_other_cells_add_up(record: MakeRecord, run_of: MakeRun) -> None:
    run = merge(
        [
            run_of([record("a"), record("b")], folder="one", plan="1"),
            run_of([record("a", target="gpu")], folder="two", plan="2", planned=3, complete=False),
        ]
    )
    assert run.planned == 5
    assert len(run.records) == 3
    assert not run.complete


def test_shards_of_one_plan_count_its_cells_once(record: MakeRecord, run_of: MakeRun) -> None:
    shards = [
        run_of([record("a")], folder="one", planned=2, complete=True),
        run_of([record("b")], folder="two", planned=2, complete=True),
    ]
    assert merge(shards).planned == 2
    assert merge(shards).complete
    assert not merge(shards[:1]).complete


def test_the_same_run_twice_is_the_run(record: MakeRecord, run_of: MakeRun) -> None:
    run = run_of([record("a"), record("b")])
    assert merge([run, run]).records == merge([run]).records
    assert merge([run, run]).planned == 2


def test_different_records_of_one_cell_cannot_be_merged(record: MakeRecord, run_of: MakeRun) -> None:
    one = run_of([record(f"m{i}") for i in range(7)])
    two = run_of([record(f"m{i}", verdict=Verdict.CRASH) for i in range(7)])
    with pytest.raises(UsageError, match="merging conflicting runs is not possible") as error:
        merge([one, two])
    assert "'onnx-node/m0[npu]'" in str(error.value)
    assert "and 2 more" in str(error.value)


def test_environments_are_kept_apart_where_they_differ(record: MakeRecord, run_of: MakeRun) -> None:
    old = run_of([record("a")], folder="old", plan="1", targets={"npu": {"onnxruntime": "1.30"}})
    new = run_of([record("b")], folder="new", plan="2", targets={"npu": {"onnxruntime": "1.31"}})
    assert [(e.target, e.run) for e in merge([old, new]).environments] == [("npu", "old"), ("npu", "new")]
    assert len(merge([old, old]).environments) == 1


def test_more_records_than_planned_is_told(record: MakeRecord, run_of: MakeRun) -> None:
    run = merge([run_of([record("a"), record("b")], planned=1)])
    assert run.planned == 2
    assert run.notices == ("run: records.jsonl holds 2 cells, more than the 1 that were planned.",)

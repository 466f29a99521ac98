import msgspec

from harness.core.records.run_info import ShardInfo
from harness.core.records.verdict import Family, Verdict
from harness.report.runs.merge import merge
from harness.report.runs.merged_run import Conflict
from harness.report.runs.read import RunData
from tests.kit import record, run_of


def test_runs_with_other_cells_add_up() -> None:
    run = merge(
        [
            run_of([record("a"), record("b")], folder="one", plan="1"),
            run_of([record("a", target="gpu")], folder="two", plan="2", planned=3, complete=False),
        ]
    )
    assert run.planned == 5
    assert len(run.records) == 3
    assert not run.complete


def test_shards_of_one_plan_count_its_cells_once() -> None:
    shards = [
        run_of([record("a")], folder="one", planned=2, complete=True),
        run_of([record("b")], folder="two", planned=2, complete=True),
    ]
    assert merge(shards).planned == 2
    assert merge(shards).complete
    assert not merge(shards[:1]).complete


def test_the_same_run_twice_is_the_run() -> None:
    run = run_of([record("a"), record("b")])
    assert merge([run, run]).records == merge([run]).records
    assert merge([run, run]).planned == 2


def test_runs_that_differ_in_a_cell_are_shown_side_by_side() -> None:
    one = run_of([record("a"), record("b"), record("c", target="gpu")], folder="one", plan="1")
    two = run_of([record("a", verdict=Verdict.CRASH), record("b")], folder="two", plan="2")
    run = merge([one, two])
    assert [(r.cell, r.target, r.verdict.value) for _, r in run.records] == [
        ("onnx-node/a[npu]", "npu @ one", "pass"),
        ("onnx-node/b[npu]", "npu @ one", "pass"),
        ("onnx-node/c[gpu]", "gpu", "pass"),
        ("onnx-node/a[npu]", "npu @ two", "crash"),
        ("onnx-node/b[npu]", "npu @ two", "pass"),
    ]
    assert run.planned == 5
    assert run.conflicts == (
        Conflict(
            cell="onnx-node/a[npu]",
            target="npu",
            verdicts=(("one", Verdict.PASS), ("two", Verdict.CRASH)),
        ),
    )
    assert "CONFLICT: the runs differ in 1 cell of target npu, 1 of them in the verdict" in run.notices[0]
    assert [e.target for e in run.environments] == ["npu @ one", "gpu", "npu @ two"]


def test_other_figures_are_a_conflict_too() -> None:
    run = merge([run_of([record("a", bits=20.0)], folder="1"), run_of([record("a", bits=10.0)], folder="2")])
    assert [conflict.cell for conflict in run.conflicts] == ["onnx-node/a[npu]"]
    assert "0 of them in the verdict" in run.notices[0]


def test_other_times_and_messages_are_no_conflict() -> None:
    first = record("a", verdict=Verdict.CRASH, reason="died at 0x7f01", timings_ms={"create": 1.0})
    later = record("a", verdict=Verdict.CRASH, reason="died at 0x7f99", started="2027-01-01T00:00:00Z")
    run = merge([run_of([first], folder="one"), run_of([later], folder="two")])
    assert [r for _, r in run.records] == [first]
    assert run.conflicts == ()
    assert run.notices[0].startswith(
        "1 result of an earlier run occurred again in a later one: such results count once"
    )


def test_a_result_is_preferred_to_none() -> None:
    runs = [
        run_of([record("a", verdict=Verdict.NOT_RUN)], folder="one", missing=["onnx-node/b[npu]"]),
        run_of([record("a"), record("b")], folder="two", missing=[]),
    ]
    for order in (runs, runs[::-1]):
        run = merge(order)
        assert {r.cell: r.verdict for _, r in run.records} == {
            "onnx-node/a[npu]": Verdict.PASS,
            "onnx-node/b[npu]": Verdict.PASS,
        }
        assert (run.planned, run.conflicts) == (2, ())


def test_planned_cells_without_a_record_are_named() -> None:
    missing = ["onnx-node/b[npu,precision=fp16]", "x%20y/sub/model.onnx[gpu]"]
    run = merge([run_of([record("a")], missing=missing)])
    absent = [r for _, r in run.records if r.verdict is Verdict.NOT_RUN]
    assert [(r.cell, r.suite, r.model, r.target, r.provider, r.axes["precision"]) for r in absent] == [
        (missing[0], "onnx-node", "b", "npu", "NpuExecutionProvider", "fp16"),
        (missing[1], "x y", "sub/model.onnx", "gpu", "", "fp32"),
    ]
    assert all(r.family is Family.MISSING and r.expected for r in absent)
    assert run.planned == 3
    assert not run.complete


def test_what_is_missing_is_missing_for_each_run_of_a_target_in_conflict() -> None:
    runs = [
        run_of([record("a"), record("b")], folder="one", missing=[]),
        run_of([record("a", verdict=Verdict.CRASH)], folder="two", missing=["onnx-node/b[npu]"]),
    ]
    found = {(r.cell, r.target): r.verdict for _, r in merge(runs).records}
    assert found["onnx-node/b[npu]", "npu @ one"] is Verdict.PASS
    assert found["onnx-node/b[npu]", "npu @ two"] is Verdict.NOT_RUN


def test_a_shard_that_did_not_come_back_is_missing() -> None:
    def part(index: int, run: RunData) -> RunData:
        shard = ShardInfo(index=index, count=3, plan="whole", cells=6)
        return msgspec.structs.replace(run, info=msgspec.structs.replace(run.info, shard=shard))

    shards = [
        part(1, run_of([record("a"), record("b")], folder="one", missing=[])),
        part(2, run_of([record("c")], folder="two", missing=["onnx-node/d[npu]"])),
        part(3, run_of([record("e"), record("f")], folder="three", missing=[])),
    ]
    whole = merge(shards)
    assert (whole.planned, len(whole.records), whole.complete, whole.notices) == (6, 6, False, ())
    run = merge(shards[:2])
    assert (run.planned, len(run.records), run.complete) == (6, 4, False)
    assert run.notices[0] == "shard 3 of 3 is missing: 2 planned cells not run."


def test_runs_of_one_name_are_told_apart() -> None:
    runs = [
        run_of([record("a")], folder="monday/run", plan="1"),
        run_of([record("b")], folder="tuesday/run", plan="2"),
        run_of([record("c")], folder="elsewhere", plan="3"),
    ]
    assert merge(runs).names == ("monday/run", "tuesday/run", "elsewhere")


def test_environments_are_kept_apart_where_they_differ() -> None:
    old = run_of([record("a")], folder="old", plan="1", targets={"npu": {"onnxruntime": "1.30"}})
    new = run_of([record("b")], folder="new", plan="2", targets={"npu": {"onnxruntime": "1.31"}})
    assert [(e.target, e.run) for e in merge([old, new]).environments] == [("npu", "old"), ("npu", "new")]
    assert len(merge([old, old]).environments) == 1


def test_more_records_than_planned_is_reported() -> None:
    run = merge([run_of([record("a"), record("b")], planned=1)])
    assert run.planned == 2
    assert run.notices == ("run: records.jsonl has 2 cells, more than the 1 that were planned.",)

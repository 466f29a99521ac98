from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison.output_metrics import Noise
from harness.core.records.device_proof import DeviceProof
from harness.core.records.facts import Placement
from harness.core.records.generation_figures import Generated, GenerationFigures
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict
from harness.core.timing.latency import Latency
from harness.report.changes.diff import compare_merged
from harness.report.changes.diff_text import diff_github, diff_lines, diff_markdown
from harness.report.changes.gate import GateLimits, judge_changes
from harness.report.changes.latencies import latency_words
from harness.report.changes.run_comparison import read_side
from harness.report.changes.run_diff import CellChangeKind, Diff
from harness.report.runs.merge import merge
from harness.report.runs.read import RunData, read_run
from tests.kit import bare_record, latency, record, run_of, write_run


def between(old: list[Record], new: list[Record], **fields: Any) -> Diff:
    return compare_merged(
        merge([run_of(old, **fields)]), merge([run_of(new, **fields)]), names=("last night", "tonight")
    )


def test_one_regressed_and_one_fixed_shows_both() -> None:
    diff = between(
        [record("a"), record("b", verdict=Verdict.CRASH), record("c")],
        [record("a", verdict=Verdict.MISMATCH, reason="3 of 12 differ"), record("b"), record("c")],
    )
    assert [change.cell for change in diff.of(CellChangeKind.REGRESSED)] == ["onnx-node/a[npu]"]
    assert [change.cell for change in diff.of(CellChangeKind.FIXED)] == ["onnx-node/b[npu]"]
    assert (diff.compared, diff.unchanged) == (3, 1)
    failed = next(flow for flow in diff.flows if flow.family is Family.FAILED)
    assert (failed.before, failed.entered, failed.left, failed.after) == (1, 1, 1, 1)
    for shown in (diff_lines(diff), diff_markdown(diff), diff_github(diff)):
        text = "\n".join(shown)
        assert "1 regressed, 1 fixed" in text.replace("\n", " ")
        assert "onnx-node/a[npu]" in text
    assert "pass -> mismatch: 3 of 12 differ" in "\n".join(diff_lines(diff))


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (Verdict.PASS, Verdict.CRASH, CellChangeKind.REGRESSED),
        (Verdict.PASS, Verdict.PASS_PARTIAL, CellChangeKind.REGRESSED),
        (Verdict.PASS, Verdict.FALLBACK, CellChangeKind.REGRESSED),
        (Verdict.FALLBACK, Verdict.UNSUPPORTED, CellChangeKind.REGRESSED),
        (Verdict.UNSUPPORTED, Verdict.ERROR, CellChangeKind.REGRESSED),
        (Verdict.MISMATCH, Verdict.PASS, CellChangeKind.FIXED),
        (Verdict.UNSUPPORTED, Verdict.PASS_PARTIAL, CellChangeKind.FIXED),
        (Verdict.PASS_PARTIAL, Verdict.PASS, CellChangeKind.FIXED),
        (Verdict.CRASH, Verdict.FALLBACK, CellChangeKind.CHANGED),
        (Verdict.CRASH, Verdict.UNSUPPORTED, CellChangeKind.CHANGED),
        (Verdict.CRASH, Verdict.HANG, CellChangeKind.CHANGED),
        (Verdict.UNAVAILABLE, Verdict.INVALID_MODEL, CellChangeKind.CHANGED),
        (Verdict.UNAVAILABLE, Verdict.CRASH, CellChangeKind.NEW),
        (Verdict.PASS, Verdict.UNAVAILABLE, CellChangeKind.GONE),
        (Verdict.PASS, Verdict.NOT_RUN, CellChangeKind.GONE),
        (Verdict.PASS, Verdict.PASS, None),
        (Verdict.UNAVAILABLE, Verdict.UNAVAILABLE, None),
    ],
)
def test_kinds(before: Verdict, after: Verdict, kind: CellChangeKind | None) -> None:
    diff = between([record("a", verdict=before)], [record("a", verdict=after)])
    assert [change.kind for change in diff.changes] == ([kind] if kind else [])


@pytest.mark.parametrize(("share", "kind"), [(0.4, CellChangeKind.REGRESSED), (0.895, None), (0.95, None)])
def test_less_of_the_compute_on_the_ep_is_a_worse_result(share: float, kind: CellChangeKind | None) -> None:
    def partly(ep_share: float) -> Record:
        placed = Placement(
            ep_nodes=3,
            cpu_nodes=3,
            ep_ops={"Add": 3},
            cpu_ops={"Mul": 3},
            partitions=1,
            source="assignment",
            ep_share=ep_share,
        )
        return record("a", verdict=Verdict.PASS_PARTIAL, placement=placed)

    diff = between([partly(0.9)], [partly(share)])
    assert [change.kind for change in diff.changes] == ([kind] if kind else [])
    assert [change.facts for change in diff.changes] == ([("compute on the EP 90% -> 40%",)] if kind else [])


def test_cells_that_stand_on_one_side() -> None:
    diff = between(
        [record("gone"), record("skipped", verdict=Verdict.UNAVAILABLE)],
        [record("new"), record("new_but_skipped", verdict=Verdict.UNAVAILABLE)],
    )
    assert [(change.kind, change.model, change.arrow) for change in diff.changes] == [
        (CellChangeKind.NEW, "new", "not planned -> pass"),
        (CellChangeKind.GONE, "gone", "pass -> not planned"),
    ]


def test_another_tolerance_is_not_like_with_like() -> None:
    new = record("a", verdict=Verdict.MISMATCH)
    stricter = tuple(msgspec.structs.replace(output, rtol=1e-9) for output in new.outputs)
    diff = between([record("a")], [msgspec.structs.replace(new, outputs=stricter)])
    assert [(change.kind, change.facts) for change in diff.changes] == [
        (
            CellChangeKind.OTHER_MEASURE,
            ("the tolerance changed: rtol 0.0001, atol 1e-05 -> rtol 1e-09, atol 1e-05",),
        )
    ]
    closer = tuple(
        msgspec.structs.replace(output, rtol=1e-9, headroom=0.9) for output in record("a", bits=20.0).outputs
    )
    both_pass = between(
        [record("a", bits=20.0)], [msgspec.structs.replace(record("a", bits=20.0), outputs=closer)]
    )
    assert both_pass.changes == ()


def by_noise(record: Record, **limits: float) -> Record:
    """The record with its output judged by multiples of rounding noise."""
    noise = Noise(precision="float32", rms=1.5, max=8.0, rms_limit=limits["rms"], max_limit=32.0)
    return msgspec.structs.replace(
        record, outputs=tuple(msgspec.structs.replace(output, noise=noise) for output in record.outputs)
    )


def test_limits_of_noise_are_a_measure() -> None:
    passed, failed = record("a", bits=20.0), record("a", verdict=Verdict.MISMATCH, bits=8.0)
    (change,) = between([by_noise(passed, rms=8.0)], [by_noise(failed, rms=4.0)]).changes
    limits = "rms 8, max 32 of float32 noise -> rms 4, max 32 of float32 noise"
    assert change.kind is CellChangeKind.OTHER_MEASURE
    assert change.facts == (f"the tolerance changed: {limits}",)
    # An exact result has no noise whatever judges it: what is wrong now has regressed.
    (change,) = between([record("a")], [by_noise(failed, rms=4.0)]).changes
    assert change.kind is CellChangeKind.REGRESSED


def test_a_device_that_was_not_asked_for_before_is_no_regression() -> None:
    proven = DeviceProof(asked="NPU 1 of Acme", judged=1)
    wrong = record("a", Verdict.WRONG_DEVICE, device=msgspec.structs.replace(proven, wrong="input 'x' lies"))
    (change,) = between([record("a")], [wrong]).changes
    assert change.kind is CellChangeKind.OTHER_MEASURE
    assert "an older version did not ask on which device the inputs lie" in change.facts
    (change,) = between([record("a", device=proven)], [wrong]).changes
    assert change.kind is CellChangeKind.REGRESSED


def test_another_rule_that_decided_is_no_other_measure() -> None:
    passed, failed = record("a", bits=20.0), record("a", verdict=Verdict.MISMATCH, bits=8.0)
    (change,) = between([passed], [by_noise(failed, rms=4.0)]).changes
    assert change.kind is CellChangeKind.REGRESSED
    assert change.facts == ("measure unknown: an older version did not record by which policy",)
    (change,) = between([by_noise(failed, rms=4.0)], [passed]).changes
    assert change.kind is CellChangeKind.FIXED
    known = {"judge_by": "both", "limits.rms": 3.0}
    sides = (
        msgspec.structs.replace(passed, policy=known),
        msgspec.structs.replace(by_noise(failed, rms=4.0), policy=known),
    )
    (change,) = between([sides[0]], [sides[1]]).changes
    assert (change.kind, change.facts) == (CellChangeKind.REGRESSED, ())
    (change,) = between([sides[1]], [sides[0]]).changes
    assert (change.kind, change.facts) == (CellChangeKind.FIXED, ())


def test_what_a_pass_hides_is_reported() -> None:
    diff = between(
        [record("bits", bits=20.0), record("exact"), record("same", bits=20.0), record("limit", bits=20.0)],
        [
            record("bits", bits=10.5),
            record("exact", bits=20.0),
            record("same", bits=19.0),
            msgspec.structs.replace(
                record("limit", bits=20.0),
                outputs=tuple(
                    msgspec.structs.replace(output, headroom=0.9)
                    for output in record("limit", bits=20.0).outputs
                ),
            ),
        ],
    )
    assert {change.model: change.facts for change in diff.changes} == {
        "bits": ("delivered bits 20 -> 10.5",),
        "exact": ("delivered bits exact -> 20",),
        "limit": ("error 0.5 -> 0.9 of the allowed",),
    }
    assert {change.kind for change in diff.changes} == {CellChangeKind.CHANGED}


def test_other_environments_and_settings_are_reported() -> None:
    old = run_of([record("a")], targets={"npu": {"onnxruntime": "1.30", "driver": "7"}})
    new = run_of([record("a")], targets={"npu": {"onnxruntime": "1.31", "driver": "7"}}, required=["npu"])
    diff = compare_merged(merge([old]), merge([new]), names=("old", "new"))
    assert diff.unlike[0].environment == ("onnxruntime: 1.30 -> 1.31",)
    assert "required: (absent) -> yes" in diff.unlike[0].settings
    assert "onnxruntime: 1.30 -> 1.31" in "\n".join(diff_lines(diff))
    assert "`onnxruntime: 1.30 -> 1.31`" in "\n".join(diff_markdown(diff))


@pytest.mark.parametrize(("machine", "slower"), [("x86_64", 1), ("aarch64", 0)])
def test_slower_is_told_on_like_machines_only(machine: str, slower: int) -> None:
    quick = latency(*(1.0 + 0.001 * (i % 7) for i in range(100)))
    slow = latency(*(3.0 + 0.001 * (i % 7) for i in range(100)))
    old = run_of([record("a", latency=quick)], targets={"npu": {"machine": "x86_64"}})
    new = run_of([record("a", latency=slow)], targets={"npu": {"machine": machine}})
    diff = compare_merged(merge([old]), merge([new]), names=("old", "new"))
    assert [change.slower for change in diff.changes] == [True] * slower


def test_every_night_of_a_side_and_earlier_ones_are_used(tmp_path: Path) -> None:
    def times(ms: float) -> Latency:
        return latency(*(ms + 0.001 * (i % 7) for i in range(20)))

    for at, ms in enumerate((10.0, 10.3, 9.8)):
        write_run(tmp_path / f"base/{at}", [record("a", latency=times(ms))])
    write_run(tmp_path / "base/copy", [record("a", latency=times(10.0))])  # of the first: no night of its own
    write_run(tmp_path / "before", [record("a", latency=times(10.1))])
    write_run(tmp_path / "now", [record("a", latency=times(15.0))])
    base, before, now = (read_side(tmp_path / name) for name in ("base", "before", "now"))
    diff = compare_merged(base, now, names=("old", "new"))
    assert diff.latency is not None
    assert (diff.latency.before, diff.latency.slower) == (3, 1)
    earlier = compare_merged(before, now, names=("old", "new"), earlier=[base]).latency
    assert earlier is not None
    assert (earlier.before, earlier.slower) == (4, 1)
    alone = compare_merged(before, now, names=("old", "new"))
    assert alone.latency is not None
    assert "if nights differ by 3%: name more runs with --earlier" in latency_words(alone.latency)
    assert "--earlier" not in latency_words(diff.latency)


def test_a_slowdown_that_may_be_noise_fails_a_gate_and_is_told() -> None:
    quick = latency(*(1.0 + 0.001 * (i % 7) for i in range(100)))
    disturbed = latency(*(2.0 + 0.001 * (i % 7) for i in range(100)), waiting_threads=0.5)
    sides = (merge([run_of([record("a", latency=each)])]) for each in (quick, disturbed))
    diff = compare_merged(*sides, names=("old", "new"))
    (change,) = diff.changes
    assert (change.kind, change.slower, change.unclear) == (CellChangeKind.CHANGED, False, True)
    assert change.facts[0].startswith("unclear whether it is slower: 1.003 ms became 2.003 ms")
    assert [(one.limit, one.count) for one in judge_changes(diff, GateLimits(), lambda _: "").breaches] == [
        ("unclear", 1)
    ]
    assert judge_changes(diff, GateLimits(unclear=1), lambda _: "").passed
    assert "0 slower, 0 faster, 1 unclear" in " ".join("\n".join(diff_lines(diff)).split())


def test_a_cell_whose_runs_contradict_each_other_counts_as_not_run(tmp_path: Path) -> None:
    both = tmp_path / "night"
    write_run(tmp_path / "night/one", [record("a"), record("b", bits=12.0), record("c")])
    write_run(tmp_path / "night/two", [record("a", verdict=Verdict.CRASH), record("b", bits=11.0)])
    night = read_side(both)
    assert [(each.model, each.verdict) for _, each in night.records] == [
        ("a", Verdict.NOT_RUN),
        ("b", Verdict.PASS),
        ("c", Verdict.PASS),
    ]
    assert (night.planned, night.complete) == (3, False)
    told = (
        "CONFLICT: the runs differ in 2 cells of target npu, 1 of them in the verdict; these count as not run"
    )
    assert night.contradictions == (f"{told}, such as onnx-node/a[npu].",)
    before = merge([read_run(both / "one")])
    diff = compare_merged(before, night, names=("old", "new"))
    assert [(change.kind, change.model) for change in diff.changes] == [(CellChangeKind.GONE, "a")]
    assert diff.changes[0].reason == "its runs hold different results: pass in one, crash in two"
    assert {one.limit for one in judge_changes(diff, GateLimits(), lambda _: "").breaches} == {
        "gone",
        "not_run",
        "judged",
    }


def test_a_dead_shard_that_ran_again_elsewhere_is_no_incomplete_run(tmp_path: Path) -> None:
    write_run(tmp_path / "night/dead", [record("a")], missing=["onnx-node/b[npu]"])
    assert not read_side(tmp_path / "night").complete
    write_run(tmp_path / "night/again", [record("a"), record("b")])
    night = read_side(tmp_path / "night")
    assert (night.planned, night.complete) == (2, True)
    assert compare_merged(night, night, names=("old", "new")).new_not_run == 0


def test_shards_are_one_side(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", [record("a")], missing=[])
    write_run(tmp_path / "two", [record("b")], missing=["onnx-node/c[npu]"])
    run = read_side(one.parent)
    assert compare_merged(run, run, names=("a", "b")).new_not_run == 1


@given(st.lists(st.sampled_from([*Verdict, None]), max_size=12), st.lists(st.sampled_from([*Verdict, None])))
def test_every_cell_is_accounted_for(before: list[Verdict | None], after: list[Verdict | None]) -> None:
    def side(verdicts: list[Verdict | None]) -> list[Record]:
        return [
            bare_record(f"m{index}", verdict, target="t") for index, verdict in enumerate(verdicts) if verdict
        ]

    runs = [
        msgspec.structs.replace(merge([_run(side(verdicts), name)]))
        for verdicts, name in ((before, "old"), (after, "new"))
    ]
    diff = compare_merged(*runs, names=("old", "new"))
    assert sum(diff.kinds.values()) == len(diff.changes)
    changed = sum(
        diff.kinds[kind] for kind in CellChangeKind if kind not in {CellChangeKind.NEW, CellChangeKind.GONE}
    )
    unranked = sum(
        change.kind is CellChangeKind.CHANGED and change.after is not None and change.after.family in UNRANKED
        for change in diff.changes
    )
    assert diff.compared == diff.unchanged + changed - unranked
    assert all(flow.after == flow.before + flow.entered - flow.left for flow in diff.flows)
    assert sum(flow.before for flow in diff.flows) == sum(verdict is not None for verdict in before)
    assert sum(flow.after for flow in diff.flows) == sum(verdict is not None for verdict in after)


UNRANKED = {Family.SKIPPED, Family.EXCLUDED, Family.MISSING}


def _run(records: list[Record], name: str) -> RunData:
    info = {"schema": 1, "plan": name, "cells": len(records), "matrix": {}, "targets": {}, "complete": True}
    return msgspec.convert(
        {"folder": Path(name), "info": info, "records": tuple(records), "torn": False},
        RunData,
        from_attributes=True,
    )


def test_generated_text_that_is_wrong_from_another_position_is_a_change() -> None:
    def wrong(position: int) -> Record:
        way = Generated(way="step", positions=9, first_bad=position)
        return record("a", verdict=Verdict.MISMATCH, generation=GenerationFigures(ways=(way,)))

    (change,) = between([wrong(6)], [wrong(2)]).changes
    assert change.kind is CellChangeKind.CHANGED
    assert change.facts == ("first bad position 6 of way step -> 2 of way step",)

"""Pairs of runs, each with one change planted, and the word in which the difference tells it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from harness.annex.store.command_history import turned_lines
from harness.core.comparison.output_metrics import Noise
from harness.core.comparison.policy import Policy
from harness.core.comparison.policy_terms import policy_terms
from harness.core.comparison.tolerance import Tolerance
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict, is_result
from harness.report.changes.diff import compare_merged
from harness.report.changes.diff_text import diff_lines, diff_markdown, gate_lines
from harness.report.changes.gate import GateLimits, judge_changes
from harness.report.changes.run_diff import CellChangeKind, Diff
from harness.report.history.history_file import History
from harness.report.history.trend import trends
from harness.report.report_files import write_report
from harness.report.runs.merge import merge
from tests.kit import record, run_of, write_run

SAME: dict[str, Any] = {
    "policy": policy_terms(Policy()),
    "golden": "cpu",
    "golden_digest": "a" * 16,
    "model_digest": "b" * 64,
}
OTHER_POLICY = {**SAME, "policy": policy_terms(Policy(judge_by="table"))}
OTHER_TOLERANCE = {**SAME, "policy": policy_terms(Policy(fixed=Tolerance(rtol=1e-2, atol=1e-2)))}
OTHER_PRECISION = {**SAME, "policy": policy_terms(Policy(precision="float16"))}
LATER_SETTING = {**SAME, "policy": {**SAME["policy"], "bits": 5.5}}
OTHER_GOLDEN = {**SAME, "golden_digest": "c" * 16}
OTHER_SOURCE = {**SAME, "golden": "expected"}
OTHER_MODEL = {**SAME, "model_digest": "d" * 64}
EVERYTHING = {**OTHER_POLICY, "golden_digest": "c" * 16, "model_digest": "d" * 64}
BEFORE_POLICIES: dict[str, Any] = {"golden": "cpu", "model_digest": "b" * 64}
OLD_DATA: dict[str, Any] = {"golden": "cpu"}

V, K = Verdict, CellChangeKind
PASS, PART, FAIL, CRASH = V.PASS, V.PASS_PARTIAL, V.MISMATCH, V.CRASH

PAIRS: list[tuple[str, tuple[Verdict, Any], tuple[Verdict, Any], CellChangeKind | None]] = [
    # regressions
    ("wrong values", (PASS, SAME), (FAIL, SAME), K.REGRESSED),
    ("NaN", (PASS, SAME), (V.NAN_MISMATCH, SAME), K.REGRESSED),
    ("another shape", (PART, SAME), (V.SHAPE_MISMATCH, SAME), K.REGRESSED),
    ("a crash", (PASS, SAME), (CRASH, {"model_digest": "b" * 64}), K.REGRESSED),
    ("a hang", (PASS, SAME), (V.HANG, {}), K.REGRESSED),
    ("left to the CPU", (PASS, SAME), (V.FALLBACK, SAME), K.REGRESSED),
    ("left to the CPU in part", (PASS, SAME), (PART, SAME), K.REGRESSED),
    ("refused", (V.FALLBACK, SAME), (V.UNSUPPORTED, {}), K.REGRESSED),
    ("wrong where untested", (V.FALLBACK, SAME), (FAIL, SAME), K.REGRESSED),
    # fixes
    ("values are right", (FAIL, SAME), (PASS, SAME), K.FIXED),
    ("no more crash", (CRASH, {}), (PASS, SAME), K.FIXED),
    ("supported now", (V.UNSUPPORTED, {}), (PART, SAME), K.FIXED),
    ("whole now", (PART, SAME), (PASS, SAME), K.FIXED),
    # neither
    ("another failure", (FAIL, SAME), (V.NAN_MISMATCH, SAME), K.CHANGED),
    ("right, but untested", (FAIL, SAME), (V.FALLBACK, SAME), K.CHANGED),
    ("nothing", (PASS, SAME), (PASS, SAME), None),
    # flakes are told as what they are, with the mark
    ("a flake", (PASS, SAME), (FAIL, {**SAME, "retries": (PASS,)}), K.REGRESSED),
    # tolerance changed
    ("stricter", (PASS, OTHER_TOLERANCE), (FAIL, SAME), K.OTHER_MEASURE),
    ("laxer", (FAIL, SAME), (PASS, OTHER_TOLERANCE), K.OTHER_MEASURE),
    ("another rule by the matrix", (PASS, SAME), (FAIL, OTHER_POLICY), K.OTHER_MEASURE),
    ("another precision", (PASS, SAME), (FAIL, OTHER_PRECISION), K.OTHER_MEASURE),
    ("a setting of a later version", (PASS, SAME), (FAIL, LATER_SETTING), K.OTHER_MEASURE),
    ("no tolerance makes a process die", (PASS, OTHER_TOLERANCE), (CRASH, SAME), K.REGRESSED),
    ("nor moves a node", (PASS, OTHER_TOLERANCE), (PART, SAME), K.REGRESSED),
    ("nor ends a crash", (CRASH, {}), (PASS, OTHER_TOLERANCE), K.FIXED),
    ("nor changes a shape", (PASS, OTHER_TOLERANCE), (V.SHAPE_MISMATCH, SAME), K.REGRESSED),
    ("the same under another", (PASS, SAME), (PASS, OTHER_TOLERANCE), None),
    # golden moved
    ("its values", (PASS, SAME), (FAIL, OTHER_GOLDEN), K.GOLDEN_MOVED),
    ("back to right", (FAIL, OTHER_GOLDEN), (PASS, SAME), K.GOLDEN_MOVED),
    ("its source", (PASS, SAME), (V.DTYPE_MISMATCH, OTHER_SOURCE), K.GOLDEN_MOVED),
    ("no golden makes a process die", (PASS, OTHER_GOLDEN), (CRASH, SAME), K.REGRESSED),
    # other model
    ("other weights, wrong", (PASS, SAME), (FAIL, OTHER_MODEL), K.OTHER_MODEL),
    ("other weights, right", (FAIL, SAME), (PASS, OTHER_MODEL), K.OTHER_MODEL),
    ("other weights, crash", (PASS, SAME), (CRASH, {"model_digest": "d" * 64}), K.OTHER_MODEL),
    ("everything is other", (PASS, SAME), (FAIL, EVERYTHING), K.OTHER_MODEL),
    # a policy that nobody recorded
    ("an old record", (PASS, BEFORE_POLICIES), (FAIL, SAME), K.REGRESSED),
    ("an old failure", (FAIL, BEFORE_POLICIES), (PASS, SAME), K.FIXED),
    ("two old records", (PASS, OLD_DATA), (FAIL, OLD_DATA), K.REGRESSED),
    # coverage
    ("no longer tested", (PASS, SAME), (V.UNAVAILABLE, {}), K.GONE),
    ("no longer judged", (FAIL, SAME), (V.REFERENCE_DISPUTED, SAME), K.GONE),
    ("undefined now", (PASS, SAME), (V.UNDEFINED_INPUT, SAME), K.GONE),
    ("no result", (PASS, SAME), (V.NOT_RUN, {}), K.GONE),
    ("our own error", (PASS, SAME), (V.HARNESS_ERROR, {}), K.GONE),
    ("tested now", (V.UNAVAILABLE, {}), (FAIL, SAME), K.NEW),
    ("judged now", (V.NO_GOLDEN, SAME), (PASS, SAME), K.NEW),
    ("skipped in another way", (V.UNAVAILABLE, {}), (V.NO_GOLDEN, {}), K.CHANGED),
]


def of(sides: tuple[Any, Any]) -> Diff:
    old, new = ([record("a", verdict=verdict, **fields)] for verdict, fields in sides)
    return compare_merged(merge([run_of(old)]), merge([run_of(new)]), names=("old", "new"))


@pytest.mark.parametrize(("name", "old", "new", "kind"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_each_planted_change_is_told_in_its_word(
    name: str, old: Any, new: Any, kind: CellChangeKind | None
) -> None:
    diff = of((old, new))
    assert [change.kind for change in diff.changes] == ([kind] if kind else [])
    for text in ("\n".join(diff_lines(diff)), "\n".join(diff_markdown(diff))):
        assert kind is None or f"1 {kind.value.replace('_', ' ')}" in text.replace("\n", " ")
    worse = kind in {K.REGRESSED, K.GONE, K.OTHER_MEASURE, K.GOLDEN_MOVED, K.OTHER_MODEL}
    judgement = judge_changes(diff, GateLimits(), lambda _: "")
    nothing_judged = not (is_result(old[0]) or is_result(new[0]))
    fails = worse or nothing_judged or (new[0].family is Family.FAILED and old[0].family is not Family.FAILED)
    assert judgement.passed is not fails, f"{name}: {judgement.breaches}"
    assert ("gate: passed" in "\n".join(gate_lines(diff, judgement))) is judgement.passed


FAR: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "runtime": ({"onnxruntime": "1.31.1"}, {"onnxruntime": "1.32.0"}, "runtime changed"),
    "provider": (
        {"plugin": {"version": "1.8.1"}, "packages": {"onnxruntime-ep-openvino": "1.8.1"}},
        {"plugin": {"version": "1.9.0"}, "packages": {"onnxruntime-ep-openvino": "1.9.0"}},
        "provider changed",
    ),
    "device": (
        {"devices": [{"device": {"type": "NPU", "device_id": "1"}}]},
        {"devices": [{"device": {"type": "NPU", "device_id": "2"}}]},
        "device changed",
    ),
    "processor": ({"processor": {"model": "x"}}, {"processor": {"model": "y"}}, "device changed"),
    "features": (
        {"processor": {"features": ["avx2"]}},
        {"processor": {"features": ["avx2", "amx_bf16"]}},
        "device changed",
    ),
    "driver": ({"drivers": {"nvidia": "550"}}, {"drivers": {"nvidia": "560"}}, "driver changed"),
    "system": ({"platform": "Linux-6.1"}, {"platform": "Linux-6.9"}, "system changed"),
    "settings": ({"options": {"a": "1"}}, {"options": {"a": "2"}}, "settings changed"),
}


@pytest.mark.parametrize(("old", "new", "word"), FAR.values(), ids=FAR)
def test_what_else_changed_stands_beside_the_change(
    old: dict[str, Any], new: dict[str, Any], word: str
) -> None:
    runs = (
        run_of([record("a", **SAME)], targets={"npu": old}),
        run_of([record("a", verdict=FAIL, **SAME)], targets={"npu": new}),
    )
    diff = compare_merged(*(merge([run]) for run in runs), names=("old", "new"))
    assert [(change.kind, change.beside) for change in diff.changes] == [(K.REGRESSED, (word,))]
    assert word in " ".join("\n".join(diff_lines(diff)).split())
    assert diff.unlike[0].words == (word,)


def test_facts_of_a_later_version_are_no_change_of_the_machine() -> None:
    old = run_of([record("a", **SAME)], targets={"npu": {"processor": {"model": "x", "count": 2}}})
    later = {"processor": {"model": "x", "count": 2, "features": ["avx2"]}, "drivers": {"i915": "1"}}
    new = run_of([record("a", verdict=FAIL, **SAME)], targets={"npu": later})
    diff = compare_merged(merge([old]), merge([new]), names=("old", "new"))
    assert diff.unlike == ()
    assert diff.changes[0].beside == ()


@pytest.mark.parametrize(
    ("missing", "text"), [([], "no longer planned"), (["onnx-node/b[npu]"], "no result now: not_run")]
)
def test_a_partial_run_is_told_apart_from_a_smaller_plan(missing: list[str], text: str) -> None:
    old = merge([run_of([record("a", **SAME), record("b", **SAME)])])
    new = merge([run_of([record("a", **SAME)], missing=missing)])
    diff = compare_merged(old, new, names=("old", "new"))
    assert [(change.kind, change.facts) for change in diff.changes] == [(K.GONE, (text,))]
    assert ("INCOMPLETE" in "\n".join(diff_lines(diff))) is bool(missing)
    assert not judge_changes(diff, GateLimits(), lambda _: "").passed


def test_other_measures_are_counted_whatever_the_verdicts() -> None:
    diff = of(((PASS, SAME), (PASS, EVERYTHING)))
    assert diff.changes == ()
    assert diff.measures == {"model": 1, "golden": 1, "policy": 1}
    text = "not alike: 1 cell of another model, 1 cell of another golden, 1 cell of another policy"
    assert text in "\n".join(diff_lines(diff))


def test_a_limit_of_its_own_or_that_of_all_measures() -> None:
    diff = of(((PASS, SAME), (FAIL, OTHER_MODEL)))

    def limits_of(**limits: int) -> set[str]:
        judged = judge_changes(
            diff, msgspec.convert({"enter": {"failed": 9}, **limits}, GateLimits), lambda _: ""
        )
        return {breach.limit for breach in judged.breaches}

    assert limits_of() == {"other_measure"}
    assert limits_of(other_measure=1) == set()
    assert limits_of(other_measure=1, other_model=0) == {"other_model"}
    assert limits_of(other_model=1) == set()


@pytest.mark.parametrize(("name", "old", "new", "kind"), PAIRS, ids=[pair[0] for pair in PAIRS])
def test_a_history_and_a_report_tell_the_same_word(
    name: str, old: Any, new: Any, kind: CellChangeKind | None, tmp_path: Path
) -> None:
    times = ("2026-11-01T02:00:00Z", "2026-11-02T02:00:00Z")
    for folder, (verdict, fields), started in zip(("old", "new"), (old, new), times, strict=True):
        write_run(tmp_path / folder, [record("a", verdict=verdict, started=started, **fields)])
    with History(tmp_path / "h.sqlite", create=True) as history:
        assert history.add(tmp_path / "old")
        assert trends(history).turned == ()
        assert history.add(tmp_path / "new")
        turned = trends(history).turned
    changed = old[0] is not new[0]
    assert [one.kind for one in turned] == ([kind] if kind and changed else [])
    lines = " ".join(" ".join(turned_lines(turned)).split())
    assert not changed or f"since the run before: 1 {(kind or K.CHANGED).value.replace('_', ' ')}" in lines
    (page,) = write_report([tmp_path / "new"], tmp_path / "out", ["html"], baseline=tmp_path / "old")
    text = (page.parent / "changes.html").read_text("utf-8")
    word = (kind or K.CHANGED).value.replace("_", " ").capitalize()
    assert (f'{word} <span class="count">1</span>' in text) is (kind is not None), name


RULES = st.sampled_from(["table", "noise", "exact"])


def decided(record: Record, rule: str) -> Record:
    """The record with its outputs judged by a rule of the policy."""
    if rule == "table" or not record.outputs:
        return record
    noise = Noise(precision="float32", rms=2.0, max=9.0, rms_limit=3.0, max_limit=32.0)
    changed: dict[str, Any] = {"noise": noise} if rule == "noise" else {"max_abs": 0.0}
    rows = tuple(msgspec.structs.replace(row, **changed) for row in record.outputs)
    return msgspec.structs.replace(record, outputs=rows)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    pairs=st.lists(
        st.tuples(st.sampled_from(Verdict), st.sampled_from(Verdict), RULES, RULES), min_size=1, max_size=8
    ),
    fields=st.sampled_from([SAME, BEFORE_POLICIES, OLD_DATA]),
)
@example(pairs=[(Verdict.PASS_PARTIAL, Verdict.WRONG_DEVICE, "table", "table")], fields=SAME)
def test_another_verdict_is_always_a_change(
    pairs: list[tuple[Verdict, Verdict, str, str]], fields: dict[str, Any]
) -> None:
    old, new = (
        [
            decided(record(f"m{at}", verdict=verdicts[side], bits=12.0, **fields), rules[side])
            for at, (*verdicts, first, second) in enumerate(pairs)
            for rules in [(first, second)]
        ]
        for side in (0, 1)
    )
    diff = compare_merged(merge([run_of(old)]), merge([run_of(new)]), names=("old", "new"))
    kinds = {change.model: change.kind for change in diff.changes}
    judgement = judge_changes(diff, GateLimits(), lambda _: "")
    for at, (before, after, *_) in enumerate(pairs):
        if before is after:
            assert f"m{at}" not in kinds or kinds[f"m{at}"] is K.CHANGED
            continue
        kind = kinds[f"m{at}"]
        ranked = [one.family in RANKED for one in (before, after)]
        # An older version did not ask for the device, so its records do not know it.
        asked = {K.OTHER_MEASURE} if Verdict.WRONG_DEVICE in (before, after) else set()
        if all(ranked):
            assert kind in {K.REGRESSED, K.FIXED, K.CHANGED, *asked}
        else:
            assert kind is {(True, False): K.GONE, (False, True): K.NEW}.get(
                (ranked[0], ranked[1]), K.CHANGED
            )
        if before.family is Family.PASSED and after.family is not Family.PASSED:
            assert kind in {K.REGRESSED, K.GONE, *asked}
            assert not judgement.passed


RANKED = {Family.FAILED, Family.UNSUPPORTED, Family.UNTESTED, Family.PASSED}

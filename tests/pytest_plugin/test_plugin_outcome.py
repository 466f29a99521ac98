from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Phase, Verdict
from harness.plan.baselines import FIRST_RUN, Baseline
from harness.plan.plan import Plan
from harness.pytest_plugin.item_outcome import EDGE, ItemOutcome, excerpt, outcome_of
from harness.run.run_summary import totals_table
from harness.run.tally import TargetTotals
from tests.kit import bare_record, placement_of, plan_of


def plan(*, required: bool = False, expect: str = "") -> Plan:
    target = {"name": "ep", "provider": "CPUExecutionProvider", "required": required}
    matrix: dict[str, Any] = {"schema": 1, "models": {"folders": ["m"]}, "target": [target]}
    if expect:
        matrix["expect"] = [{"model": "a.onnx", "verdict": expect, "reason": "https://example.org/2"}]
    return plan_of(matrix)


def record(verdict: Verdict, *, expected: bool = True, **fields: Any) -> Record:
    return bare_record(
        "a.onnx", verdict, suite="m", provider="CPUExecutionProvider", expected=expected, **fields
    )


OUTPUT_LINE = (
    "  output:     'y' float32[6, 10]: 3 of 60 elements differ, "
    "error 12 times the tolerance (rtol 0.01, atol 0.1)"
)


def outcome_for(record: Record, plan: Plan) -> ItemOutcome:
    (cell,) = plan.cells
    return outcome_of(record, cell, plan)


KINDS = {
    Family.PASSED: "passed",
    Family.FAILED: "xfailed",
    Family.SKIPPED: "skipped",
    Family.EXCLUDED: "skipped",
    Family.UNSUPPORTED: "skipped",
    Family.UNTESTED: "skipped",
}


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict.family in KINDS])
def test_what_is_expected(verdict: Verdict) -> None:
    outcome = outcome_for(record(verdict, reason="because"), plan())
    assert outcome.kind == KINDS[verdict.family]
    if outcome.kind != "passed":
        assert outcome.text == f"{verdict}{', expected' if outcome.kind == 'xfailed' else ''}: because"


def test_an_expected_failure_gives_the_reason_of_the_matrix() -> None:
    outcome = outcome_for(record(Verdict.MISMATCH, reason="3 of 5 elements differ"), plan(expect="mismatch"))
    assert (outcome.kind, outcome.text) == ("xfailed", "mismatch, expected: https://example.org/2")


@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict.family in KINDS])
def test_what_is_not_expected_fails_whatever_it_is(verdict: Verdict) -> None:
    outcome = outcome_for(record(verdict, expected=False, reason="expected crash (x); got: y"), plan())
    assert outcome.kind == "failed"
    assert outcome.text.startswith(f"{verdict}: expected crash (x); got: y\n")


def test_a_cause_is_said_once() -> None:
    missing = record(Verdict.UNAVAILABLE, cause="no_device", reason="no device of type NPU")
    assert outcome_for(missing, plan()).text == "unavailable: no_device: no device of type NPU"
    reason = "the process died in phase run: SIGSEGV"
    crash = record(Verdict.CRASH, expected=False, cause="SIGSEGV", reason=reason)
    assert outcome_for(crash, plan()).text.startswith(f"crash: {reason}\n")


def test_a_required_target_must_be_there() -> None:
    missing = record(Verdict.UNAVAILABLE, cause="no_device", reason="none")
    outcome = outcome_for(missing, plan(required=True))
    assert outcome.kind == "failed"
    assert outcome.text.startswith("required target unavailable: unavailable: no_device: none\n")


def test_a_failure_has_what_where_and_what_was_allowed() -> None:
    failed = record(
        Verdict.MISMATCH,
        expected=False,
        phase=Phase.COMPARE,
        reason="output 'y': 3 of 60 elements (5.0%) differ; greatest absolute difference 0.2 at (1, 2)",
        placement=placement_of({"Conv": 2}, {"Shape": 1}, source="profile"),
        outputs=(
            OutputMetrics(name="ok", dtype="float32", shape=(3,), elements=3),
            OutputMetrics(
                name="y\x1b[31m",
                dtype="float32",
                shape=(6, 10),
                mismatched=3,
                elements=60,
                rtol=0.01,
                atol=0.1,
                headroom=12.0,
            ),
        ),
        artifacts="artifacts/0123",
        attempt=2,
    )
    assert outcome_for(failed, plan()).text.splitlines() == [
        "mismatch: output 'y': 3 of 60 elements (5.0%) differ; greatest absolute difference 0.2 at (1, 2)",
        "",
        "  cell:       m/a.onnx[ep]",
        "  provider:   CPUExecutionProvider",
        "  phase:      compare",
        "  placement:  2 on the EP (Conv), 1 on the CPU (Shape)",
        OUTPUT_LINE,
        "  attempt:    2",
        "  artifacts:  artifacts/0123",
        "  again:      ep-harness run m.toml --target ep --model m/a.onnx",
    ]


def test_only_the_first_failing_outputs_are_shown() -> None:
    outputs = tuple(
        OutputMetrics(name=f"y{i}", dtype="string", shape=(1,), mismatched=1, elements=1) for i in range(8)
    )
    text = outcome_for(record(Verdict.MISMATCH, expected=False, outputs=outputs), plan()).text
    assert "'y4'" in text
    assert "'y5'" not in text
    assert "and 3 more outputs" in text


def test_a_long_output_keeps_its_beginning_and_its_end() -> None:
    shown = excerpt("first\n" + "x" * 100_000 + "\nlast\n")
    assert shown.startswith("first\n")
    assert shown.endswith("\nlast")
    assert "characters left out" in shown
    assert len(shown) < 2 * EDGE + 60
    assert excerpt("short\r\n") == "short"


@given(st.integers(0, 9_999), st.text(min_size=1, max_size=60))
def test_a_table_fits_80_columns(count: int, name: str) -> None:
    of_each_family = {Verdict.PASS_PARTIAL, *{verdict.family: verdict for verdict in Verdict}.values()}
    row = TargetTotals(
        target=name,
        planned=count,
        verdicts=Counter(dict.fromkeys(of_each_family, count)),
        unexpected=count,
    )
    head, line = totals_table((row,))
    assert len(head) <= 80
    assert len(line) <= 80


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ((), f"mismatch, expected: {FIRST_RUN}; 3 of 5"),
        (("m/a.onnx[ep]",), "mismatch, expected: known by a baseline; 3 of 5"),
    ],
)
def test_what_baselines_expect_is_told(known: tuple[str, ...], text: str) -> None:
    its = Baseline(file="b", target="ep", provider="CPUExecutionProvider", failures={Verdict.MISMATCH: known})
    bare = plan()
    compared = msgspec.structs.replace(bare, matrix=msgspec.structs.replace(bare.matrix, baselines=(its,)))
    outcome = outcome_for(record(Verdict.MISMATCH, reason="3 of 5"), compared)
    assert (outcome.kind, outcome.text) == ("xfailed", text)


def test_a_failure_says_what_was_fed() -> None:
    failed = record(Verdict.MISMATCH, expected=False, fed="your data: test_data_set_0")
    assert "\n  fed:        your data: test_data_set_0\n" in outcome_for(failed, plan()).text

"""``[[expect]]`` entries about the ends of a target's processes."""

from typing import Any

import pytest

from harness.core.records.verdict import Verdict
from harness.core.text.errors import UsageError
from harness.plan.expectation import is_expected, is_expected_exit
from harness.plan.plan import Plan
from tests.kit import plan_of

EXIT = {"verdict": "unclean_exit", "reason": "known"}
OR_CLEAN = EXIT | {"verdict": ["unclean_exit", "pass"]}


def plan(*expect: dict[str, Any]) -> Plan:
    table = {
        "schema": 1,
        "models": {"folders": ["m"]},
        "target": [{"name": name, "provider": "CPUExecutionProvider"} for name in ("npu-a", "npu-b")],
        "expect": [*expect],
    }
    return plan_of(table)


@pytest.mark.parametrize(
    ("expect", "expected"),
    [
        ([], ()),
        ([EXIT | {"target": "npu-a"}], (Verdict.UNCLEAN_EXIT,)),
        ([EXIT | {"target": "npu-b"}], ()),
        ([EXIT | {"provider": "CPU*"}], (Verdict.UNCLEAN_EXIT,)),
        ([OR_CLEAN | {"target": "npu-*"}], (Verdict.UNCLEAN_EXIT, Verdict.PASS)),
        ([EXIT | {"target": "npu-a", "where": {"onnxruntime": ">=1.32"}}], (Verdict.UNCLEAN_EXIT,)),
        ([EXIT | {"target": "npu-a", "where": {"onnxruntime": ">=1.33"}}], ()),
    ],
)
def test_an_entry_is_for_targets_and_for_no_cell(
    expect: list[dict[str, Any]], expected: tuple[Verdict, ...]
) -> None:
    found = plan(*expect)
    assert found.exit_verdicts("npu-a", {"onnxruntime": "1.32.0"}) == expected
    for cell in found.cells:
        entry, _ = found.expectation_at(cell, {}, ())
        assert is_expected(entry, Verdict.PASS)


def test_an_entry_of_cells_before_or_behind_it_still_counts() -> None:
    crash = {"target": "npu-a", "verdict": "crash", "reason": "known"}
    for entries in ([crash, EXIT | {"target": "npu-a"}], [EXIT | {"target": "npu-a"}, crash]):
        found = plan(*entries)
        assert found.exit_verdicts("npu-a", {}) == (Verdict.UNCLEAN_EXIT,)
        entry, _ = found.expectation_at(found.cells[0], {}, ())
        assert not is_expected(entry, Verdict.PASS)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            {"model": "a.onnx"},
            "expect[0].model: unclean_exit is a verdict of a target, and model selects cells",
        ),
        ({"precision": "fp32"}, "expect[0].precision: unclean_exit is a verdict of a target"),
        (
            {"target": "npu-a", "verdict": ["unclean_exit", "crash"]},
            "expect[0].verdict: unclean_exit is a verdict of a target, and crash of a cell",
        ),
        ({"target": "gpu-*"}, "matches no cell: no target matches 'gpu-*'"),
    ],
)
def test_an_entry_that_means_nothing_is_refused(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as error:
        plan(EXIT | entry)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("verdicts", "unclean", "clean"),
    [
        ((), False, True),
        ((Verdict.UNCLEAN_EXIT,), True, False),
        ((Verdict.UNCLEAN_EXIT, Verdict.PASS), True, True),
    ],
)
def test_what_is_expected(verdicts: tuple[Verdict, ...], *, unclean: bool, clean: bool) -> None:
    assert is_expected_exit(verdicts, unclean=True) is unclean
    assert is_expected_exit(verdicts, unclean=False) is clean

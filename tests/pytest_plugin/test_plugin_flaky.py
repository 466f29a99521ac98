"""What pytest says of cells that gave another verdict when tried again."""

from typing import Any

import pytest

from harness.core.records.verdict import Verdict
from harness.pytest_plugin.item_outcome import outcome_of
from harness.run.run_summary import summary_lines
from harness.run.tally import TargetTotals
from tests.kit import bare_record, plan_of


def failed(retries: tuple[Verdict, ...]) -> str:
    tables: dict[str, Any] = {
        "schema": 1,
        "models": {"folders": ["m"]},
        "target": [{"name": "ep", "provider": "CPUExecutionProvider", "retries": len(retries)}],
    }
    plan = plan_of(tables)
    (cell,) = plan.cells
    record = bare_record(
        "a.onnx",
        Verdict.MISMATCH,
        cell=cell.id,
        suite="m",
        provider="CPUExecutionProvider",
        expected=False,
        reason="3 of 5 elements differ",
        retries=retries,
    )
    outcome = outcome_of(record, cell, plan)
    assert outcome.kind == "failed"
    return outcome.text


def test_a_failure_names_what_further_tries_gave() -> None:
    text = failed((Verdict.PASS, Verdict.MISMATCH))
    assert text.startswith("mismatch: 3 of 5 elements differ\n")
    assert "  retries:    pass, mismatch" in text.splitlines()
    assert "  retries:    pass" in failed((Verdict.PASS,)).splitlines()
    assert "retries" not in failed(())


@pytest.mark.parametrize(
    ("flaky", "expected"),
    [(0, []), (3, ["flaky: 3 cells with another verdict on a retry; counted as failed"])],
)
def test_the_terminal_summary_has_a_line_for_flaky_cells(flaky: int, expected: list[str]) -> None:
    row = TargetTotals(target="ep", planned=5, unexpected=3, flaky=flaky)
    assert [*summary_lines([row], 0)][2:] == expected

"""``[[latency]]``: which cells are measured, and what is refused."""

from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.plan.plan import Plan
from harness.plan.runs_entry import LatencySettings
from tests.kit import plan_of


def plan(*latency: dict[str, Any], **axes: list[str]) -> Plan:
    target = {"name": "t", "provider": "CPUExecutionProvider", "axes": axes}
    table = {"schema": 1, "models": {"suites": ["s"]}, "target": [target], "latency": list(latency)}
    return plan_of(table, {"s": ["a", "b"]})


def problem(*latency: dict[str, Any], **axes: list[str]) -> str:
    with pytest.raises(UsageError) as caught:
        plan(*latency, **axes)
    return str(caught.value)


def test_later_entries_win_and_other_keys_have_defaults() -> None:
    made = plan({"repeats": 7}, {"model": "b", "budget_s": 2})
    first, second = made.cells
    assert made.latency(first) == LatencySettings(warm_up=10, repeats=7, budget_s=10.0)
    assert made.latency(second) == LatencySettings(warm_up=10, repeats=100, budget_s=2.0)


def test_without_entries_nothing_is_measured() -> None:
    made = plan()
    assert [made.latency(cell) for cell in made.cells] == [None, None]


def test_scenarios_without_single_runs_are_not_measured() -> None:
    made = plan({"model": "a"}, scenario=["plain", "sessions"])
    assert [cell.axis("scenario") for cell in made.cells if made.latency(cell)] == ["plain"]


def test_an_entry_that_matches_nothing_is_an_error() -> None:
    assert "m.toml: latency[0].model: matches no cell: no model matches 'c'" in problem({"model": "c"})
    found = problem({"scenario": "sessions"}, scenario=["plain", "sessions"])
    assert found.startswith("m.toml: latency[0].scenario: matches no cell: no scenario matches 'sessions'")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"repeats": 0}, "latency[0].repeats: expected an integer from 1 to 1000, got 0"),
        ({"repeats": 1001}, "latency[0].repeats: expected an integer from 1 to 1000, got 1001"),
        ({"warm_up": -1}, "latency[0].warm_up: expected an integer from 0 to 1000, got -1"),
        (
            {"budget_s": 0},
            "latency[0].budget_s: expected a finite number greater than 0, at most 604800, got 0",
        ),
        ({"repaets": 5}, "latency[0].repaets: unknown key\n    did you mean 'repeats'?"),
    ],
)
def test_invalid_entries_are_refused(entry: dict[str, Any], message: str) -> None:
    assert f"m.toml: {message}" in problem(entry)

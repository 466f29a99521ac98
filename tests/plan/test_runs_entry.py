"""``[[latency]]`` and ``[[repeat]]``: which cells are timed or run repeatedly, and what is refused."""

from typing import Any

import pytest

from harness.core.records.cell import Cell
from harness.core.text.errors import UsageError
from harness.plan.plan import Plan
from harness.plan.runs_entry import LatencySettings, RepeatSettings
from tests.kit import plan_of


def plan(table: str, *entries: dict[str, Any], **axes: list[str]) -> Plan:
    target = {"name": "t", "provider": "CPUExecutionProvider", "axes": axes}
    tables = {"models": {"suites": ["s"]}, "target": [target], table: list(entries)}
    return plan_of(tables, {"s": ["a", "b"]})


def settings(made: Plan, table: str) -> list[tuple[Cell, LatencySettings | RepeatSettings | None]]:
    of = made.latency if table == "latency" else made.repeat
    return [(cell, of(cell)) for cell in made.cells]


def problem(table: str, *entries: dict[str, Any], **axes: list[str]) -> str:
    with pytest.raises(UsageError) as caught:
        plan(table, *entries, **axes)
    return str(caught.value)


@pytest.mark.parametrize(
    ("table", "entries", "found"),
    [
        ("latency", [], [None, None]),
        ("repeat", [], [None, None]),
        (
            "latency",
            [{"repeats": 7}, {"model": "b", "budget_s": 2}],
            [
                LatencySettings(warm_up=10, repeats=7, budget_s=10.0),
                LatencySettings(warm_up=10, repeats=100, budget_s=2.0),
            ],
        ),
        (
            "repeat",
            [{"model": "*"}, {"model": "b", "runs": 3, "sessions": 1, "bit_equal": True}],
            [
                RepeatSettings(runs=10, sessions=2, bit_equal=False),
                RepeatSettings(runs=3, sessions=1, bit_equal=True),
            ],
        ),
    ],
)
def test_later_entries_win_and_other_keys_have_defaults(
    table: str, entries: list[dict[str, Any]], found: list[LatencySettings | RepeatSettings | None]
) -> None:
    assert [each for _, each in settings(plan(table, *entries), table)] == found


@pytest.mark.parametrize(
    ("table", "with_single_runs"), [("latency", ["plain"]), ("repeat", ["plain", "from_bytes"])]
)
def test_scenarios_that_repeat_in_their_own_way_are_left_out(table: str, with_single_runs: list[str]) -> None:
    others = ["io_binding", "from_bytes"] if table == "repeat" else []
    made = plan(table, {"model": "a"}, scenario=["plain", "sessions", *others])
    found = {cell.axis("scenario") for cell, each in settings(made, table) if each}
    assert found == set(with_single_runs)


@pytest.mark.parametrize("table", ["latency", "repeat"])
def test_an_entry_that_matches_nothing_is_an_error(table: str) -> None:
    found = problem(table, {"model": "c"})
    assert f"m.toml: {table}[0].model: matches no cell: no model matches 'c'" in found
    found = problem(table, {"scenario": "sessions"}, scenario=["plain", "sessions"])
    assert found.startswith(f"m.toml: {table}[0].scenario: matches no cell: no scenario matches 'sessions'")


@pytest.mark.parametrize(
    ("table", "entry", "message"),
    [
        ("latency", {"repeats": 0}, ".repeats: expected an integer from 1 to 1000, got 0"),
        ("latency", {"repeats": 1001}, ".repeats: expected an integer from 1 to 1000, got 1001"),
        ("latency", {"warm_up": -1}, ".warm_up: expected an integer from 0 to 1000, got -1"),
        (
            "latency",
            {"budget_s": 0},
            ".budget_s: expected a finite number greater than 0, at most 604800, got 0",
        ),
        ("latency", {"repaets": 5}, ".repaets: unknown key\n    did you mean 'repeats'?"),
        ("repeat", {"runs": 0}, ".runs: expected an integer from 1 to 1000, got 0"),
        ("repeat", {"sessions": "two"}, '.sessions: expected an integer from 1 to 1000, got "two"'),
        ("repeat", {"bit_equal": 1}, ".bit_equal: expected true or false, got 1"),
        ("repeat", {"runs": 1, "sessions": 1}, ": one run in one session repeats nothing"),
        ("repeat", {"bitequal": True}, ".bitequal: unknown key\n    did you mean 'bit_equal'?"),
    ],
)
def test_invalid_entries_are_refused(table: str, entry: dict[str, Any], message: str) -> None:
    assert f"m.toml: {table}[0]{message}" in problem(table, entry)


def test_a_grid_is_that_of_all_targets_and_needs_a_scenario_that_runs_it() -> None:
    entries: list[dict[str, Any]] = [
        {"grid": {"batch": [4, 1]}},
        {"model": "b", "grid": {"batch": [2], "sequence": [8]}},
    ]
    made = plan("latency", *entries, scenario=["plain", "dynamic_shapes"])
    assert made.grid("s", "a") == {"batch": (1, 4)}
    assert made.grid("s", "b") == {"batch": (2,), "sequence": (8,)}
    told = problem("latency", *entries[:1])
    assert (
        "latency[0].grid: none of the selected cells has the scenario dynamic_shapes, which it needs" in told
    )
    told = problem("latency", {"nodes": True}, scenario=["io_binding"])
    assert "latency[0].nodes: none of the selected cells has the scenario plain" in told
    sizes = list(range(1, 9))
    many = problem("latency", {"grid": {"a": sizes, "b": sizes}}, scenario=["dynamic_shapes"])
    assert "the grid has 64 combinations; at most 60" in many
    assert "grid.a" in problem("latency", {"grid": {"a": []}}, scenario=["dynamic_shapes"])

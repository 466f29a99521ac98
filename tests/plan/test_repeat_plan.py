"""``[[repeat]]``: which cells are run repeatedly, and how often."""

from typing import Any

import pytest

from harness.core.errors import UsageError
from harness.plan.plan import Plan
from harness.plan.runs_entry import RepeatSettings
from tests.kit import plan_of


def plan(*repeat: dict[str, Any], **axes: list[str]) -> Plan:
    target = {"name": "t", "provider": "CPUExecutionProvider", "axes": axes}
    table = {"schema": 1, "models": {"suites": ["s"]}, "target": [target], "repeat": list(repeat)}
    return plan_of(table, {"s": ["a", "b"]})


def problem(*repeat: dict[str, Any], **axes: list[str]) -> str:
    with pytest.raises(UsageError) as caught:
        plan(*repeat, **axes)
    return str(caught.value)


def test_the_last_entry_that_matches_wins() -> None:
    made = plan({"model": "*"}, {"model": "b", "runs": 3, "sessions": 1, "bit_equal": True})
    first, second = made.cells
    assert made.repeat(first) == RepeatSettings(runs=10, sessions=2, bit_equal=False)
    assert made.repeat(second) == RepeatSettings(runs=3, sessions=1, bit_equal=True)


def test_without_entries_nothing_is_repeated() -> None:
    made = plan()
    assert [made.repeat(cell) for cell in made.cells] == [None, None]


def test_scenarios_that_repeat_in_their_own_way_are_not_repeated() -> None:
    made = plan({"model": "*"}, scenario=["plain", "sessions", "io_binding", "from_bytes"])
    assert {cell.axis("scenario") for cell in made.cells if made.repeat(cell)} == {"plain", "from_bytes"}


def test_an_entry_that_matches_nothing_is_an_error() -> None:
    assert "m.toml: repeat[0].model: matches no cell: no model matches 'c'" in problem({"model": "c"})
    found = problem({"scenario": "sessions"}, scenario=["plain", "sessions"])
    assert found.startswith("m.toml: repeat[0].scenario: matches no cell: no scenario matches 'sessions'")


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"runs": 0}, "repeat[0].runs: expected an integer from 1 to 1000, got 0"),
        ({"sessions": "two"}, 'repeat[0].sessions: expected an integer from 1 to 1000, got "two"'),
        ({"bit_equal": 1}, "repeat[0].bit_equal: expected true or false, got 1"),
        ({"runs": 1, "sessions": 1}, "repeat[0]: one run in one session repeats nothing"),
        ({"bitequal": True}, "repeat[0].bitequal: unknown key\n    did you mean 'bit_equal'?"),
    ],
)
def test_invalid_entries_are_refused(entry: dict[str, Any], message: str) -> None:
    assert message in problem(entry)

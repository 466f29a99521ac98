"""Repeated runs inside the agent."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from harness.agent.repeat import RepeatTally, wire_digest
from harness.agent.tensor_files import FILE_FROM
from harness.agent.wire import output_to_wire
from harness.core.values.value import from_wire, tensor
from tests.kit import parse

STEADY = "agraph (float[4] x) => (float[4] y) { y = Relu(x) }"
RANDOM = "agraph (float[4] x) => (float[4] y, float[4] z) { y = Relu(x) z = RandomNormalLike(x) }"
X = {"x": tensor(np.array([-1, 0, 1, 2], np.float32))}
REPEAT: Any = {"runs": 4, "sessions": 3, "bit_equal": False}


def test_the_same_bits_count_once(serve: Callable[..., dict[str, Any]]) -> None:
    result = serve(parse(STEADY, opset=20, ir=9), X, repeat=REPEAT)
    assert result["repeats"] == {"runs": 4, "sessions": 3, "distinct": 1, "differing": 0, "max_abs": 0.0}
    assert "second" not in result
    assert result["placement"]["ep_nodes"] == 1


def test_every_run_of_every_session_is_compared(serve: Callable[..., dict[str, Any]]) -> None:
    result = serve(parse(RANDOM, opset=20, ir=9), X, repeat=REPEAT)
    repeats = result["repeats"]
    assert 4 <= repeats["distinct"] <= 12  # the generator may begin anew in each session
    assert 9 <= repeats["differing"] <= 11
    (_, first), (_, furthest) = (map(from_wire, one) for one in (result["outputs"][0], result["second"]))
    assert repeats["max_abs"] == pytest.approx(np.abs(first.array - furthest.array).max())  # type: ignore[union-attr]


def test_without_it_the_first_data_set_runs_once(serve: Callable[..., dict[str, Any]]) -> None:
    result = serve(parse(RANDOM, opset=20, ir=9), X)
    assert "repeats" not in result
    assert "second" not in result


def test_twice(serve: Callable[..., dict[str, Any]]) -> None:
    result = serve(parse(RANDOM, opset=20, ir=9), X, repeat=REPEAT | {"runs": 2, "sessions": 1})
    assert result["repeats"]["differing"] == 1
    assert result["second"][0] == result["outputs"][0][0]
    assert result["second"][1] != result["outputs"][0][1]


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (np.zeros(3, np.float32), True),
        (-np.zeros(3, np.float32), False),
        (np.zeros((3, 1), np.float32), False),
        (np.zeros(3, np.int32), False),
        (np.array([0, 0, 1e-30], np.float32), False),
        ([np.zeros(3, np.float32)], False),
        (None, False),
    ],
)
def test_small_arrays_are_compared_as_they_come(value: Any, *, same: bool) -> None:
    tally = RepeatTally([output_to_wire(np.zeros(3, np.float32))])
    assert tally.repeats_first([value]) is same
    assert not tally.repeats_first([value, value])
    assert tally.runs == 1 + same


@pytest.mark.parametrize("first", [np.zeros(FILE_FROM), np.array(["a"], dtype=object), None, [np.zeros(1)]])
def test_other_values_are_compared_in_wire_form(first: Any) -> None:
    assert not RepeatTally([output_to_wire(first)]).repeats_first([first])


def test_the_furthest_run_is_kept() -> None:
    tally = RepeatTally([output_to_wire(np.zeros(3))])
    for off in (0.0, 1e-3, 5.0, 1e-3, 2.0):
        tally.add([output_to_wire(np.array([0, off, 0]))])
    assert tally.distinct == 4
    assert (tally.runs, tally.differing) == (6, 4)
    assert tally.max_abs == 5.0
    assert tally.furthest == [output_to_wire(np.array([0, 5.0, 0]))]


def test_another_sign_of_zero_is_another_result_at_no_distance() -> None:
    tally = RepeatTally([output_to_wire(np.zeros(1))])
    tally.add([output_to_wire(-np.zeros(1))])
    assert (tally.distinct, tally.max_abs) == (2, 0.0)
    assert tally.furthest == [output_to_wire(-np.zeros(1))]


VALUES: list[Any] = [
    None,
    np.zeros(2, np.float32),
    np.zeros((1, 2), np.float32),
    np.zeros(2, np.int32),
    np.zeros(FILE_FROM, np.float32),
    np.array(["ab", "c"], dtype=object),
    np.array(["a", "bc"], dtype=object),
    [np.zeros(2, np.float32)],
    [np.zeros(2, np.float32), np.zeros(2, np.float32)],
    {1: 2.0},
    {1: 3.0},
]


def test_a_digest_tells_all_kinds_of_values_apart() -> None:
    kind = "map(int64,tensor(double))"
    assert len({wire_digest([output_to_wire(value, kind)]) for value in VALUES}) == len(VALUES)
    assert (
        len(
            {
                wire_digest([output_to_wire(VALUES[4], kind)]),
                wire_digest([output_to_wire(VALUES[4].copy(), kind)]),
            }
        )
        == 1
    )

"""How far results of a model are apart."""

import math
from typing import Any

import numpy as np
import pytest

from harness.agent.difference import difference
from harness.agent.tensor_files import FILE_FROM
from harness.agent.wire import output_to_wire

ONES = np.ones(4, np.float32)
LARGE = np.linspace(-2, 1, FILE_FROM, dtype=np.float32)
NAN = np.array([1, np.nan], np.float32)
BFLOAT16 = {"dtype": "bfloat16", "shape": [1], "data": b"\x00\x3f"}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (ONES, ONES.copy(), 0.0),
        (ONES, ONES * np.float32(1.5), 0.5),
        (2 * ONES, np.array([2, 2, 1, 2], np.float32), 0.5),
        (np.zeros(2), np.array([0.0, 3.0]), 3.0),
        (np.array([1, 200], np.uint8), np.array([201, 200], np.uint8), 1.0),
        (np.array([1j, 2]), np.array([0, 2]) + 0j, 0.5),
        (np.zeros(0, np.float32), np.zeros(0, np.float32), 0.0),
        (NAN, NAN.copy(), 0.0),
        (NAN, NAN[::-1].copy(), math.inf),
        (np.array([np.inf, 1]), np.array([np.inf, 1]), 0.0),
        (np.array([np.inf, 1]), np.array([-np.inf, 1]), math.inf),
        (ONES, ONES.reshape(2, 2), math.inf),
        (ONES, ONES.astype(np.float64), math.inf),
        (np.array(["a", "b"], dtype=object), np.array(["a", "c"], dtype=object), math.inf),
        (LARGE, LARGE.copy(), 0.0),
        (LARGE, LARGE + 1, 0.5),
        ([ONES, ONES], [ONES, 2 * ONES], 1.0),
        ([ONES], [ONES, ONES], math.inf),
        ({1: 2.0}, {1: 3.0}, 0.5),
        (None, ONES, math.inf),
        (None, None, 0.0),
        (ONES, [ONES], math.inf),
    ],
)
def test_the_greatest_distance_between_two_results(one: Any, other: Any, expected: float) -> None:
    same = output_to_wire(ONES)
    kind = "map(int64,tensor(double))"
    found = difference([same, output_to_wire(one, kind)], [same, output_to_wire(other, kind)])
    assert found == pytest.approx(expected, rel=1e-6)


def test_the_distance_is_in_the_unit_of_the_output() -> None:
    one, other = output_to_wire(np.array([2.0, 200.0])), output_to_wire(np.array([2.5, 200.0]))
    assert difference([output_to_wire(ONES), one], [output_to_wire(ONES), other], relative=False) == 0.5
    assert difference([output_to_wire(NAN)], [output_to_wire(ONES[:2])], relative=False) == math.inf
    assert difference([output_to_wire([ONES])], [output_to_wire([2 * ONES])], relative=False) == 1.0
    assert difference([], [], relative=False) == 0.0


def test_types_that_numpy_lacks_are_the_same_or_not() -> None:
    assert difference([BFLOAT16], [dict(BFLOAT16)]) == 0
    assert difference([BFLOAT16], [{**BFLOAT16, "data": b"\x01\x3f"}]) == math.inf


def test_bytes_from_a_file_and_from_memory_are_compared() -> None:
    assert difference([{**output_to_wire(LARGE), "data": LARGE.tobytes()}], [output_to_wire(LARGE)]) == 0

"""Which side is nearer to the truth."""

from typing import Any

import numpy as np
import pytest

from harness.core.comparison.tolerance import Tolerance, default_tolerance
from harness.core.records.reference_answer import Adjudication
from harness.core.values.value import Map, Value, tensor
from harness.core.values.value import Sequence as Items
from harness.core.verdicts.adjudicate import NamedOutputs, adjudicate

RANDOM = np.random.default_rng(5)
TRUTH = RANDOM.normal(size=1000)
BY = "float64"


def table(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def one(array: Any, dtype: type = np.float32) -> list[tuple[str, Value]]:
    return [("y", tensor(np.asarray(array).astype(dtype)))]


def nearer(truth: NamedOutputs, golden: NamedOutputs, actual: NamedOutputs) -> Adjudication | None:
    found = adjudicate(truth, golden, actual, table, BY)
    assert len(found) <= 1
    return found[0] if found else None


def noise(size: float) -> Any:
    return TRUTH * (1 + size * RANDOM.uniform(-1, 1, TRUTH.shape))


def test_distances_are_relative_root_mean_squares() -> None:
    row = nearer(one([3.0, 4.0], np.float64), one([3.0, 4.5]), one([3.0, 4.0]))
    assert row is not None
    assert (row.output, row.by, row.ep, row.nearer) == ("y", BY, 0.0, "ep")
    assert row.golden == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("golden", "ep", "side"),
    [(1e-3, 1e-4, "ep"), (1e-4, 1e-3, "golden"), (1e-4, 1e-4, "equal"), (1e-4, 1.5e-4, "equal")],
)
def test_the_nearer_one_is_clearly_so(golden: float, ep: float, side: str) -> None:
    row = nearer(one(TRUTH, np.float64), one(noise(golden)), one(noise(ep)))
    assert row is not None
    assert row.nearer == side


def test_one_bad_element_is_not_made_up_for_by_many_good_ones() -> None:
    wrong = TRUTH.copy()
    smallest = np.abs(TRUTH).argmin()
    wrong[smallest] *= 1.5
    row = nearer(one(TRUTH, np.float64), one(noise(1e-4)), one(wrong))
    assert row is not None
    assert row.ep < row.golden / 2
    assert row.nearer == "equal"


def test_integers_have_one_right_answer() -> None:
    truth, off = one([7, 8, 9], np.int64), one([7, 8, 8], np.int64)
    assert [row.nearer for row in adjudicate(truth, off, truth, table, BY)] == ["ep"]
    assert [row.nearer for row in adjudicate(truth, truth, off, table, BY)] == ["golden"]
    worse = one([0, 0, 0], np.int64)
    assert [row.nearer for row in adjudicate(truth, worse, off, table, BY)] == ["equal"]


@pytest.mark.parametrize(
    ("truth", "golden", "actual"),
    [
        ([1e39], [np.inf], [3.4e38]),  # what saturates is not excused by what float64 can hold
        ([1.0, 2.0], [np.nan, 2.0], [1.0, 2.0]),
        ([0.0], [1e-3], [0.0]),
        ([0.0], [0.0], [1e-3]),
        ([np.nan], [np.nan], [1.0]),
        ([1.0, 2.0], [1.0, 2.0], [[1.0, 2.0]]),
        ([1.0, 2.0], [1.0], [1.0, 2.0]),
        ([], [], []),
    ],
)
def test_what_has_no_distance_is_left_out(truth: Any, golden: Any, actual: Any) -> None:
    found = adjudicate(one(truth, np.float64), one(golden), one(actual), table, BY)
    assert found == () or all(row.nearer == "equal" for row in found)


def test_a_lost_nan_is_never_nearer() -> None:
    truth, golden = one([np.nan, 1.0], np.float64), one([np.nan, 1.5])
    row = nearer(truth, golden, one([0.0, 1.0]))
    assert row is not None
    assert (row.nearer, row.ep) == ("golden", 0.0)


def test_types_texts_and_missing_outputs_are_left_out() -> None:
    truth = one([1.0], np.float64)
    assert adjudicate(truth, one([1.5]), one([1.0], np.float16), table, BY) == ()
    texts: NamedOutputs = [("y", tensor(np.array(["a"])))]
    assert adjudicate(texts, texts, texts, table, BY) == ()
    assert adjudicate([], one([1.0]), one([1.0]), table, BY) == ()
    assert adjudicate([("y", None)], one([1.0]), one([1.0]), table, BY) == ()


def test_parts_of_containers_have_a_row_each() -> None:
    def outputs(number: float, dtype: type) -> NamedOutputs:
        part = tensor(np.array([number], dtype))
        keys = tensor(np.array([1], np.int64))
        return [("s", Items(items=(part, part))), ("m", Map(keys=keys, values=part))]

    rows = adjudicate(outputs(1, np.float64), outputs(1.5, np.float32), outputs(1, np.float32), table, BY)
    assert [(row.output, row.nearer) for row in rows] == [
        ("s[0]", "ep"),
        ("s[1]", "ep"),
        ("m.keys", "equal"),
        ("m.values", "ep"),
    ]

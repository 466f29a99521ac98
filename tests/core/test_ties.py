"""Outputs that are positions: which other ones are right."""

from typing import Any

import numpy as np
import pytest

from harness.core.comparison.ties import Chosen, lead_of, ties_of
from harness.core.comparison.tolerance import EXACT, Tolerance, default_tolerance
from harness.core.noise.noise import NoiseRule
from harness.core.noise.noise_moves import Move
from harness.core.records.verdict import Verdict
from harness.core.values.value import tensor
from harness.core.verdicts.compare import OutputComparison, compare_all, compare_outputs

SCORES = np.array([[0.1, 0.9, 0.3, 0.9 + 2e-6, 0.2], [5, 4, 3, 2, 1]], np.float32)
"""The second and the fourth of the first row tie within the tolerance of float32, and are not equal."""

EQUAL = np.array([[2, 7, 1, 7]], np.float32)


def tolerance_for(dtype: str) -> Tolerance:
    return default_tolerance(dtype, "float32")


def judge(golden: Any, actual: Any, op: Any, data: Any, **settings: Any) -> OutputComparison:
    output_kind = Chosen(op=op, data=tensor(np.asarray(data)), **settings)
    one, other = (tensor(np.asarray(positions, np.int64)) for positions in (golden, actual))
    return compare_outputs("y", one, other, tolerance_for, output_kind)


@pytest.mark.parametrize(
    ("actual", "chosen", "expected"),
    [
        ([1, 1], {}, (2, 1 / 2)),  # the lead of 2 over 1, where the RMS is 2
        ([0, 1], {}, (1, 0.75 / 2)),
        ([0, 0], {}, None),
        ([0, 7], {}, None),  # no such position
        ([1, 1], {"exact": True}, None),  # nothing rounds these values
        ([1, 1], {"op": "NonZero"}, None),
    ],
)
def test_the_lead_of_the_goldens_choices(actual: list[int], chosen: Any, expected: Any) -> None:
    scores = tensor(np.array([[3.0, 2, 0], [1.5, 0.75, np.sqrt(24 - 13 - 2.25 - 0.5625)]], np.float64))
    found = lead_of(
        Chosen(**{"op": "ArgMax", "data": scores, "axis": 1} | chosen), np.array([0, 0]), np.array(actual)
    )
    assert (found is None) == (expected is None)
    if found is not None:
        assert found[0] == expected[0]
        assert found[1] == pytest.approx(expected[1])


@pytest.mark.parametrize("shape", [(2, 1), (2,), (1, 2, 1)])
def test_computed_values_that_tie_excuse_another_index(shape: tuple[int, ...]) -> None:
    golden, actual = np.array([3, 0]).reshape(shape), np.array([1, 0]).reshape(shape)
    found = judge(golden, actual, "ArgMax", SCORES, axis=1)
    (row,) = found.outputs
    assert found.verdict is None
    assert (row.mismatched, row.headroom, row.max_abs) == (0, 0.0, 2.0)
    assert row.details is not None
    assert row.details.ties == 1


def test_an_index_of_another_value_is_wrong_beside_ties() -> None:
    found = judge([[3], [0]], [[1], [1]], "ArgMax", SCORES, axis=1)
    assert found.verdict is Verdict.MISMATCH
    assert found.outputs[0].mismatched == 1
    assert "1 of 2 elements (50.0%) differ" in found.message
    assert found.message.endswith("1 more differ where the values tie, and count as right")


def test_inputs_have_no_rounding_so_that_what_is_nearly_equal_is_wrong() -> None:
    found = judge([[3], [0]], [[1], [0]], "ArgMax", SCORES, axis=1, exact=True)
    assert found.verdict is Verdict.MISMATCH
    assert found.outputs[0].details is not None
    assert found.outputs[0].details.ties == 0


@pytest.mark.parametrize(
    ("op", "golden", "actual"),
    [("ArgMax", [[1]], [[3]]), ("ArgMin", [[1]], [[3]]), ("TopK", [[1, 3]], [[3, 1]])],
)
def test_onnx_defines_which_of_equal_inputs_is_chosen(op: str, golden: Any, actual: Any) -> None:
    found = judge(golden, actual, op, EQUAL, axis=1, exact=True)
    assert found.verdict is Verdict.MISMATCH
    assert "choose another one of equal values than ONNX says" in found.message
    details = found.outputs[0].details
    assert details is not None
    assert details.ties == found.outputs[0].mismatched


@pytest.mark.parametrize("actual", [[[5, 0]], [[-1, 0]], [[3, 3]]])
def test_an_index_outside_or_given_twice_ties_with_nothing(actual: Any) -> None:
    data = np.array([[7, 1, 1, 7]], np.float32)
    assert judge([[0, 3]], actual, "TopK", data, axis=1).verdict is Verdict.MISMATCH


def test_places_that_a_top_k_gives_may_be_exchanged() -> None:
    assert judge([[3, 1, 2]], [[1, 3, 2]], "TopK", SCORES[:1], axis=-1).verdict is None
    assert judge([[3, 1, 2]], [[1, 3, 0]], "TopK", SCORES[:1], axis=-1).outputs[0].mismatched == 1


def test_along_another_axis() -> None:
    data = np.array([[1, 5], [1, 6], [0, 6]], np.float32)
    assert judge([0, 1], [1, 2], "ArgMax", data, axis=0).verdict is None
    assert judge([0, 1], [1, 0], "ArgMax", data, axis=0).outputs[0].mismatched == 1


def test_data_that_do_not_fit_tell_nothing() -> None:
    for data, axis in ((SCORES, 7), (np.zeros((3, 5), np.float32), 1), (np.zeros((0, 5), np.float32), 1)):
        assert judge([[3], [0]], [[1], [0]], "ArgMax", data, axis=axis).verdict is Verdict.MISMATCH


def test_a_pool_may_name_another_largest_element_of_its_plane() -> None:
    image = np.array([1, 9, 9, 2, 9, 0, 0, 0], np.float32).reshape(1, 2, 1, 4)
    assert judge([[[[1]], [[4]]]], [[[[2]], [[4]]]], "MaxPool", image, exact=True).verdict is None
    assert judge([[[[1]], [[4]]]], [[[[4]], [[4]]]], "MaxPool", image).verdict is Verdict.MISMATCH


def test_boxes_of_one_score_stand_in_any_order() -> None:
    scores = np.array([[[0.9, 0.9, 0.3, 0.5]]], np.float32)
    golden = [[0, 0, 0], [0, 0, 1], [0, 0, 3]]
    assert judge(golden, [golden[1], golden[0], golden[2]], "NonMaxSuppression", scores).verdict is None
    twice = [golden[0], golden[0], golden[2]]
    assert judge(golden, twice, "NonMaxSuppression", scores).verdict is Verdict.MISMATCH
    lesser = [golden[0], golden[1], [0, 0, 2]]
    assert judge(golden, lesser, "NonMaxSuppression", scores).verdict is Verdict.MISMATCH


def test_what_lies_next_to_zero_may_be_listed_or_not() -> None:
    data = np.array([[0, 3e-6], [5, 0]], np.float32)
    golden = np.array(np.nonzero(data))
    without = golden[:, 1:]
    found = judge(golden, without, "NonZero", data)
    assert found.verdict is None
    assert judge(golden, without, "NonZero", data, exact=True).verdict is Verdict.SHAPE_MISMATCH
    assert judge(golden, golden[:, :1], "NonZero", data).verdict is Verdict.SHAPE_MISMATCH
    assert judge(golden, golden[:, ::-1], "NonZero", data).verdict is Verdict.MISMATCH


def test_positions_of_zeros_are_no_ties() -> None:
    data = np.array([[0, 1, 0, 2], [3, 0, 0, 0]], np.float32)
    golden = np.array(np.nonzero(data))
    everything = np.array(np.nonzero(np.ones_like(data)))
    assert judge(golden, everything, "NonZero", data).verdict is Verdict.SHAPE_MISMATCH
    one_more = np.array([[0, 0, 0, 1], [0, 1, 3, 0]])  # rounding may turn a zero into a small number
    assert judge(golden, one_more, "NonZero", data).verdict is None
    assert judge(golden, one_more, "NonZero", data, exact=True).verdict is Verdict.SHAPE_MISMATCH


def test_nan_ties_with_nan_alone() -> None:
    data = np.array([[1, np.nan, np.nan, 2]], np.float32)
    assert judge([[1]], [[2]], "ArgMax", data, axis=1).verdict is None
    assert judge([[1]], [[3]], "ArgMax", data, axis=1).verdict is Verdict.MISMATCH


@pytest.mark.parametrize("rank", [33, 64])
def test_positions_in_many_dimensions_are_judged_as_in_few(rank: int) -> None:
    shape = (*(1,) * (rank - 2), 2, 3)
    data = tensor(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]], np.float32).reshape(shape))
    chosen = Chosen(op="TopK", data=data, axis=rank - 1)
    golden, actual = (np.array(places).reshape(*shape[:-1], 2) for places in ([0, 1, 1, 2], [1, 0, 2, 1]))
    found = ties_of(chosen, golden, actual)
    assert found is not None
    assert found.within(EXACT) == 4
    places = np.zeros((rank, 2), np.int64)
    places[-1] = (0, 1)
    listed = ties_of(Chosen(op="NonZero", data=data), places, places[:, :1])
    assert listed is not None
    assert listed.actual.tolist() == [1.0]


def test_complex_numbers_are_no_positions() -> None:
    chosen = Chosen(op="ArgMax", data=tensor(np.ones(3, np.float32)))
    assert ties_of(chosen, np.zeros((), np.complex64), np.zeros((), np.int64)) is None


@pytest.mark.parametrize("op", ["ArgMax", "TopK"])
def test_a_position_that_noise_never_moves_is_excused_by_nothing(op: Any) -> None:
    golden, actual = [[3], [0]], [[1], [0]]
    assert judge(golden, actual, op, SCORES, axis=1, moved=np.array([[True], [False]])).verdict is None
    still = judge(golden, actual, op, SCORES, axis=1, moved=np.array([[False], [True]]))
    assert still.verdict is Verdict.MISMATCH
    # Exact, computed and equal: ONNX says which of them.
    equal = judge([[1]], [[3]], op, EQUAL, axis=1, moved=np.array([[False]]))
    assert equal.verdict is Verdict.MISMATCH


def test_where_onnx_does_not_say_which_of_equal_values_any_is_right_that_noise_moves_or_not() -> None:
    data = np.array([[[7, 7], [0, 7]]], np.float32)[None]
    still = np.zeros((1, 1, 1, 1), np.bool_)
    assert judge([[[[0]]]], [[[[3]]]], "MaxPool", data, moved=still).verdict is None
    assert judge([[[[0]]]], [[[[2]]]], "MaxPool", data, moved=still).verdict is Verdict.MISMATCH


def test_the_noise_of_a_model_says_which_positions_it_moves() -> None:
    golden, actual = (("y", tensor(np.array([[3], [0]]))),), (("y", tensor(np.array([[1], [0]]))),)
    kinds = {"y": Chosen(op="ArgMax", data=tensor(SCORES), axis=1)}
    for moves, verdict in ((True, None), (False, Verdict.MISMATCH)):
        move = Move(reach=np.full((2, 1), float(moves)), most=2)
        rule = NoiseRule(precision="float32", spreads={}, moved={"y": move})
        found = compare_all(golden, actual, tolerance_for, kinds=kinds, noise=rule)
        assert found.verdict is verdict


@pytest.mark.parametrize(("gap", "right"), [(1e-5, True), (1e-2, False)])
def test_ties_among_probabilities_are_relative_to_the_largest(gap: float, *, right: bool) -> None:
    """Each of 150,000 probabilities is below the tolerance of float32 for values around 1."""
    scores = np.linspace(1e-6, 6e-6, 1000, dtype=np.float32)[None]
    scores[0, 3] = 7e-6
    scores[0, 5] = 7e-6 * (1 - gap)
    found = judge([3], [5], "ArgMax", scores, axis=1)
    assert (found.verdict is None) is right
    assert judge([3], [0], "ArgMax", scores, axis=1).verdict is Verdict.MISMATCH
    both = [[3, 5]], [[5, 3]]
    assert (judge(*both, "TopK", scores, axis=1).verdict is None) is right

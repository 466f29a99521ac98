"""Answers of each task: the same, others, tied; NaN, empty, 0-d."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from harness.core.agreement.agreement_kinds import KINDS, CannotAgreeError, Counted, Scores, count_answers
from harness.core.values.value import Array, Floats, tensor

NAN = float("nan")


def agree(kind: str, golden: object, actual: object, slack: Floats | None = None) -> Counted:
    ours, theirs = (
        one if isinstance(one, np.ndarray) else np.array(one, np.float32) for one in (golden, actual)
    )
    return count_answers(kind, Scores(golden=tensor(ours), actual=tensor(theirs), slack=slack))


@pytest.mark.parametrize("kind", ["top1", "argmax", "argmax:1"])
def test_another_best_class_is_another_answer(kind: str) -> None:
    assert agree(kind, [[1, 2, 3], [3, 2, 1]], [[1, 2, 3], [1, 2, 3]]) == (1, 2, 0)


def test_argmax_goes_along_any_axis() -> None:
    golden = np.zeros((1, 3, 2, 2), np.float32)
    golden[:, 1] = 1.0
    actual = golden.copy()
    actual[:, 2, 0, 0] = 5.0
    assert agree("argmax:1", golden, actual) == (3, 4, 0)


@pytest.mark.parametrize("kind", ["top1", "argmax"])
def test_equal_golden_scores_tie(kind: str) -> None:
    assert agree(kind, [[1, 1, 0]], [[0.9, 1, 0]]) == (0, 1, 1)


def test_scores_within_two_units_in_the_last_place_tie() -> None:
    near = np.nextafter(np.float32(1), np.float32(2))
    assert agree("top1", [[near, 1, 0]], [[1, 2, 0]]) == (0, 1, 1)


def test_scores_within_their_noise_tie_and_beyond_it_do_not() -> None:
    golden, actual = np.array([[1.0, 0.9, 0.0]] * 2, np.float32), np.array([[0.9, 1.0, 0.0]] * 2, np.float32)
    slack = np.array([[0.06] * 3, [0.04] * 3])
    assert agree("top1", golden, actual, slack) == (0, 2, 1)


def test_a_class_far_below_the_best_is_no_tie_because_two_others_are() -> None:
    assert agree("top1", [[1, 1, 0]], [[0, 0, 1]]) == (0, 1, 0)


@pytest.mark.parametrize("kind", ["top1", "argmax", "top5", "threshold"])
def test_nan_of_the_golden_is_no_answer(kind: str) -> None:
    golden = np.arange(14, dtype=np.float32).reshape(2, 7)
    golden[0, 3] = NAN
    of = agree(kind, golden, np.zeros_like(golden))[1]
    assert of == (13 if kind == "threshold" else 1)


@pytest.mark.parametrize(("kind", "same"), [("top1", 1), ("top5", 1), ("threshold", 13)])
def test_nan_in_place_of_an_answer_is_another_one_and_never_tied(kind: str, same: int) -> None:
    golden = np.arange(14, dtype=np.float32).reshape(2, 7)
    actual = golden.copy()
    actual[0, 6] = NAN
    assert agree(kind, golden, actual, np.full(golden.shape, 1e9)) == (
        same,
        14 if kind == "threshold" else 2,
        0,
    )


def test_infinities_are_scores() -> None:
    masked = [[-np.inf, 2, 1], [np.inf, 0, 0]]
    assert agree("top1", masked, masked) == (2, 2, 0)
    assert agree("top1", masked, [[-np.inf, 1, 2], [0, np.inf, 0]]) == (0, 2, 0)


def test_top5_is_a_set() -> None:
    golden = np.array([[9, 8, 7, 6, 5, 4, 3]], np.float32)
    assert agree("top5", golden, np.array([[5, 6, 7, 8, 9, 4, 3]], np.float32)) == (1, 1, 0)
    assert agree("top5", golden, np.array([[9, 8, 7, 6, 4, 5, 3]], np.float32)) == (0, 1, 0)


def test_top5_ties_at_its_edge() -> None:
    golden, actual = (
        np.array([[9, 8, 7, 6, 5, 5, 3]], np.float32),
        np.array([[9, 8, 7, 6, 4, 5, 3]], np.float32),
    )
    assert agree("top5", golden, actual) in {(1, 1, 0), (0, 1, 1)}
    swapped = np.array([[9, 8, 7, 6, 5, 4.9, 3]], np.float32)
    assert agree("top5", swapped, actual, np.full((1, 7), 0.06)) == (0, 1, 1)
    assert agree("top5", swapped, actual, np.full((1, 7), 0.04)) == (0, 1, 0)


def test_threshold_counts_elements_and_ties_near_the_limit() -> None:
    golden, actual = [[0.2, 0.8], [0.500001, 0.5]], [[0.7, 0.9], [0.4, 0.4]]
    assert agree("threshold", golden, actual) == (1, 4, 1)
    assert agree("threshold", golden, actual, np.full((2, 2), 0.01)) == (1, 4, 2)
    assert agree("threshold:0.3", golden, actual) == (3, 4, 0)


def test_ctc_compares_texts_not_steps() -> None:
    def steps(*classes: int) -> Array:
        return np.eye(4, dtype=np.float32)[None, list(classes)]

    assert agree("ctc", steps(0, 1, 1, 0, 2), steps(1, 0, 0, 2, 2)) == (1, 1, 0)
    assert agree("ctc", steps(0, 1, 1, 0, 2), steps(1, 0, 1, 2, 2)) == (0, 1, 0)
    assert agree("ctc:3", steps(3, 1, 3), steps(1, 3, 3)) == (1, 1, 0)
    tied = steps(0, 1)
    tied[0, 1, 2] = 1.0
    assert agree("ctc", tied, steps(0, 2)) == (0, 1, 1)


def test_ctc_with_nan_in_a_step_is_another_text() -> None:
    golden = np.eye(3, dtype=np.float32)[None]
    actual = golden.copy()
    actual[0, 1, 1] = NAN
    assert agree("ctc", golden, actual) == (0, 1, 0)


def test_ids_are_whole_sequences() -> None:
    golden = np.array([[1, 2, 3], [4, 5, 6]], np.int64)
    assert agree("ids", golden, golden) == (2, 2, 0)
    assert agree("ids", golden, np.array([[1, 2, 3], [4, 5, 7]], np.int64)) == (1, 2, 0)
    assert agree("ids", golden, golden[:, :2]) == (0, 2, 0)
    assert agree("ids", np.array(["a", "b"], object), np.array(["a", "c"], object)) == (0, 1, 0)


@pytest.mark.parametrize("kind", ["top1", "top5", "argmax", "ctc"])
@pytest.mark.parametrize("shape", [(), (3, 0), (0,)])
def test_without_classes_there_is_no_answer(kind: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(CannotAgreeError):
        agree(kind, np.zeros(shape, np.float32), np.zeros(shape, np.float32))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "ids"])
def test_an_empty_batch_has_no_answers(kind: str) -> None:
    empty = np.zeros((0, 7) if kind != "ctc" else (0, 3, 7), np.float32)
    assert agree(kind, empty, empty) == (0, 0, 0)


def test_a_single_number_has_a_side_of_the_threshold() -> None:
    assert agree("threshold", np.float32(0.7).reshape(()), np.float32(0.6).reshape(())) == (1, 1, 0)


def test_another_shape_cannot_agree() -> None:
    with pytest.raises(CannotAgreeError, match="another shape"):
        agree("top1", [[1, 2]], [[1, 2, 3]])


@pytest.mark.parametrize(
    ("kind", "array"),
    [
        ("top1", np.array(["a"], object)),
        ("threshold", np.array([1j], np.complex64)),
        ("argmax:3", np.zeros((2, 2), np.float32)),
        ("top5", np.zeros((2, 5), np.float32)),
        ("ids", np.array([0.5], np.float32)),
        ("ctc", np.zeros(3, np.float32)),
    ],
)
def test_an_output_without_such_answers_says_why(kind: str, array: Array) -> None:
    with pytest.raises(CannotAgreeError, match=r"."):
        agree(kind, array, array)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float64, np.int8, np.int64])
def test_scores_may_be_of_any_number(dtype: type) -> None:
    golden: Array = np.array([[1, 5, 2, 0, 3, 4]], dtype)
    actual: Array = np.array([[1, 2, 5, 0, 3, 4]], dtype)
    assert agree("top1", golden, actual) == (0, 1, 0)
    assert agree("top5", golden, actual) == (1, 1, 0)


@given(
    hnp.arrays(
        np.float32, hnp.array_shapes(min_dims=2, max_dims=3, max_side=8), elements=st.floats(width=32)
    ),
    st.sampled_from([kind for kind in KINDS if kind not in {"ids", "top5"}]),
)
def test_every_answer_agrees_with_itself(array: Array, kind: str) -> None:
    copy = array.copy()
    same, of, tied = agree(kind, array, copy)
    assert (same, tied) == (of, 0)


@given(
    hnp.arrays(np.float32, (4, 7), elements=st.floats(width=32)),
    hnp.arrays(np.float32, (4, 7), elements=st.floats(width=32)),
    st.sampled_from(["top1", "top5", "argmax:0", "threshold", "ctc"]),
)
def test_counts_add_up(golden: Array, actual: Array, kind: str) -> None:
    same, of, tied = agree(kind, golden, actual)
    assert 0 <= same <= same + tied <= of <= golden.size

"""Detections matched by their overlap."""

import numpy as np
import pytest

from harness.core.agreement.agreement_kinds import Counted
from harness.core.agreement.box_matching import (
    Roles,
    are_boxes,
    are_rows,
    count_boxes,
    detections_of,
    overlaps,
    roles_of,
)
from harness.core.values.value import Array, tensor

BOXES = np.array([[0, 0, 10, 10], [20, 20, 30, 30], [40, 40, 50, 60]], np.float32)
SCORES = np.array([0.9, 0.8, 0.3], np.float32)
CLASSES = np.array([1, 2, 3], np.int64)


def count(golden: dict[str, Array], actual: dict[str, Array], slack: float | None = None) -> Counted:
    ours, theirs = ({name: tensor(array) for name, array in side.items()} for side in (golden, actual))
    roles = roles_of(ours["boxes"], {name: one for name, one in ours.items() if name != "boxes"})
    spreads = None if slack is None else {"scores": np.full(golden["scores"].shape, slack)}
    right = detections_of(ours["boxes"], ours, roles, spreads)
    found = detections_of(theirs["boxes"], theirs, roles)
    assert right is not None
    assert found is not None
    return count_boxes(right, found, 0.5)


def side(boxes: Array = BOXES, scores: Array = SCORES, classes: Array = CLASSES) -> dict[str, Array]:
    return {"boxes": boxes, "scores": scores, "labels": classes}


def test_detections_that_score_half_of_the_best_count() -> None:
    assert count(side(), side()) == (2, 2, 0)


def test_order_does_not_matter() -> None:
    back = slice(None, None, -1)
    assert count(side(), side(BOXES[back], SCORES[back], CLASSES[back])) == (2, 2, 0)


def test_a_box_that_moved_a_little_is_the_same_and_far_away_two_others() -> None:
    assert count(side(), side(BOXES + 1)) == (2, 2, 0)
    assert count(side(), side(BOXES + 100)) == (0, 4, 0)


def test_another_class_is_another_detection() -> None:
    assert count(side(), side(classes=np.array([1, 7, 3], np.int64))) == (1, 3, 0)


def test_another_number_of_boxes_is_no_other_shape() -> None:
    assert count(side(), side(BOXES[:1], SCORES[:1], CLASSES[:1])) == (1, 2, 0)
    assert count(side(BOXES[:0], SCORES[:0], CLASSES[:0]), side()) == (0, 3, 0)
    assert count(side(BOXES[:0], SCORES[:0], CLASSES[:0]), side(BOXES[:0], SCORES[:0], CLASSES[:0])) == (
        0,
        0,
        0,
    )


def test_a_detection_that_the_other_side_has_below_the_limit_is_tied_within_noise_only() -> None:
    golden, actual = np.array([0.9, 0.46, 0.1], np.float32), np.array([0.9, 0.44, 0.1], np.float32)
    assert count(side(scores=golden), side(scores=actual)) == (1, 2, 0)
    assert count(side(scores=golden), side(scores=actual), slack=0.02) == (1, 2, 1)
    assert count(side(scores=actual), side(scores=golden), slack=0.02) == (1, 2, 1)


def test_nan_is_no_detection() -> None:
    assert count(side(), side(np.full_like(BOXES, np.nan))) == (0, 2, 0)
    assert count(side(scores=np.array([np.nan, 0.8, 0.3], np.float32)), side()) == (1, 2, 0)


def test_scores_by_class_choose_the_class() -> None:
    scores = np.array([[[0.1, 0.9], [0.8, 0.1], [0.1, 0.2]]], np.float32)
    golden = {"boxes": BOXES[None], "scores": scores}
    assert count(golden, golden) == (2, 2, 0)
    assert count(golden, {"boxes": BOXES[None], "scores": scores[..., ::-1].copy()}) == (0, 4, 0)


def test_boxes_by_centre_and_size_overlap_as_such() -> None:
    centred = np.array([[50, 50, 10, 10], [80, 80, 10, 10], [20, 20, 4, 4]], np.float32)
    assert count(side(centred), side(centred + np.array([2, 0, 0, 0], np.float32))) == (2, 2, 0)
    assert count(side(centred), side(centred + np.array([8, 0, 0, 0], np.float32))) == (0, 4, 0)


@pytest.mark.parametrize("columns", [5, 6, 7])
def test_whole_detections_are_rows(columns: int) -> None:
    corners, scores = np.concatenate([BOXES, BOXES]), np.concatenate([SCORES, SCORES])[:, None]
    classes, images = np.concatenate([CLASSES, CLASSES])[:, None], np.repeat([0, 1], 3)[:, None]
    rows = {
        5: np.concatenate([corners, scores], 1),
        6: np.concatenate([corners, scores, classes], 1),
        7: np.concatenate([images, classes, scores, corners], 1),
    }[columns].astype(np.float32)
    one = tensor(rows if columns == 7 else rows.reshape(2, 3, columns))
    assert are_rows(one)
    assert not are_boxes(one)
    found = detections_of(one, {}, Roles())
    assert found is not None
    assert count_boxes(found, found, 0.5) == (4, 4, 0)


def test_outputs_that_do_not_fit_are_no_detections() -> None:
    one = tensor(BOXES)
    assert detections_of(one, {}, Roles(scores="scores")) is None
    assert detections_of(one, {"scores": tensor(SCORES[:2])}, Roles(scores="scores")) is None
    assert detections_of(tensor(SCORES), {}, Roles()) is None


def test_boxes_without_an_area_overlap_only_if_they_are_equal() -> None:
    flat = np.array([[1.0, 1, 1, 5], [2, 2, 2, 5]])
    assert overlaps(flat, flat).tolist() == [[1, 0], [0, 1]]

"""Detected boxes of two sides, matched by their overlap."""

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.values.value import STRING, Array, Floats, Tensor

IOU = 0.5
"""Overlap from which on two boxes show one object: that of PASCAL VOC, and AP50 of COCO."""

_PART = 0.5
"""Share of the golden's best score from which on a detection is an answer.

Detectors return hundreds of lower ones.
"""

_MOST = 1000
"""Largest number of boxes that are compared on a side, the best ones: COCO counts 100 for each image."""

_SHAPES_OF_BOXES = frozenset({2, 3})
_SHAPES_OF_ROWS = frozenset({2, 3, 4})
_CORNERS = 4
_BOX_SCORE, _BOX_SCORE_CLASS, _IMAGE_CLASS_SCORE_BOX = 5, 6, 7
_Mask = NDArray[np.bool_]


class Detections(msgspec.Struct, frozen=True, kw_only=True):
    """The boxes of one image on one side.

    Attributes:
        boxes: Corners, or centre and size, float64 of shape ``(N, 4)``.
        scores: Of shape ``(N,)``; all 1 if the model gives none.
        classes: Likewise; all 0 if the model gives none.
        slack: How far rounding may move each score; None if unknown.
    """

    boxes: Floats
    scores: Floats
    classes: NDArray[np.int64]
    slack: Floats | None = None


Images = dict[int, Detections]
"""Number of an image -> its boxes."""


class Roles(msgspec.Struct, frozen=True, kw_only=True):
    """The outputs of a model that belong to its boxes; empty for none.

    Attributes:
        scores: The scores: floats of the shape of the boxes without its last axis, or with an axis of classes
            in its place.
        classes: Whole numbers in the shape of the boxes without its last axis, of any type.
    """

    scores: str = ""
    classes: str = ""


def are_boxes(one: Tensor) -> bool:
    """Return whether an output has the form of boxes: four numbers each, for one image or several."""
    return _is_real(one) and one.array.ndim in _SHAPES_OF_BOXES and one.array.shape[-1] == _CORNERS


def are_rows(one: Tensor) -> bool:
    """Return whether an output has the form of whole detections.

    Five columns are the box and its score, six have the class after them, seven are image, class, score and
    box, as SSD has them.
    """
    columns = (_BOX_SCORE, _BOX_SCORE_CLASS, _IMAGE_CLASS_SCORE_BOX)
    return _is_real(one) and one.array.ndim in _SHAPES_OF_ROWS and one.array.shape[-1] in columns


def roles_of(boxes: Tensor, others: Mapping[str, Tensor]) -> Roles:
    """Find the scores and classes that belong to boxes among the other outputs of the golden."""
    lead = boxes.array.shape[:-1]
    scores = classes = by_class = ""
    for name, one in others.items():
        if not _is_real(one):
            continue
        if one.array.shape == lead:
            if _is_index(one):
                classes = classes or name
            else:
                scores = scores or name
        elif one.array.shape[:-1] == lead and one.array.shape[-1] and not are_boxes(one):
            by_class = by_class or name
    return Roles(scores=scores or by_class, classes=classes)


def detections_of(
    boxes: Tensor, others: Mapping[str, Tensor], roles: Roles, spreads: Mapping[str, Floats] | None = None
) -> Images | None:
    """Return the boxes of one side by image; None if its outputs do not fit together."""
    if are_rows(boxes):
        return _of_rows(boxes.array.astype(np.float64))
    if not are_boxes(boxes) or any(name and name not in others for name in (roles.scores, roles.classes)):
        return None
    lead: tuple[int, ...] = boxes.array.shape[:-1]
    scores, classes = np.ones(lead), np.zeros(lead, np.int64)
    slack: Floats | None = None
    if roles.scores:
        scores = others[roles.scores].array.astype(np.float64)
        slack = (spreads or {}).get(roles.scores)
        if scores.ndim > len(lead) and scores.shape[-1]:
            best = scores.argmax(-1)[..., None]
            classes = best[..., 0].astype(np.int64)
            scores = np.take_along_axis(scores, best, -1)[..., 0]
            slack = None if slack is None else np.take_along_axis(slack, best, -1)[..., 0]
    if roles.classes:
        classes = _whole(others[roles.classes].array.astype(np.float64))
    if scores.shape != lead or classes.shape != lead:
        return None
    corners = boxes.array.astype(np.float64)
    if len(lead) == 1:
        return {0: Detections(boxes=corners, scores=scores, classes=classes, slack=slack)}
    images, *_ = lead
    return {
        image: Detections(
            boxes=corners[image],
            scores=scores[image],
            classes=classes[image],
            slack=None if slack is None else slack[image],
        )
        for image in range(images)
    }


@np.errstate(all="ignore")
def count_boxes(golden: Images, actual: Images, iou: float) -> tuple[int, int, int]:
    """Return how many detections are the same, how many there are, and how many are tied.

    Detections are those of either side that score at least half of the golden's best in that image. One of
    the golden is the same if one of the EP, of the same class, overlaps it. A detection of one side only is
    another answer. It is tied if the other side has it below the limit, and the golden's score lies within
    rounding of the limit.
    """
    counts = [
        _in_image(golden.get(image, _NOTHING), actual.get(image, _NOTHING), iou)
        for image in golden.keys() | actual.keys()
    ]
    same, of, tied = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0, 0)
    return same, of, tied


def overlaps(ours: Floats, theirs: Floats) -> Floats:
    """Return the intersection over union of each pair of boxes, shape ``(len(ours), len(theirs))``.

    Boxes are two corners. Boxes without an area overlap only if they are equal.
    """
    low = np.maximum(ours[:, None, :2], theirs[None, :, :2])
    high = np.minimum(ours[:, None, 2:], theirs[None, :, 2:])
    common = np.clip(high - low, 0.0, None).prod(-1)
    areas = [np.clip(side[:, 2:] - side[:, :2], 0.0, None).prod(-1) for side in (ours, theirs)]
    union = areas[0][:, None] + areas[1][None] - common
    equal = (ours[:, None] == theirs[None]).all(-1)
    found: Floats = np.where(union > 0, common / np.where(union > 0, union, 1.0), equal)
    return found


_NOTHING = Detections(boxes=np.zeros((0, _CORNERS)), scores=np.zeros(0), classes=np.zeros(0, np.int64))


def _of_rows(array: Array) -> Images:
    columns = array.shape[-1]
    if columns == _IMAGE_CLASS_SCORE_BOX:
        rows = array.reshape(-1, columns)
        images = _whole(rows[:, 0])
        rows = rows[images >= 0]  # SSD ends the rows of a batch with image -1
        images = images[images >= 0]
        return {
            int(image): Detections(boxes=its[:, 3:], scores=its[:, 2], classes=_whole(its[:, 1]))
            for image in np.unique(images)
            for its in [rows[images == image]]
        }
    batch = array.reshape(1 if array.ndim == min(_SHAPES_OF_ROWS) else array.shape[0], -1, columns)
    return {
        image: Detections(
            boxes=rows[:, :4],
            scores=rows[:, 4],
            classes=_whole(rows[:, 5]) if columns == _BOX_SCORE_CLASS else np.zeros(len(rows), np.int64),
        )
        for image, rows in enumerate(batch)
    }


def _in_image(golden: Detections, actual: Detections, iou: float) -> tuple[int, int, int]:
    usable = np.isfinite(golden.scores) & np.isfinite(golden.boxes).all(-1)
    best = golden.scores[usable].max(initial=-np.inf)
    limit = best * _PART if best > 0 else best
    answers = _best(golden.scores, usable & (golden.scores >= limit))
    shown = np.isfinite(actual.scores) & np.isfinite(actual.boxes).all(-1)
    certain = shown & (actual.scores >= limit)
    right, of_centre = (
        golden.boxes[answers],
        bool((golden.boxes[answers, 2:] < golden.boxes[answers, :2]).any()),
    )
    partners = _best(actual.scores, shown)
    overlap = overlaps(_corners(right, of_centre), _corners(actual.boxes[partners], of_centre))
    overlap[golden.classes[answers][:, None] != actual.classes[partners][None]] = -1.0
    pairs = _matched(overlap, iou)
    room = np.zeros(len(golden.scores)) if golden.slack is None else golden.slack
    same = tied = 0
    for row, column in pairs:
        if certain[partners[column]]:
            same += 1
        elif golden.scores[answers[row]] - limit <= room[answers[row]]:
            tied += 1
    taken = {int(partners[column]) for _, column in pairs}
    further = np.array([one for one in _best(actual.scores, certain) if int(one) not in taken], np.intp)
    weak = np.flatnonzero(usable & (golden.scores < limit) & (limit - golden.scores <= room))
    beside = overlaps(_corners(actual.boxes[further], of_centre), _corners(golden.boxes[weak], of_centre))
    beside[actual.classes[further][:, None] != golden.classes[weak][None]] = -1.0
    return same, len(answers) + len(further), tied + len(_matched(beside, iou))


def _matched(overlap: Floats, iou: float) -> list[tuple[int, int]]:
    """Return pairs of rows and columns: each row, in order, with the best column still free."""
    pairs: list[tuple[int, int]] = []
    free: _Mask = np.ones(overlap.shape[1], np.bool_)
    for row in range(overlap.shape[0]):
        reach = np.where(free, overlap[row], -1.0)
        if reach.size and reach.max() >= iou:
            column = int(reach.argmax())
            free[column] = False
            pairs.append((row, column))
    return pairs


def _best(scores: Floats, mask: _Mask) -> NDArray[np.intp]:
    """Return the indices where a mask holds, the best scores first, at most ``_MOST``."""
    where = np.flatnonzero(mask)
    order: NDArray[np.intp] = where[np.argsort(-scores[where], kind="stable")][:_MOST]
    return order


def _corners(boxes: Floats, of_centre: bool) -> Floats:  # noqa: FBT001 - one of two forms
    """Return two corners of each box; ``of_centre`` if it is given by centre and size."""
    if not of_centre:
        return boxes
    half = boxes[:, 2:] / 2
    return np.concatenate((boxes[:, :2] - half, boxes[:, :2] + half), axis=-1)


def _is_real(one: Tensor) -> bool:
    return one.dtype not in {STRING, "bool"} and one.array.dtype.kind != "c"


def _is_index(one: Tensor) -> bool:
    """Return whether an output holds classes: whole numbers, not all of them 0 or 1 if they are floats."""
    if one.array.dtype.kind in "iu":
        return True
    numbers: Array = one.array.astype(np.float64)
    return bool(numbers.size and (numbers == np.floor(numbers)).all() and numbers.max() > 1)


def _whole(numbers: Array) -> NDArray[np.int64]:
    found: NDArray[np.int64] = np.nan_to_num(numbers, posinf=0.0, neginf=0.0).astype(np.int64)
    return found

"""Tasks whose answers can be compared: one small function for each, in a table.

An answer is one row of scores, one element, one box or one sequence. Where the golden is NaN there is no
answer, and nothing counts. A different answer is *tied*, not a disagreement, if the golden's own choice lies
within the model's rounding noise, or within two units in the last place.
"""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.agreement.box_matching import IOU, Images, count_boxes
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.values.value import STRING, Array, Floats, Tensor

Counted = tuple[int, int, int]
"""Number of equal answers, of all answers, and of ties."""

THRESHOLD = 0.5
BLANK = 0
"""Index of the blank of CTC: 0 in PyTorch's ``CTCLoss``, PaddleOCR and wav2vec 2.0."""

TOP = 5
_TWO_ULP = 4.0
"""Two units in the last place, in unit roundoffs, as ``judge_output`` allows them anywhere."""

_NATIVE = frozenset({"float16", "float32", "float64"})
_Mask = NDArray[np.bool_]


class CannotAgreeError(Exception):
    """The output has no answer to this task; the text is the reason in one line."""


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """One output on both sides.

    Attributes:
        golden: The golden's scores.
        actual: The EP's scores.
        slack: How far rounding may move each element of the golden: its noise times the limit; None if the
            noise is not known.
    """

    golden: Tensor
    actual: Tensor
    slack: Floats | None = None

    def room(self, values: Array, pick: Callable[[Array], Array]) -> Floats:
        """Return how far rounding may move some elements of the golden, picked by a function."""
        unit = UNIT_ROUNDOFF.get(self.golden.dtype, 0.0)
        finite = np.nan_to_num(np.abs(values.astype(np.float64)), nan=0.0, posinf=0.0, neginf=0.0)
        least: Floats = _TWO_ULP * unit * finite
        return least if self.slack is None else np.maximum(least, pick(self.slack))


def count_top1(scores: Scores, _: float | None) -> Counted:
    """Compare the class with the largest score, along the last axis."""
    return count_argmax(scores, -1)


def count_argmax(scores: Scores, axis: float | None) -> Counted:
    """Compare the position of the largest value along an axis; the last one by default."""
    right, found = _numbers(scores)
    at = _axis(right, -1 if axis is None else int(axis))
    differs, tied, valid = _choices(scores, right, found, at)
    return int((valid & ~differs).sum()), int(valid.sum()), int(tied.sum())


def count_top5(scores: Scores, _: float | None) -> Counted:
    """Compare the sets of the five classes with the largest scores, along the last axis."""
    right, found = _numbers(scores)
    _axis(right, -1)
    classes = right.shape[-1]
    if classes <= TOP:
        raise CannotAgreeError(f"{classes} classes have no top {TOP}")
    right, found = right.reshape(-1, classes), found.reshape(-1, classes)
    valid = ~np.isnan(right).any(-1)
    if scores.actual is scores.golden:
        return int(valid.sum()), int(valid.sum()), 0
    ours, theirs = (np.sort(np.argpartition(-side, TOP - 1, -1)[:, :TOP], -1) for side in (right, found))
    broken = np.isnan(found).any(-1)
    differs = valid & ((ours != theirs).any(-1) | broken)
    rows = np.flatnonzero(differs & ~broken)
    tied = _swapped_within(scores, right, rows, ours[rows], theirs[rows]) if rows.size else 0
    return int((valid & ~differs).sum()), int(valid.sum()), tied


def count_threshold(scores: Scores, limit: float | None) -> Counted:
    """Compare on which side of a limit each element lies."""
    right, found = _numbers(scores)
    at = THRESHOLD if limit is None else limit
    valid = ~np.isnan(right)
    differs = valid & (((right >= at) != (found >= at)) | np.isnan(found))
    where = np.flatnonzero(differs & ~np.isnan(found))
    golden = right.reshape(-1)[where]
    room = scores.room(golden, lambda slack: slack.reshape(-1)[where])
    tied = np.abs(golden.astype(np.float64) - at) <= room
    return int((valid & ~differs).sum()), int(valid.sum()), int(tied.sum())


def count_ctc(scores: Scores, blank: float | None) -> Counted:
    """Compare decoded texts: take the best class of each step, merge repeats, drop blanks.

    Classes are on the last axis, steps on the one before it.
    """
    right, found = _numbers(scores)
    if right.ndim < 2:  # noqa: PLR2004 - steps and classes
        raise CannotAgreeError(f"steps and classes are two axes, and it has shape {list(right.shape)}")
    at = _axis(right, -1)
    differs, tied, valid = _choices(scores, right, found, at)
    steps = right.shape[-2]
    ours, theirs = (np.argmax(side, -1).reshape(-1, steps) for side in (right, found))
    differs, tied, valid = (mask.reshape(-1, steps) for mask in (differs, tied, valid))
    empty = BLANK if blank is None else int(blank)
    same = of = ties = 0
    for row in np.flatnonzero(valid.all(-1)):
        of += 1
        broken = bool((differs[row] & (ours[row] == theirs[row])).any())  # NaN in the place of the best
        if not differs[row].any() or (not broken and _text(ours[row], empty) == _text(theirs[row], empty)):
            same += 1
        elif (tied[row] | ~differs[row]).all():
            ties += 1
    return same, of, ties


def count_ids(scores: Scores, _: float | None) -> Counted:
    """Compare sequences of token ids or texts along the last axis.

    One difference makes a sequence another one.
    """
    right, found = scores.golden.array, scores.actual.array
    if right.dtype.kind not in "iubO" and not _is_whole(right):
        raise CannotAgreeError(f"ids are integers or texts, and it is {scores.golden.dtype}")
    rows = math.prod(right.shape[:-1]) if right.size else 0
    if right.shape != found.shape:
        return 0, rows, 0
    length = right.shape[-1] if right.ndim else 1
    equal = (right == found).reshape(-1, length) if right.size else np.ones((0, 1), np.bool_)
    return int(equal.all(-1).sum()), rows, 0


KINDS: dict[str, Callable[[Scores, float | None], Counted]] = {
    "top1": count_top1,
    "top5": count_top5,
    "argmax": count_argmax,
    "threshold": count_threshold,
    "ctc": count_ctc,
    "ids": count_ids,
}
"""Task of ``agreement`` -> its function, for tasks of one output; ``boxes`` needs several."""


def count_answers(kind: str, scores: Scores, *, detections: tuple[Images, Images] | None = None) -> Counted:
    """Return how many answers of a task are the same, how many there are, and how many are tied.

    ``kind`` is a task of the harness, such as ``argmax:1``; ``detections`` are golden's and EP's for boxes.

    Raises:
        CannotAgreeError: The output has no answers to this task.
    """
    stem, number = split_kind(kind)
    if stem == "boxes":
        if detections is None:
            raise CannotAgreeError(
                "boxes have four numbers, or whole detections five to seven, on the last axis"
            )
        return count_boxes(*detections, IOU if number is None else number)
    if stem != "ids" and scores.golden.array.shape != scores.actual.array.shape:
        raise CannotAgreeError("it has another shape than the golden")
    with np.errstate(all="ignore"):
        return KINDS[stem](scores, number)


def split_kind(kind: str) -> tuple[str, float | None]:
    """Return the name and the number of a task."""
    stem, _, number = kind.partition(":")
    return stem, float(number) if number else None


def _numbers(scores: Scores) -> tuple[Array, Array]:
    right = _as_floats(scores.golden)
    return right, right if scores.actual is scores.golden else _as_floats(scores.actual)


def _as_floats(one: Tensor) -> Array:
    """Return numbers in a type that numpy can compare."""
    if one.dtype == STRING or one.array.dtype.kind == "c":
        raise CannotAgreeError(f"its values are {one.dtype}, and no scores")
    return one.array if one.dtype in _NATIVE else one.array.astype(np.float64)


def _axis(array: Array, axis: int) -> int:
    if not -array.ndim <= axis < array.ndim:
        raise CannotAgreeError(f"shape {list(array.shape)} has no axis {axis}")
    if not array.shape[axis]:
        raise CannotAgreeError(f"axis {axis} of shape {list(array.shape)} is empty")
    return axis % array.ndim


def _choices(scores: Scores, right: Array, found: Array, axis: int) -> tuple[_Mask, _Mask, _Mask]:
    """Return three masks: where the largest value has another position, where this is a tie, where any is."""
    ours = np.expand_dims(right.argmax(axis), axis)
    theirs = ours if found is right else np.expand_dims(found.argmax(axis), axis)
    # numpy's argmax finds a NaN, if there is one.
    best = np.take_along_axis(right, ours, axis)
    valid = ~np.isnan(best)
    broken = np.isnan(np.take_along_axis(found, theirs, axis))
    differs = valid & ((ours != theirs) | broken)
    if not differs.any():
        return differs, np.zeros_like(differs), valid
    other = np.take_along_axis(right, theirs, axis)
    room = scores.room(best, lambda slack: np.take_along_axis(slack, ours, axis))
    room = room + scores.room(other, lambda slack: np.take_along_axis(slack, theirs, axis))
    apart = best.astype(np.float64) - other.astype(np.float64)
    tied = differs & ~broken & ((apart <= room) | (best == other))
    return differs, tied, valid


def _swapped_within(scores: Scores, right: Array, rows: Array, ours: Array, theirs: Array) -> int:
    """Return the rows in which the two swapped classes lie within rounding of each other."""
    golden = right[rows].astype(np.float64)
    room = scores.room(golden, lambda slack: slack.reshape(right.shape)[rows])
    chosen, taken = np.zeros(golden.shape, np.bool_), np.zeros(golden.shape, np.bool_)
    np.put_along_axis(chosen, ours, values=True, axis=-1)
    np.put_along_axis(taken, theirs, values=True, axis=-1)
    left, entered = chosen & ~taken, taken & ~chosen
    best_left = np.where(left, golden - room, -np.inf).max(-1)
    least_entered = np.where(entered, golden + room, np.inf).min(-1)
    return int((best_left <= least_entered).sum())


def _text(classes: Array, blank: int) -> list[int]:
    kept = np.concatenate(([True], classes[1:] != classes[:-1])) if classes.size else np.ones(0, np.bool_)
    return [int(one) for one in classes[kept] if one != blank]


def _is_whole(array: NDArray[Any]) -> bool:
    if array.dtype.kind != "f":
        return False
    return bool((array == np.floor(array)).all())

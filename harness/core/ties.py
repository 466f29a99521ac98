"""Outputs that are positions: another one is right where the values at both tie.

ArgMax, ArgMin and TopK choose by values. Where two of these differ by less than their own tolerance, the
rounding decides which is the larger one, and either choice is right. Where the values are the inputs
themselves nothing is rounded, and ONNX says which of two equal ones is to be taken.
"""

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.metrics import widen
from harness.core.tolerance import Tolerance
from harness.core.value import Array, Tensor

ChoosingOp = Literal["ArgMax", "ArgMin", "TopK", "MaxPool", "NonMaxSuppression", "NonZero"]

DEFINED = frozenset({"ArgMax", "ArgMin", "TopK"})
"""Of equal values ONNX has these take the first index, or the last where ``select_last_index`` is set."""

Mask = NDArray[np.bool_]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """An output of positions, and the values that they were chosen by.

    Attributes:
        op: Operator that chose.
        data: What it chose from, as the CPU provider has it: scores for NonMaxSuppression.
        axis: Along which ArgMax, ArgMin and TopK choose.
        exact: Whether the values are as the provider got them, so that no rounding excuses another choice.
        unordered: Whether a TopK may give them in any order.
    """

    op: ChoosingOp
    data: Tensor
    axis: int = -1
    exact: bool = False
    unordered: bool = False

    @property
    def excuses(self) -> bool:
        """Whether another position is right where the values tie."""
        return not self.exact or self.op not in DEFINED


def tied(chosen: Chosen, golden: Array, actual: Array, tolerance: Tolerance) -> Mask | None:
    """Which elements differ in position but not in value.

    Args:
        chosen: Where the positions come from.
        golden: Positions of the CPU provider, integers or integral floats.
        actual: Positions of the EP, of the same shape but for NonZero.
        tolerance: Of the values; equal ones always tie.

    Returns:
        A mask of the shape of ``golden``: true where ``actual`` differs and the values at both positions tie.
        For NonZero one that is all true, or all false. None where positions and values do not fit together,
        so that nothing can be told.
    """
    with np.errstate(all="ignore"):
        data = widen(chosen.data.array, chosen.data.dtype)
        right, found = golden.astype(np.int64), actual.astype(np.int64)
        if chosen.op == "NonZero":
            return _tied_nonzero(data, right, found, tolerance)
        if right.shape != found.shape:
            return None
        if chosen.op == "NonMaxSuppression":
            return _tied_boxes(data, right, found, tolerance)
        if chosen.op == "MaxPool":
            return _tied_in_planes(data, right, found, tolerance)
        return _tied_along(data, right, found, chosen, tolerance)


def _tied_along(
    data: Array, golden: Array, actual: Array, chosen: Chosen, tolerance: Tolerance
) -> Mask | None:
    if not -data.ndim <= chosen.axis < data.ndim:
        return None
    axis = chosen.axis % data.ndim
    others = data.size // data.shape[axis] if data.shape[axis] else 0
    count = golden.size // others if others else 0
    if not count or count * others != golden.size or (chosen.op != "TopK" and count != 1):
        return None
    # Whether ArgMax keeps the axis or not, and whatever reshapes its result, the order of elements stays.
    shape = (*data.shape[:axis], count, *data.shape[axis + 1 :])
    right, found = golden.reshape(shape), actual.reshape(shape)
    length = data.shape[axis]
    if not ((right >= 0) & (right < length)).all():
        return None
    inside = (found >= 0) & (found < length)
    theirs = np.take_along_axis(data, np.where(inside, found, right), axis)
    tie = inside & (found != right) & _close(theirs, np.take_along_axis(data, right, axis), tolerance)
    if count > 1:  # an index that is given twice ties with itself, and stands in the place of another
        ordered = np.sort(found, axis)
        tie &= ~(np.diff(ordered, axis=axis) == 0).any(axis, keepdims=True)
    mask: Mask = tie.reshape(golden.shape)
    return mask


def _tied_in_planes(data: Array, golden: Array, actual: Array, tolerance: Tolerance) -> Mask | None:
    """MaxPool numbers the elements of the whole tensor; no window leaves its plane of batch and channel."""
    flat = data.reshape(-1)
    plane = int(np.prod(data.shape[2:]))
    if data.ndim < 3 or not ((golden >= 0) & (golden < flat.size)).all():  # noqa: PLR2004 - batch, channel, more
        return None
    inside = (actual >= 0) & (actual < flat.size) & (actual // plane == golden // plane)
    close = _close(flat[np.where(inside, actual, golden)], flat[golden], tolerance)
    tie: Mask = inside & (actual != golden) & close
    return tie


def _tied_boxes(scores: Array, golden: Array, actual: Array, tolerance: Tolerance) -> Mask | None:
    """Rows are batch, class and box, by falling score; two boxes of one score stand in any order."""
    if golden.ndim != 2 or golden.shape[1] != 3 or scores.ndim != 3:  # noqa: PLR2004 - as ONNX has them
        return None
    limits = np.array(scores.shape)
    if not ((golden >= 0) & (golden < limits)).all():
        return None
    inside = ((actual >= 0) & (actual < limits)).all(1) & (actual[:, :2] == golden[:, :2]).all(1)
    inside &= len(np.unique(actual, axis=0)) == len(actual)
    safe = np.where(inside[:, None], actual, golden)
    close = _close(scores[tuple(safe.T)], scores[tuple(golden.T)], tolerance)
    tie: Mask = (inside & close)[:, None] & (actual != golden)
    return tie


def _tied_nonzero(data: Array, golden: Array, actual: Array, tolerance: Tolerance) -> Mask | None:
    """Positions of what is not zero, in order; what lies next to zero may be among them or not."""
    if golden.ndim != 2 or actual.ndim != 2 or not len(golden) == len(actual) == data.ndim > 0:  # noqa: PLR2004
        return None
    limits = np.array(data.shape)[:, None]
    if not all(((places >= 0) & (places < limits)).all() for places in (golden, actual)):
        return None
    right, found = (np.ravel_multi_index(tuple(places), data.shape) for places in (golden, actual))
    in_order = (np.diff(found) > 0).all()
    flipped = data.reshape(-1)[np.setxor1d(right, found)]
    fine = bool(in_order and _close(flipped, np.zeros_like(flipped), tolerance).all())
    return np.full(golden.shape, fine)


def _close(one: Array, other: Array, tolerance: Tolerance) -> Mask:
    larger = np.maximum(np.abs(one), np.abs(other))
    near = np.abs(one - other) <= tolerance.atol + tolerance.rtol * np.where(np.isfinite(larger), larger, 0.0)
    close: Mask = near | (one == other) | (np.isnan(one) & np.isnan(other))
    return close

"""Outputs that are positions: a different position is right where the values at both tie.

ArgMax, ArgMin and TopK choose by values. If two values differ by less than their own tolerance, rounding
decides which one is larger, and either choice is right. If the values are the model's inputs, nothing is
rounded, and ONNX defines which of two equal ones to choose.
"""

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.metrics import EXACT_FRONTIER, is_close, measure_error, widen_tensor
from harness.core.comparison.output_metrics import Frontier
from harness.core.comparison.tolerance import EXACT, Tolerance
from harness.core.values.value import STRING, Array, Tensor
from harness.operators.book import operators_with

_DEFINED = operators_with(lambda row: row.ties == "first_index")
"""Of equal values ONNX makes these choose the first index, or the last with ``select_last_index``."""

_ZEROS = 1000
"""An EP may report one of so many values as nonzero although it is exactly zero on the CPU EP.

Relu and differences give exact zeros, but rounding turns one into a small number only next to a threshold.
"""

_Mask = NDArray[np.bool_]


class Chosen(msgspec.Struct, frozen=True, kw_only=True):
    """An output of positions, and the values by which they were chosen.

    Attributes:
        op: The operator, one of those that have ``ties`` in the book of operators.
        data: The values that it chose from, as the CPU provider has them: scores for NonMaxSuppression.
        axis: The axis along which ArgMax, ArgMin and TopK choose.
        exact: Whether the values are inputs of the model, so that no rounding excuses another choice.
        unordered: Whether a TopK may return them in any order.
        moved: Positions that rounding noise moves, of the shape of the positions; None if unknown.
    """

    op: str
    data: Tensor
    axis: int = -1
    exact: bool = False
    unordered: bool = False
    moved: _Mask | None = None

    @property
    def excuses(self) -> bool:
        """Whether a different position is right where the values tie."""
        return not self.exact or self.op not in _DEFINED


class Ties(msgspec.Struct, frozen=True, kw_only=True):
    """Positions that differ from the golden's, and the values at both.

    Attributes:
        fits: True where the other position is a possible one; of the shape of the golden.
        differs: True where the position differs; of the same shape.
        golden: Values at the golden's positions, float64, of the shape of ``fits``, or broadcast to it.
        actual: Values at the other positions.
        unit: The largest magnitude among the values of a choice, at most 1, of a shape like ``golden``. A
            tolerance for values around 1 would excuse any choice among the probabilities of 100,000 words.
    """

    fits: _Mask
    differs: _Mask
    golden: Array
    actual: Array
    unit: Array | float = 1.0

    def within(self, tolerance: Tolerance) -> int:
        """Return how many differing positions have values that tie within a tolerance."""
        near = is_close(self.actual / self.unit, self.golden / self.unit, tolerance)
        return int((self.fits & self.differs & near).sum())

    def frontier(self) -> Frontier:
        """Return the tolerances of the values that excuse every position that differs; may be empty."""
        if not self.fits[self.differs].all():
            return ()
        golden, actual = (
            np.broadcast_to(side / self.unit, self.differs.shape)[self.differs]
            for side in (self.golden, self.actual)
        )
        ours, theirs = (Tensor(dtype="float64", array=side.astype(np.float64)) for side in (golden, actual))
        found = measure_error(ours, theirs, EXACT)
        return () if found.special else found.frontier


def ties_of(chosen: Chosen, golden: Array, actual: Array) -> Ties | None:
    """Find the positions that differ, and the values at them; None where shapes or values do not fit.

    Positions are integers or integral floats, of one shape except for NonZero. If it is known which positions
    noise moves, rounding excuses no other one. Of equal values, only operators for which ONNX does not define
    the choice may choose any.
    """
    ties = _ties_of(chosen, golden, actual)
    if ties is None or chosen.moved is None or chosen.unordered or chosen.moved.shape != golden.shape:
        return ties
    if chosen.op == "NonZero":
        return ties
    moved = chosen.moved.any(-1, keepdims=True) if chosen.op == "NonMaxSuppression" else chosen.moved
    free = chosen.op not in _DEFINED
    return msgspec.structs.replace(ties, fits=ties.fits & (moved | (free & (ties.golden == ties.actual))))


def _ties_of(chosen: Chosen, golden: Array, actual: Array) -> Ties | None:
    if "c" in (golden.dtype.kind, actual.dtype.kind) or chosen.data.dtype == STRING:
        return None
    with np.errstate(all="ignore"):
        data = widen_tensor(chosen.data)
        right, found = golden.astype(np.int64), actual.astype(np.int64)
        if chosen.op == "NonZero":
            most_zeros = 0 if chosen.exact else max(1, data.size // _ZEROS)
            return _in_list(data, right, found, most_zeros)
        if right.shape != found.shape:
            return None
        if chosen.op == "NonMaxSuppression":
            return _of_boxes(data, right, found)
        if chosen.op == "MaxPool":
            return _in_planes(data, right, found)
        return _along(data, right, found, chosen)


def excusing(ties: Ties, chosen: Chosen) -> Frontier:
    """Return the tolerances of the values that make different positions right; may be empty."""
    if not chosen.excuses:
        return ()
    frontier = ties.frontier()
    return () if chosen.exact and frontier != EXACT_FRONTIER else frontier


def lead_of(chosen: Chosen, golden: Array, actual: Array) -> tuple[int, float] | None:
    """Return how many choices differ, and by how much the golden's lead at most.

    The unit is the RMS of all finite values that the golden chose from. None where nothing differs, where a
    position is none that could be chosen, or where the values are inputs, which nothing rounds.
    """
    ties = None if chosen.exact or chosen.op not in _DEFINED else _ties_of(chosen, golden, actual)
    if ties is None or not ties.differs.any() or not ties.fits[ties.differs].all():
        return None
    data = widen_tensor(chosen.data)
    rms = math.sqrt(float(np.mean(np.square(data[np.isfinite(data)]))))
    apart = np.broadcast_to(np.abs(ties.golden - ties.actual), ties.differs.shape)
    widest = float(apart[ties.differs].max())
    return (int(ties.differs.sum()), widest / rms) if rms and math.isfinite(widest / rms) else None


def _along(data: Array, golden: Array, actual: Array, chosen: Chosen) -> Ties | None:
    if not -data.ndim <= chosen.axis < data.ndim:
        return None
    axis = chosen.axis % data.ndim
    others = data.size // data.shape[axis] if data.shape[axis] else 0
    count = golden.size // others if others else 0
    if not count or count * others != golden.size or (chosen.op != "TopK" and count != 1):
        return None
    # The order of elements is the same whether or not ArgMax keeps the axis, and whatever reshapes its
    # result. In three dimensions, because numpy's sort and take_along_axis allow 32 only.
    before, after = math.prod(data.shape[:axis]), math.prod(data.shape[axis + 1 :])
    data, axis = data.reshape(before, data.shape[axis], after), 1
    right, found = golden.reshape(before, count, after), actual.reshape(before, count, after)
    length = data.shape[axis]
    if not ((right >= 0) & (right < length)).all():
        return None
    fits = (found >= 0) & (found < length)
    theirs = np.take_along_axis(data, np.where(fits, found, right), axis)
    ours = np.take_along_axis(data, right, axis)
    if count > 1:  # an index that occurs twice ties with itself, and replaces another one
        ordered = np.sort(found, axis)
        fits = fits & ~(np.diff(ordered, axis=axis) == 0).any(axis, keepdims=True)
    unit = np.broadcast_to(_unit(data, axis), ours.shape)
    sides = [side.reshape(golden.shape) for side in (fits, found != right, ours, theirs, unit)]
    return Ties(fits=sides[0], differs=sides[1], golden=sides[2], actual=sides[3], unit=sides[4])


def _unit(data: Array, axis: int | None = None) -> Array:
    """Return the largest finite magnitude along an axis, which stays; 1 where it is larger, or 0."""
    size = np.max(np.where(np.isfinite(data), np.abs(data), 0.0), axis=axis, keepdims=True, initial=0.0)
    return np.where((size > 0) & (size < 1), size, 1.0)


def _in_planes(data: Array, golden: Array, actual: Array) -> Ties | None:
    """Compare MaxPool's positions in the whole tensor; each window lies in one plane of batch and channel."""
    flat = data.reshape(-1)
    plane = int(np.prod(data.shape[2:]))
    if data.ndim < 3 or not ((golden >= 0) & (golden < flat.size)).all():  # noqa: PLR2004 - batch, channel, more
        return None
    fits = (actual >= 0) & (actual < flat.size) & (actual // max(1, plane) == golden // max(1, plane))
    theirs = flat[np.where(fits, actual, golden)]
    return Ties(
        fits=fits, differs=actual != golden, golden=flat[golden], actual=theirs, unit=float(_unit(flat)[0])
    )


def _of_boxes(scores: Array, golden: Array, actual: Array) -> Ties | None:
    """Compare rows of batch, class and box, by falling score; boxes with the same score have no order."""
    if golden.ndim != 2 or golden.shape[1] != 3 or scores.ndim != 3:  # noqa: PLR2004 - as ONNX has them
        return None
    limits = np.array(scores.shape)
    if not ((golden >= 0) & (golden < limits)).all():
        return None
    inside = ((actual >= 0) & (actual < limits)).all(1) & (actual[:, :2] == golden[:, :2]).all(1)
    inside &= len(np.unique(actual, axis=0)) == len(actual)
    safe = np.where(inside[:, None], actual, golden)
    ours, theirs = (scores[tuple(rows.T)][:, None] for rows in (golden, safe))
    fits = np.broadcast_to(inside[:, None], golden.shape)
    unit = float(_unit(scores.reshape(-1))[0])
    return Ties(fits=fits, differs=actual != golden, golden=ours, actual=theirs, unit=unit)


def _in_list(data: Array, golden: Array, actual: Array, most_zeros: int) -> Ties | None:
    """Compare the positions of nonzero values, in order; values next to zero may be included or not.

    Positions have a row for each dimension. The EP may report up to ``most_zeros`` positions of exact zeros.
    """
    if golden.ndim != 2 or actual.ndim != 2 or not len(golden) == len(actual) == data.ndim > 0:  # noqa: PLR2004
        return None
    limits = np.array(data.shape)[:, None]
    if not all(((places >= 0) & (places < limits)).all() for places in (golden, actual)):
        return None
    # As ravel_multi_index, which accepts fewer dimensions than an array may have.
    steps = np.array([math.prod(data.shape[axis + 1 :]) for axis in range(data.ndim)], np.int64)
    right, found = steps @ golden, steps @ actual
    flipped = data.reshape(-1)[np.setxor1d(right, found)]
    is_possible = bool((np.diff(found) > 0).all()) and int((flipped == 0).sum()) <= most_zeros
    return Ties(
        fits=np.full(flipped.shape, is_possible),
        differs=np.ones(flipped.shape, np.bool_),
        golden=np.zeros_like(flipped),
        actual=flipped,
    )

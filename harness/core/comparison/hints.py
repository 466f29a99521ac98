"""A hint never changes a verdict.

A hint never changes a verdict. The pattern, applied to the golden, must give the result within the tolerance
that the result itself failed.
"""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.metrics import is_close, widen_tensor
from harness.core.comparison.tolerance import Tolerance
from harness.core.values.value import Array, Tensor

SIZE_LIMIT = 1 << 20
"""Elements up to which patterns are tried: some tenths of a second."""
_RANK_LIMIT = 5
"""Axes up to which their permutations are tried, 119 of them."""
_FEW = 4
"""Number of elements below which any result looks like a pattern."""

_Wide = NDArray[np.float64] | NDArray[np.complex128]


def value_hint(golden: Tensor, actual: Tensor, tolerance: Tolerance) -> str:
    """Explain a numeric result of the right shape that failed a tolerance; empty where no pattern does."""
    if not _FEW <= golden.array.size <= SIZE_LIMIT:
        return "the result is all zeros" if golden.array.size and not actual.array.any() else ""
    with np.errstate(all="ignore"):
        return next(_patterns(golden, actual, tolerance), "")


def shape_hint(golden: Tensor, actual: Tensor, tolerance: Tolerance) -> str:
    """Explain a result of another shape with the same number of elements; empty where no pattern does."""
    if not _FEW <= golden.array.size == actual.array.size <= SIZE_LIMIT:
        return ""
    right, found = widen_tensor(golden), widen_tensor(actual)
    with np.errstate(all="ignore"):
        if _alike(found.reshape(-1), right.reshape(-1), tolerance):
            return "the values are right and in order"
        for axes in _axis_orders(right):
            if right.transpose(axes).shape == found.shape and _alike(found, right.transpose(axes), tolerance):
                return f"it is the golden with its axes in the order {list(axes)}"
    return ""


def _patterns(golden: Tensor, actual: Tensor, tolerance: Tolerance) -> Iterator[str]:
    """Yield hints, the plainest first."""
    right, found = widen_tensor(golden), widen_tensor(actual)
    wrong = ~is_close(found, right, tolerance)
    if not found.any():
        yield "the result is all zeros"
    yield from _narrowed(golden.array, actual.array)
    yield from _moved(right, found, tolerance)
    if np.array_equal(_sorted_bits(golden.array), _sorted_bits(actual.array)):
        yield "same values in another order"
    yield from _scaled(right, found, tolerance)
    yield from _cut_off(right, found, wrong)
    yield from _zeros(right, found, wrong)
    yield from _in_one_place(wrong)


def _narrowed(right: Array, found: Array) -> Iterator[str]:
    """Yield a hint for integers that went through a type that is too narrow."""
    kind = right.dtype.kind
    if kind not in "iu" or found.dtype != right.dtype:
        return
    for bits in (32, 16, 8):
        narrow = np.dtype(f"{kind}{bits // 8}")
        if narrow.itemsize >= right.dtype.itemsize:
            continue
        limits = np.iinfo(narrow)
        if np.array_equal(found, right.astype(narrow).astype(right.dtype)):
            yield f"it is the golden as {narrow.name} holds it: the upper bits are lost"
        elif np.array_equal(found, np.clip(right, limits.min, limits.max)):
            yield f"it is the golden cut off at the limits of {narrow.name}"
    for rounding in (np.float32, np.float16):
        rounded = right.astype(rounding)
        if np.isfinite(rounded).all() and np.array_equal(found, rounded.astype(right.dtype)):
            yield f"it is the golden rounded to {np.dtype(rounding).name}"


def _moved(right: _Wide, found: _Wide, tolerance: Tolerance) -> Iterator[str]:
    for axes in _axis_orders(right):
        turned = right.transpose(axes)
        if turned.shape == right.shape and _alike(found, turned, tolerance):
            yield f"it is the golden with its axes in the order {list(axes)}"
        elif _alike(found.reshape(-1), turned.reshape(-1), tolerance):
            yield f"its elements lie in memory as if the axes had the order {list(axes)}"
    for axis, extent in enumerate(right.shape):
        if extent < _FEW:
            continue
        later, earlier = _along(axis, slice(1, None)), _along(axis, slice(None, -1))
        for step, to, origin in ((1, later, earlier), (-1, earlier, later)):
            # If the golden itself repeats along the axis, a shift explains nothing.
            moves = not _alike(right[to], right[origin], tolerance)
            if moves and _alike(found[to], right[origin], tolerance):
                yield f"it is the golden shifted by {step} along axis {axis}"
        if _alike(found, np.flip(right, axis), tolerance):
            yield f"it is the golden backwards along axis {axis}"


def _scaled(right: _Wide, found: _Wide, tolerance: Tolerance) -> Iterator[str]:
    if not (np.isfinite(right).all() and np.isfinite(found).all()):
        return
    if _alike(found, -right, tolerance):
        yield "it is the golden with the other sign"
        return
    power = float(np.vdot(right, right).real)
    factor = float(np.vdot(right, found).real) / power if power else 0.0
    # The result, scaled back, has to lie within the tolerance; a factor near 0 would pass anything.
    if factor and abs(factor) > tolerance.rtol and _alike(found / factor, right, tolerance):
        yield f"it is {factor:.6g} times the golden"
    offset = (found - right).mean()
    if _alike(found - offset, right, tolerance):
        yield f"it is the golden plus {offset:.6g}"


def _cut_off(right: _Wide, found: _Wide, wrong: NDArray[np.bool_]) -> Iterator[str]:
    if np.iscomplexobj(found):
        return
    cut = found[wrong]
    low, high = found.min(), found.max()
    if cut.size > 1 and low < high and np.isin(cut, (low, high)).all():
        above, below = cut == high, cut == low
        if (right[wrong][above] > high).all() and (right[wrong][below] < low).all():
            limits = [f"{limit:.6g}" for limit, any_cut in ((low, below), (high, above)) if any_cut.any()]
            yield f"it is cut off at {' and '.join(limits)}"


def _zeros(right: _Wide, found: _Wide, wrong: NDArray[np.bool_]) -> Iterator[str]:
    zero = wrong & (found == 0) & (right != 0)
    if int(zero.sum()) < _FEW or (wrong & ~zero).any():
        return
    flat = np.flatnonzero(found.reshape(-1))
    last = int(flat[-1]) + 1 if flat.size else 0
    behind = wrong.reshape(-1)[:last].any()
    where = "" if behind else f": all from element {last} on"
    yield f"{zero.mean():.0%} of the elements are zero and should not be{where}"


def _in_one_place(wrong: NDArray[np.bool_]) -> Iterator[str]:
    places = np.nonzero(wrong)
    if places[0].size < _FEW:
        return
    for axis, extent in enumerate(wrong.shape):
        indices = np.unique(places[axis])
        if indices.size == 1 and extent > 1:
            yield f"all of them at index {indices[0]} of axis {axis}, which has {extent}"
    for axis, extent in enumerate(wrong.shape):
        first = int(places[axis].min())
        if 0 < extent // 2 <= first:
            yield f"all of them from index {first} of axis {axis} on, which has {extent}"


def _axis_orders(right: _Wide) -> Iterator[tuple[int, ...]]:
    """Yield every other order of the axes; axes with one element are ignored."""
    if sum(extent > 1 for extent in right.shape) < 2 or right.ndim > _RANK_LIMIT:  # noqa: PLR2004 - two can swap
        return
    for axes in permutations(range(right.ndim)):
        long = [axis for axis in axes if right.shape[axis] > 1]
        if long != sorted(long):
            yield axes


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*(slice(None),) * axis, part)


def _alike(found: _Wide, right: _Wide, tolerance: Tolerance) -> bool:
    # The first elements already refute most patterns.
    head = slice(0, 16)
    if not is_close(found.reshape(-1)[head], right.reshape(-1)[head], tolerance).all():
        return False
    return bool(is_close(found, right, tolerance).all())


def _sorted_bits(array: Array) -> Array:
    """Return the elements as bit patterns, sorted: the same for every permutation of any element type."""
    flat = np.ascontiguousarray(array).reshape(-1)
    # numpy has no integer as wide as a complex128, but sorts opaque bytes too.
    return np.sort(flat.view("V16" if flat.dtype == np.complex128 else f"u{flat.itemsize}"))

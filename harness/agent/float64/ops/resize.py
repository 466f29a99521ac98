"""Resize and Upsample, axis by axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError

_FIRST_WITH_ROI = 11
_BY_LENGTH = ("align_corners", "tf_crop_and_resize")
_WHOLE = 1e-4  # a scale is float32


def upsample(node: VersionedNode, x: AnyArray, scales: AnyArray = None) -> AnyArray:
    """Upsample: nearest is the one below."""
    factors = [float(one) for one in (node.get("scales") if scales is None else scales)]
    mode = node.get("mode", "nearest").replace("bilinear", "linear")
    sizes = [int(np.floor(count * factor)) for count, factor in zip(x.shape, factors)]
    return _resized(node, x, list(range(x.ndim)), factors, sizes, ("asymmetric", mode, "floor"), None)


def resize(node: VersionedNode, x: AnyArray, *rest: AnyArray) -> AnyArray:
    """Resize."""
    if node.since < _FIRST_WITH_ROI:
        return upsample(node, x, rest[0])
    roi, scales, sizes = [*rest, None, None, None][:3]
    axes = [axis % x.ndim for axis in node.get("axes") or range(x.ndim)]
    if scales is not None and scales.size:
        factors = [float(one) for one in scales]
        wanted = [int(np.floor(x.shape[axis] * factor)) for axis, factor in zip(axes, factors)]
    else:
        wanted = [int(one) for one in sizes]
        factors = [size / x.shape[axis] for axis, size in zip(axes, wanted)]
        policy = node.get("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            factor = min(factors) if policy == "not_larger" else max(factors)
            factors = [factor] * len(axes)
            wanted = [int(np.floor(factor * x.shape[axis] + 0.5)) for axis in axes]
    if node.get("antialias", 0) and min(factors, default=1.0) < 1:
        raise UnsupportedError("implementations differ about Resize with antialias")
    names = (
        node.get("coordinate_transformation_mode", "half_pixel"),
        node.get("mode", "nearest"),
        node.get("nearest_mode", "round_prefer_floor"),
    )
    return _resized(node, x, axes, factors, wanted, names, roi)


def _resized(
    node: VersionedNode,
    x: AnyArray,
    axes: list[int],
    factors: list[float],
    sizes: list[int],
    names: Any,
    roi: AnyArray,
) -> AnyArray:
    transform, mode, nearest = names
    node.budget.need(float(np.prod(x.shape)) * max(1.0, float(np.prod(factors))) * 8)
    y, outside = x, []
    for number, axis in enumerate(axes):
        bounds = (0.0, 1.0) if roi is None or not roi.size else (roi[number], roi[number + len(axes)])
        whole = sizes[number] == x.shape[axis] and factors[number] == 1
        if whole and transform != "tf_crop_and_resize":
            continue
        if transform in _BY_LENGTH and abs(factors[number] * x.shape[axis] - sizes[number]) > _WHOLE:
            raise UnsupportedError(
                "implementations differ about %s with a length that is no whole number" % transform
            )
        at = _places(transform, x.shape[axis], sizes[number], factors[number], bounds)
        if transform == "tf_crop_and_resize":
            outside.append((axis, (at < 0) | (at > x.shape[axis] - 1)))
        if mode == "nearest":
            y = y.take(_nearest(at, nearest, x.shape[axis]), axis)
        else:
            y = np.moveaxis(
                np.tensordot(y.astype(np.float64), _weights(node, at, mode, x.shape[axis]), (axis, 1)),
                -1,
                axis,
            )
    for axis, where in outside:
        shape = [-1 if one == axis else 1 for one in range(x.ndim)]
        y = np.where(where.reshape(shape), node.get("extrapolation_value", 0.0), y)
    if mode != "nearest" and x.dtype.kind != "f":
        raise UnsupportedError("no text defines how Resize rounds to %s" % x.dtype)
    return y


def _places(transform: str, size: int, new: int, factor: float, bounds: Any) -> AnyArray:
    """Return the position of each new element among the old ones."""
    x = np.arange(new, dtype=np.float64)
    start, end = bounds
    half = (x + 0.5) / factor - 0.5
    many = new > 1
    table: dict[str, Any] = {
        "align_corners": lambda: x * (size - 1) / (new - 1) if many else np.zeros(new),
        "asymmetric": lambda: x / factor,
        "half_pixel": lambda: half,
        "half_pixel_symmetric": lambda: size / 2.0 * (1.0 - new / (factor * size)) + half,
        "pytorch_half_pixel": lambda: half if many else np.zeros(new),
        "tf_crop_and_resize": lambda: (
            start * (size - 1) + x * (end - start) * (size - 1) / (new - 1)
            if many
            else np.full(new, 0.5 * (start + end) * (size - 1))
        ),
        "tf_half_pixel_for_nn": lambda: (x + 0.5) / factor,
    }
    if transform not in table:
        raise UnsupportedError("nothing computes Resize with %s in float64" % transform)
    return table[transform]()


def _nearest(at: AnyArray, mode: str, size: int) -> AnyArray:
    found = {
        "round_prefer_floor": lambda: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda: np.floor(at + 0.5),
        "floor": lambda: np.floor(at),
        "ceil": lambda: np.ceil(at),
    }[mode]()
    return np.clip(found, 0, size - 1).astype(np.int64)


def _weights(node: VersionedNode, at: AnyArray, mode: str, size: int) -> AnyArray:
    """Return the weight of each old element for each new one ``(new, old)``."""
    low = np.floor(at)
    r = at - low
    if mode == "linear":
        taps = [(low, 1.0 - r), (low + 1, r)]
    else:
        a = node.get("cubic_coeff_a", -0.75)
        taps = [(low + step, _cubic(np.abs(r - step), a)) for step in (-1, 0, 1, 2)]
    found = np.zeros((len(at), size))
    for place, whole in taps:
        inside = (place >= 0) & (place < size)
        weight = np.where(inside, whole, 0.0) if node.get("exclude_outside", 0) else whole
        np.add.at(found, (np.arange(len(at)), np.clip(place, 0, size - 1).astype(np.int64)), weight)
    if node.get("exclude_outside", 0):
        found /= found.sum(1, keepdims=True)
    return found


def _cubic(d: AnyArray, a: float) -> AnyArray:
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))  # noqa: PLR2004 - its reach

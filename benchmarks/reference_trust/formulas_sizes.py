"""Resize and GridSample as formulas in numpy and float64."""

import itertools
import math
from typing import Any

import numpy as np

from benchmarks.reference_trust.subject import Attributes
from harness.core.values.value import Array

FIRST_WITH_COORDINATES = 11
"""The version of Resize that brought ``coordinate_transformation_mode``."""

EDGE = 1e-5
"""Distance of a coordinate from a whole or half number that the rounding of float32 may bridge."""


def resize(values: list[Any], given: Attributes, since: int) -> list[Any] | None:
    """Interpolate axis by axis; antialiasing and policies of the aspect ratio are not covered."""
    policy = given.get("keep_aspect_ratio_policy", "stretch")
    if since < FIRST_WITH_COORDINATES or given.get("antialias") or policy != "stretch":
        return None
    x, roi, scales, sizes = [*values, None, None, None][:4]
    axes = [axis % x.ndim for axis in given.get("axes", range(x.ndim))]
    made, outside = x, np.zeros(x.shape, bool)
    for place, axis in enumerate(axes):
        extent = x.shape[axis]
        if scales is not None and scales.size:
            scale = float(scales[place])
            length = math.floor(extent * scale)
        else:
            length = int(sizes[place])
            scale = length / extent
        span = (0.0, 1.0)
        if roi is not None and roi.size:
            span = (float(roi[place]), float(roi[place + len(axes)]))
        where = _coordinates(extent, length, scale, span, given)
        if where is None or (given.get("mode", "nearest") == "nearest" and _is_on_edge(where)):
            return None
        weights = np.array([_weights(one, extent, given) for one in where])
        made = np.moveaxis(np.tensordot(weights, made, (1, axis)), 0, axis)
        beyond = (where < 0) | (where > extent - 1)
        outside = np.repeat(outside.any(axis=axis, keepdims=True), length, axis=axis)
        outside = outside | beyond.reshape([-1 if one == axis else 1 for one in range(x.ndim)])
    if given.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        made = np.where(outside, given.get("extrapolation_value", 0.0), made)
    return [made]


def _coordinates(
    extent: int, length: int, scale: float, span: tuple[float, float], given: Attributes
) -> Array | None:
    """Where the elements of an axis of the output lie on that of the input."""
    at, start, end = np.arange(length), *span
    last = max(1, length - 1)
    centres = (at + 0.5) / scale - 0.5
    across = start * (extent - 1) + at * (end - start) * (extent - 1) / last
    found = {
        "half_pixel": centres,
        "half_pixel_symmetric": extent / 2 * (1 - length / (scale * extent)) + centres,
        "pytorch_half_pixel": centres if length > 1 else np.zeros(1),
        "asymmetric": at / scale,
        # The text leaves open whether the length of the output is rounded down here.
        "align_corners": at * (extent - 1) / last if length == extent * scale else None,
        "tf_crop_and_resize": across if length > 1 else np.array([0.5 * (start + end) * (extent - 1)]),
    }
    return found.get(given.get("coordinate_transformation_mode", "half_pixel"))


def _is_on_edge(where: Array) -> bool:
    """Whether rounding decides which element is the nearest one somewhere."""
    from_edge = np.abs(2 * where - np.round(2 * where))
    return bool(np.any((from_edge > 0) & (from_edge < EDGE)))


def _weights(where: float, extent: int, given: Attributes) -> Array:
    """What each element of the input's axis adds at a coordinate."""
    weights = np.zeros(extent)
    mode = given.get("mode", "nearest")
    if mode == "nearest":
        nearest = {
            "round_prefer_floor": math.ceil(where - 0.5),
            "round_prefer_ceil": math.floor(where + 0.5),
            "floor": math.floor(where),
            "ceil": math.ceil(where),
        }[given.get("nearest_mode", "round_prefer_floor")]
        weights[min(max(nearest, 0), extent - 1)] = 1.0
        return weights
    first = math.floor(where)
    part = where - first
    taps = _cubic(part, given.get("cubic_coeff_a", -0.75)) if mode == "cubic" else {0: 1.0 - part, 1: part}
    excludes = mode == "cubic" and given.get("exclude_outside")
    for offset, weight in taps.items():
        if not excludes or 0 <= first + offset < extent:
            weights[min(max(first + offset, 0), extent - 1)] += weight
    return weights / weights.sum() if excludes else weights


def _cubic(part: float, a: float) -> dict[int, float]:
    """Keys' cubic convolution: the weights of four neighbours by their offset from the left one."""

    def kernel(distance: float) -> float:
        if distance <= 1:
            return (a + 2) * distance**3 - (a + 3) * distance**2 + 1
        return a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a

    return {offset: kernel(abs(part - offset)) for offset in (-1, 0, 1, 2)}


def grid_sample(values: list[Any], given: Attributes, _: int) -> list[Any] | None:
    """Sample images with cubic weights; padding stands for each of the sixteen neighbours that is outside."""
    x, grid = values
    if given.get("mode") not in {"cubic", "bicubic"} or x.ndim != len("NCHW"):
        return None
    corners = given.get("align_corners", 0)
    made = np.zeros((x.shape[0], x.shape[1], *grid.shape[1:3]))
    for batch, row, column in np.ndindex(grid.shape[:3]):
        across, down = (
            (one + 1) / 2 * (extent - 1) if corners else ((one + 1) * extent - 1) / 2
            for one, extent in zip(grid[batch, row, column], x.shape[:1:-1], strict=True)
        )
        left, top = math.floor(across), math.floor(down)
        taps = itertools.product(_cubic(down - top, -0.75).items(), _cubic(across - left, -0.75).items())
        for (below, one), (beside, other) in taps:
            y, has_y = _padded(top + below, x.shape[2], given)
            z, has_z = _padded(left + beside, x.shape[3], given)
            if has_y and has_z:
                made[batch, :, row, column] += one * other * x[batch, :, y, z]
    return [made]


def _padded(place: int, extent: int, given: Attributes) -> tuple[int, bool]:
    """The element that stands for one beyond the edge, and whether there is any."""
    mode = given.get("padding_mode", "zeros")
    if 0 <= place < extent:
        return place, True
    if mode == "border":
        return min(max(place, 0), extent - 1), True
    if mode == "reflection":
        low, high = (0.0, extent - 1.0) if given.get("align_corners", 0) else (-0.5, extent - 0.5)
        span = high - low
        folded = (place - low) % (2 * span)
        return round(low + min(folded, 2 * span - folded)), True
    return 0, False

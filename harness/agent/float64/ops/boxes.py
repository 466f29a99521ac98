"""Boxes: which of them are kept, and the part of a picture inside them."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError

_FIRST_HALF_PIXEL = 16  # RoiAlign's default coordinates since this opset


def _number(value: AnyArray, default: float) -> float:
    return default if value is None or not value.size else float(value.reshape(-1)[0])


def non_max_suppression(node: VersionedNode, boxes: AnyArray, scores: AnyArray, *rest: AnyArray) -> AnyArray:
    """NonMaxSuppression: of equal scores the first box comes first."""
    most, overlap, least = (
        _number(one, default) for one, default in zip([*rest, None, None, None], (0.0, 0.0, -np.inf))
    )
    if node.get("center_point_box", 0):
        half = boxes[..., 2:] / 2
        corners = np.concatenate((boxes[..., :2] - half, boxes[..., :2] + half), -1)
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
        corners = np.concatenate((low, high), -1)
    found = []
    for batch, of_class in np.ndindex(*scores.shape[:2]):
        values = scores[batch, of_class]
        order = [one for one in np.argsort(-values, kind="stable") if values[one] > least]
        kept = _kept(corners[batch], order, int(most), overlap)
        found += [(batch, of_class, one) for one in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def _kept(corners: AnyArray, order: list[int], most: int, overlap: float) -> list[int]:
    kept: list[int] = []
    left = np.array(order, np.int64)
    while left.size and len(kept) < most:
        first, left = left[0], left[1:]
        kept.append(int(first))
        left = left[_shares(corners[first], corners[left]) <= overlap]
    return kept


def _shares(box: AnyArray, others: AnyArray) -> AnyArray:
    """Return the intersection over union of a box with others; 0 if the union has no area."""
    inner = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    common = np.where((inner > 0).all(-1), inner.prod(-1), 0.0)
    union = (box[2:] - box[:2]).prod() + (others[:, 2:] - others[:, :2]).prod(-1) - common
    return np.where(common > 0, common / np.where(union > 0, union, 1.0), 0.0)


def roi_align(node: VersionedNode, x: AnyArray, rois: AnyArray, batches: AnyArray) -> Any:
    """RoiAlign of means."""
    if node.get("mode", "avg") != "avg":
        raise UnsupportedError("implementations differ about RoiAlign of maxima")
    default = "half_pixel" if node.since >= _FIRST_HALF_PIXEL else "output_half_pixel"
    is_half = node.get("coordinate_transformation_mode", default) == "half_pixel"
    counts = node.get("output_height", 1), node.get("output_width", 1)
    ratio, scale = node.get("sampling_ratio", 0), node.get("spatial_scale", 1.0)
    y = np.zeros((len(rois), x.shape[1], *counts))
    for number, (roi, batch) in enumerate(zip(rois, batches)):
        begin = roi[[1, 0]] * scale - (0.5 if is_half else 0.0)
        size = roi[[3, 2]] * scale - (0.5 if is_half else 0.0) - begin
        size = size if is_half else np.maximum(size, 1.0)
        lines = []
        for axis in (0, 1):
            step = size[axis] / counts[axis]
            points = ratio if ratio > 0 else max(int(np.ceil(step)), 0)
            at = begin[axis] + (np.arange(counts[axis] * points) + 0.5) * step / max(points, 1)
            lines.append(_means(at, counts[axis], points, x.shape[axis + 2]))
        y[number] = lines[0] @ x[batch] @ lines[1].T
    return y


def _means(at: AnyArray, count: int, points: int, size: int) -> AnyArray:
    """Return the weight of each old element for each new one ``(count, size)``."""
    weights = np.zeros((len(at), size))
    inside = (at >= -1.0) & (at <= size)
    place = np.clip(at, 0.0, size - 1)
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, size - 1)
    rows = np.arange(len(at))
    np.add.at(weights, (rows, low), np.where(inside, 1.0 - (place - low), 0.0))
    np.add.at(weights, (rows, high), np.where(inside, place - low, 0.0))
    return weights.reshape(count, points, size).mean(1) if points else np.zeros((count, size))


def max_roi_pool(node: VersionedNode, x: AnyArray, rois: AnyArray) -> AnyArray:
    """MaxRoiPool: borders of regions are whole elements; a bin without any gives 0."""
    counts, scale = node.get("pooled_shape"), node.get("spatial_scale", 1.0)
    y = np.zeros((len(rois), x.shape[1], *counts))
    for number, roi in enumerate(rois):
        begin = np.floor(roi[[2, 1]] * scale + 0.5).astype(int)
        end = np.floor(roi[[4, 3]] * scale + 0.5).astype(int)
        steps = np.maximum(end - begin + 1, 1) / np.array(counts)
        for place in np.ndindex(*counts):
            low = [int(np.floor(at * step)) + b for at, step, b in zip(place, steps, begin)]
            high = [int(np.ceil((at + 1) * step)) + b for at, step, b in zip(place, steps, begin)]
            cut = [slice(max(a, 0), min(max(b, 0), size)) for a, b, size in zip(low, high, x.shape[2:])]
            part = x[int(roi[0]), :, cut[0], cut[1]]
            if part[0].size:
                y[(number, slice(None), *place)] = part.max((1, 2))
    return y

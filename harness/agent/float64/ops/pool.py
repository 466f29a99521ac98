"""Pools."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.ops.window_views import Windows
from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError


def max_pool(node: VersionedNode, x: AnyArray) -> Any:
    """MaxPool: padding is never the largest; indices count through the flat input."""
    windows = Windows(node, x.shape[2:], tuple(node.get("kernel_shape")))
    rank = x.ndim - 2
    lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    flat = windows.view(windows.padded(x, lowest)).reshape(*x.shape[:2], *windows.out, -1)
    y = flat.max(-1)
    if node.wanted == 1:
        return y
    numbers = np.arange(np.prod(x.shape[2:]), dtype=np.int64).reshape(1, 1, *x.shape[2:])
    if node.get("storage_order", 0) and rank > 1:
        numbers = np.arange(np.prod(x.shape[2:]), dtype=np.int64).reshape(1, 1, *x.shape[2:][::-1])
        numbers = numbers.transpose(0, 1, *range(numbers.ndim - 1, 1, -1))
    inside = windows.view(windows.padded(np.ones((1, 1, *x.shape[2:])), 0.0)).reshape(1, 1, *windows.out, -1)
    where = np.argmax((flat == y[..., None]) & (inside > 0), -1)
    places = windows.view(windows.padded(numbers, -1)).reshape(1, 1, *windows.out, -1)
    places = np.broadcast_to(places, flat.shape)
    indices = np.take_along_axis(places, where[..., None], -1)[..., 0]
    planes = np.arange(x.shape[0] * x.shape[1], dtype=np.int64).reshape(*x.shape[:2], *[1] * rank)
    return y, indices + planes * int(np.prod(x.shape[2:]))


def average_pool(node: VersionedNode, x: AnyArray) -> AnyArray:
    """AveragePool."""
    windows = Windows(node, x.shape[2:], tuple(node.get("kernel_shape")))
    axes = tuple(range(-len(windows.kernel), 0))
    total = windows.view(windows.padded(x, 0.0)).sum(axes)
    ones = np.ones((1, 1, *x.shape[2:]))
    if node.get("count_include_pad", 0):
        # Padding counts, but not the part of the last window beyond it.
        pads = [(0, 0), (0, 0), *((max(b, 0), max(e, 0)) for b, e in zip(windows.begin, windows.end))]
        ones = np.pad(ones, pads, constant_values=1.0)
        begin, windows.begin = windows.begin, [0] * len(windows.kernel)
        counted = windows.view(windows.padded(ones, 0.0)).sum(axes)
        windows.begin = begin
    else:
        counted = windows.view(windows.padded(ones, 0.0)).sum(axes)
    return total / counted


def lp_pool(node: VersionedNode, x: AnyArray) -> AnyArray:
    """LpPool."""
    windows = Windows(node, x.shape[2:], tuple(node.get("kernel_shape")))
    p = node.get("p", 2)
    powers = windows.view(windows.padded(np.abs(x) ** p, 0.0))
    return powers.sum(tuple(range(-len(windows.kernel), 0))) ** (1.0 / p)


def global_max_pool(node: VersionedNode, x: AnyArray) -> AnyArray:
    """GlobalMaxPool."""
    del node
    return x.max(tuple(range(2, x.ndim)), keepdims=True)


def global_average_pool(node: VersionedNode, x: AnyArray) -> AnyArray:
    """GlobalAveragePool."""
    del node
    return x.mean(tuple(range(2, x.ndim)), keepdims=True)


def global_lp_pool(node: VersionedNode, x: AnyArray) -> AnyArray:
    """GlobalLpPool."""
    p = node.get("p", 2)
    return (np.abs(x) ** p).sum(tuple(range(2, x.ndim)), keepdims=True) ** (1.0 / p)


def max_unpool(node: VersionedNode, x: AnyArray, indices: AnyArray, shape: AnyArray = None) -> AnyArray:
    """MaxUnpool."""
    rank = x.ndim - 2
    kernel, strides = node.get("kernel_shape"), node.get("strides") or [1] * rank
    pads = node.get("pads") or [0] * (2 * rank)
    natural = [(x.shape[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[i + rank] for i in range(rank)]
    if shape is not None and [int(one) for one in shape] != [*x.shape[:2], *natural]:
        raise UnsupportedError(
            "implementations differ about what indices of MaxUnpool count with output_shape"
        )
    y = np.zeros((*x.shape[:2], *natural))
    y.reshape(-1)[indices.reshape(-1)] = x.reshape(-1)
    return y

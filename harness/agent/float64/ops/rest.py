"""Small operators that fit no other module, most of them of com.microsoft."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.ops.matmul import matmul_integer_to_float
from harness.agent.float64.ops.pool import max_pool
from harness.agent.float64.ops.quantize import back, real
from harness.agent.float64.versioned_node import AnyArray, VersionedNode


def celu(node: VersionedNode, x: AnyArray) -> AnyArray:
    """Celu."""
    alpha = node.get("alpha", 1.0)
    return np.maximum(x, 0.0) + np.minimum(alpha * np.expm1(x / alpha), 0.0)


def inverse(node: VersionedNode, x: AnyArray) -> AnyArray:
    """Inverse of com.microsoft, of the last two axes."""
    del node
    return np.linalg.inv(x)


def expand_dims(node: VersionedNode, x: AnyArray, axis: AnyArray) -> AnyArray:
    """ExpandDims of com.microsoft."""
    del node
    return np.expand_dims(x, int(axis.reshape(-1)[0]))


def unique(node: VersionedNode, x: AnyArray) -> Any:
    """Unique of com.microsoft: in the order of the first occurrence."""
    del node
    values, firsts, places, counts = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(firsts)
    ranks = np.argsort(order)
    return values[order], ranks[places.reshape(-1)].astype(np.int64), counts[order].astype(np.int64)


def trilu(node: VersionedNode, x: AnyArray, k: AnyArray = None) -> AnyArray:
    """Trilu of com.microsoft."""
    shift = 0 if k is None else int(k.reshape(-1)[0])
    return np.triu(x, shift) if node.get("upper", 1) else np.tril(x, shift)


def gather_nd(node: VersionedNode, x: AnyArray, indices: AnyArray) -> AnyArray:
    """GatherND of com.microsoft."""
    del node
    return x[tuple(np.moveaxis(indices, -1, 0))]


def cdist(node: VersionedNode, a: AnyArray, b: AnyArray) -> AnyArray:
    """CDist of com.microsoft: all distances of rows, or their squares."""
    squares = ((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)
    return np.sqrt(squares) if node.get("metric", "sqeuclidean") == "euclidean" else squares


def scaled_silu(node: VersionedNode, x: AnyArray) -> AnyArray:
    """ScaledSiLU of com.microsoft: as the text, ``scale * x * sigmoid(x)``."""
    return node.get("scale", 1.0) * x / (1.0 + np.exp(-x))


def arange(node: VersionedNode, start: AnyArray, limit: AnyArray, delta: AnyArray = None) -> AnyArray:
    """Range of com.microsoft; steps of 1 by default."""
    del node
    step = np.ones((), start.dtype) if delta is None else delta.reshape(())
    count = max(0, int(np.ceil((limit.reshape(()) - start.reshape(())) / step)))
    return (start.reshape(()) + np.arange(count) * step).astype(start.dtype)


def nhwc_max_pool(node: VersionedNode, x: AnyArray) -> AnyArray:
    """NhwcMaxPool of com.microsoft: channels come last."""
    y = max_pool(node, np.moveaxis(x, -1, 1))
    return np.moveaxis(y, 1, -1)


def qlinear_reduce_mean(
    node: VersionedNode,
    x: AnyArray,
    x_scale: AnyArray,
    x_zero: AnyArray,
    scale: AnyArray,
    zero: AnyArray = None,
) -> Any:
    """QLinearReduceMean of com.microsoft."""
    axes = tuple(node.get("axes") or range(x.ndim))
    return back(real(x, x_scale, x_zero).mean(axes, keepdims=bool(node.get("keepdims", 1))), scale, zero, x)


def matmul_integer16(node: VersionedNode, a: AnyArray, b: AnyArray) -> AnyArray:
    """MatMulInteger16 of com.microsoft: sums are exact in float64, and wrap as int32 does."""
    one = np.ones(())
    return matmul_integer_to_float(node, a, b, one, one).astype(np.int64).astype(np.int32)


def hard_swish(node: VersionedNode, x: AnyArray) -> AnyArray:
    """HardSwish."""
    del node
    return x * np.clip(x / 6.0 + 0.5, 0.0, 1.0)


def window(*parts: float) -> Any:
    """Return an operator that sums cosines of 0, 1, 2... turns over ``size``, with alternating signs."""

    def compute(node: VersionedNode, size: AnyArray) -> AnyArray:
        count = int(size.reshape(-1)[0])
        turns = 2.0 * np.pi * np.arange(count) / (count if node.get("periodic", 1) else count - 1)
        return np.asarray(
            sum((-1) ** number * part * np.cos(number * turns) for number, part in enumerate(parts))
        )

    return compute

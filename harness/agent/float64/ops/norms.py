"""Normalizations."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.ops.conv import activated
from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError

_EPSILON = float(np.float32(1e-5))


def batch_normalization(
    node: VersionedNode, x: AnyArray, scale: AnyArray, bias: AnyArray, mean: AnyArray, variance: AnyArray
) -> Any:
    """BatchNormalization, of inference; of training since opset 14."""
    shape: tuple[int, ...] = (1, -1, *[1] * (x.ndim - 2)) if x.ndim > 1 else (-1,)
    if scale.ndim > 1 or node.get("spatial", 1) == 0:
        shape = (1, *x.shape[1:])  # before opset 9, each place may have its own scale
    epsilon = node.get("epsilon", _EPSILON)
    if node.get("training_mode", 0):
        axes = (0, *range(2, x.ndim))
        momentum = node.get("momentum", float(np.float32(0.9)))
        now, spread = x.mean(axes), x.var(axes)
        y = (x - now.reshape(shape)) / np.sqrt(spread.reshape(shape) + epsilon)
        y = y * scale.reshape(shape) + bias.reshape(shape)
        return y, mean * momentum + now * (1 - momentum), variance * momentum + spread * (1 - momentum)
    if node.wanted > 1:
        raise UnsupportedError("nothing computes this form of BatchNormalization in float64")
    y = (x - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + epsilon)
    return y * scale.reshape(shape) + bias.reshape(shape)


def layer_normalization(node: VersionedNode, x: AnyArray, scale: AnyArray, bias: AnyArray = None) -> Any:
    """LayerNormalization, with mean and inverse standard deviation."""
    axis = node.get("axis", -1)
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True)
    inverse = 1.0 / np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True) + node.get("epsilon", _EPSILON))
    y = (x - mean) * inverse * scale
    return (y if bias is None else y + bias), mean, inverse


def rms_normalization(node: VersionedNode, x: AnyArray, scale: AnyArray) -> Any:
    """RMSNormalization, and SimplifiedLayerNormalization with the inverse root of the mean square."""
    axis = node.get("axis", -1)
    axes = tuple(range(axis % x.ndim, x.ndim))
    inverse = 1.0 / np.sqrt((x * x).mean(axes, keepdims=True) + node.get("epsilon", _EPSILON))
    return x * inverse * scale, inverse


def skip_layer_normalization(
    node: VersionedNode,
    x: AnyArray,
    skip: AnyArray,
    gamma: AnyArray,
    beta: AnyArray = None,
    bias: AnyArray = None,
) -> Any:
    """SkipLayerNormalization of com.microsoft: the sum is its fourth output."""
    total = x + skip + (0.0 if bias is None else bias)
    return (*layer_normalization(node, total, gamma, beta), total)


def skip_rms_normalization(
    node: VersionedNode, x: AnyArray, skip: AnyArray, gamma: AnyArray, bias: AnyArray = None
) -> Any:
    """SkipSimplifiedLayerNormalization of com.microsoft."""
    total = x + skip + (0.0 if bias is None else bias)
    y, inverse = rms_normalization(node, total, gamma)
    return y, None, inverse, total


def embed_layer_normalization(
    node: VersionedNode, ids: AnyArray, segments: AnyArray, *given: AnyArray
) -> Any:
    """EmbedLayerNormalization of com.microsoft."""
    words, places, kinds, gamma, beta, mask, positions = [*given, *[None] * 7][:7]
    where = np.arange(ids.shape[1])[None] if positions is None else positions
    total = words[ids] + places[where]
    if segments is not None and kinds is not None:
        total = total + kinds[segments]
    y, _, _ = layer_normalization(node, total, gamma, beta)
    lengths = np.zeros(ids.shape[0], np.int32) if mask is None else (mask != 0).sum(1).astype(np.int32)
    return y, lengths, total


def instance_normalization(node: VersionedNode, x: AnyArray, scale: AnyArray, bias: AnyArray) -> AnyArray:
    """InstanceNormalization."""
    axes, shape = tuple(range(2, x.ndim)), (1, -1, *[1] * (x.ndim - 2))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) / np.sqrt(variance + node.get("epsilon", _EPSILON))
    return y * scale.reshape(shape) + bias.reshape(shape)


def group_normalization(node: VersionedNode, x: AnyArray, scale: AnyArray, bias: AnyArray) -> AnyArray:
    """GroupNormalization; scale and bias are for each group in opset 18, for each channel since 21."""
    groups = node.get("num_groups")
    rows = x.reshape(x.shape[0], groups, -1)
    mean, variance = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
    y = ((rows - mean) / np.sqrt(variance + node.get("epsilon", _EPSILON))).reshape(x.shape)
    repeat = x.shape[1] // scale.shape[0]
    shape = (1, -1, *[1] * (x.ndim - 2))
    return y * np.repeat(scale, repeat).reshape(shape) + np.repeat(bias, repeat).reshape(shape)


def contrib_group_norm(node: VersionedNode, x: AnyArray, gamma: AnyArray, beta: AnyArray) -> AnyArray:
    """GroupNorm of com.microsoft, whose channels come last by default."""
    last = bool(node.get("channels_last", 1))
    inner = np.moveaxis(x, -1, 1) if last else x
    rows = inner.reshape(x.shape[0], node.get("groups"), -1)
    mean, variance = rows.mean(-1, keepdims=True), rows.var(-1, keepdims=True)
    y = ((rows - mean) / np.sqrt(variance + node.get("epsilon", _EPSILON))).reshape(inner.shape)
    shape = (1, -1, *[1] * (x.ndim - 2))
    y = y * gamma.reshape(shape) + beta.reshape(shape)
    if node.get("activation"):
        y = y / (1.0 + np.exp(-y))
    return np.moveaxis(y, 1, -1) if last else y


def lrn(node: VersionedNode, x: AnyArray) -> AnyArray:
    """LRN: squares of ``size`` neighbouring channels."""
    size = node.get("size")
    squares = np.pad(x * x, [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)])
    total = sum(squares[:, at : at + x.shape[1]] for at in range(size))
    alpha, beta = node.get("alpha", float(np.float32(1e-4))), node.get("beta", 0.75)
    return x / (node.get("bias", 1.0) + alpha / size * total) ** beta


def lp_normalization(node: VersionedNode, x: AnyArray) -> AnyArray:
    """LpNormalization; a norm of zero gives zeros."""
    axis, p = node.get("axis", -1), node.get("p", 2)
    norm = (np.abs(x) ** p).sum(axis, keepdims=True) ** (1.0 / p)
    return np.where(norm == 0, 0.0, x / np.where(norm == 0, 1.0, norm))


def mean_variance_normalization(node: VersionedNode, x: AnyArray) -> AnyArray:
    """MeanVarianceNormalization; its text adds 1e-9 to the standard deviation."""
    axes = tuple(node.get("axes") or [0, 2, 3])
    mean = x.mean(axes, keepdims=True)
    return (x - mean) / (np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True)) + float(np.float32(1e-9)))


def fused_gemm(node: VersionedNode, a: AnyArray, b: AnyArray, c: AnyArray = None) -> AnyArray:
    """FusedGemm of com.microsoft: Gemm and an activation."""
    left, right = (a.T if node.get("transA", 0) else a), (b.T if node.get("transB", 0) else b)
    y = node.get("alpha", 1.0) * (left @ right)
    return activated(node, y if c is None else y + node.get("beta", 1.0) * c)

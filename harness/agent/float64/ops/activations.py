"""Softmax of every opset, and the activations of com.microsoft."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError

_FIRST_ALONG_AXIS = 13  # before, all axes from ``axis`` on are one
_FIRST_DEFINED_MASK = 12  # of Dropout
_TANH_FACTOR = math.sqrt(2.0 / math.pi)
_TANH_CUBE = 0.044715

erf: Any = np.vectorize(math.erf, otypes=[float])
"""The error function, element by element."""


def softmax(node: VersionedNode, x: AnyArray) -> AnyArray:
    """Softmax."""
    return _along(node, x, _softmax)


def log_softmax(node: VersionedNode, x: AnyArray) -> AnyArray:
    """LogSoftmax."""
    return _along(node, x, _log_softmax)


def hardmax(node: VersionedNode, x: AnyArray) -> AnyArray:
    """Hardmax: 1 at the first of the largest."""
    return _along(node, x, _hardmax)


def _along(node: VersionedNode, x: AnyArray, function: Any) -> AnyArray:
    if x.size == 0:
        return x
    if node.since >= _FIRST_ALONG_AXIS:
        axis = node.get("axis", -1)
        return np.moveaxis(function(np.moveaxis(x, axis, -1)), -1, axis)
    axis = node.get("axis", 1) % max(x.ndim, 1)
    rows = x.reshape(int(np.prod(x.shape[:axis])), -1)
    return function(rows).reshape(x.shape)


def _softmax(x: AnyArray) -> AnyArray:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def _log_softmax(x: AnyArray) -> AnyArray:
    below = x - x.max(-1, keepdims=True)
    return below - np.log(np.exp(below).sum(-1, keepdims=True))


def _hardmax(x: AnyArray) -> AnyArray:
    found = np.zeros_like(x)
    np.put_along_axis(found, x.argmax(-1)[..., None], 1.0, -1)
    return found


def gelu(node: VersionedNode, x: AnyArray) -> AnyArray:
    """Gelu, also that of com.microsoft."""
    if node.get("approximate", "none") == "tanh":
        return 0.5 * x * (1.0 + np.tanh(_TANH_FACTOR * (x + _TANH_CUBE * x**3)))
    return 0.5 * x * (1.0 + _erf(x / math.sqrt(2.0)))


def _erf(x: AnyArray) -> AnyArray:
    return erf(x) if x.size else x


def erf_of(node: VersionedNode, x: AnyArray) -> AnyArray:
    """Erf."""
    del node
    return _erf(x).reshape(x.shape)


def bias_gelu(node: VersionedNode, x: AnyArray, bias: AnyArray) -> AnyArray:
    """BiasGelu of com.microsoft."""
    return gelu(node, x + bias)


def fast_gelu(node: VersionedNode, x: AnyArray, bias: AnyArray = None) -> AnyArray:
    """FastGelu of com.microsoft: the tangent, after a bias."""
    del node
    y = x if bias is None else x + bias
    # The CPU EP writes 0.7978845608028654 and 0.035677408136300125, the same numbers.
    return 0.5 * y * (1.0 + np.tanh(_TANH_FACTOR * (y + _TANH_CUBE * y**3)))


def quick_gelu(node: VersionedNode, x: AnyArray) -> AnyArray:
    """QuickGelu of com.microsoft."""
    return x / (1.0 + np.exp(-node.get("alpha", float(np.float32(1.702))) * x))


def bias_softmax(node: VersionedNode, x: AnyArray, bias: AnyArray) -> AnyArray:
    """BiasSoftmax of com.microsoft: one softmax from ``axis`` on, of a sum that broadcasts."""
    axis = node.get("axis", 1) % x.ndim
    if not node.get("is_inner_broadcast", 1):
        total = x + bias
    else:
        missing = x.ndim - bias.ndim
        wide = bias.reshape((1,) * missing + bias.shape) if missing > 0 else bias
        repeats = [large // small for large, small in zip(x.shape, wide.shape)]
        total = x + (np.repeat(wide, repeats[0], 0) if wide.shape != x.shape else wide)
    rows = total.reshape(int(np.prod(x.shape[:axis])), -1)
    return _softmax(rows).reshape(x.shape)


def bias_add(node: VersionedNode, x: AnyArray, bias: AnyArray, skip: AnyArray) -> AnyArray:
    """BiasAdd of com.microsoft."""
    del node
    return x + bias + skip


def bias_split_gelu(node: VersionedNode, x: AnyArray, bias: AnyArray) -> AnyArray:
    """BiasSplitGelu of com.microsoft: the first half times the Gelu of the second."""
    left, right = np.split(x + bias, 2, -1)
    return left * gelu(node, right)


def dropout(node: VersionedNode, x: AnyArray, ratio: AnyArray = None, training: AnyArray = None) -> Any:
    """Dropout of inference."""
    share = node.get("ratio", 0.5) if ratio is None else float(ratio)
    if training is not None and bool(training) and share > 0:
        raise UnsupportedError("Dropout draws random numbers")
    if node.since < _FIRST_DEFINED_MASK and node.wanted > 1:
        raise UnsupportedError("no text defines the mask of Dropout before opset 12")
    return (x, np.ones(x.shape, bool)) if node.wanted > 1 else x

"""Quantization: the arithmetic between rounding steps is real, and the steps are ONNX's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode

_UNSIGNED8 = np.dtype(np.uint8)


def _limits(dtype: Any) -> tuple[int, int]:
    """Return the least and the greatest number of an integer type, including narrow ones."""
    bits = int(re.sub(r"\D", "", dtype.name))
    return (0, (1 << bits) - 1) if dtype.name.startswith("u") else (-(1 << bits - 1), (1 << bits - 1) - 1)


def _is_float(dtype: Any) -> bool:
    return "float" in dtype.name


def narrowed(x: AnyArray, dtype: Any, *, saturate: bool) -> AnyArray:
    """Return numbers of a float type of 4 or 8 bits; with saturation, the largest replace all beyond."""
    patterns = 16 if dtype.name.startswith("float4") else 256
    every = np.arange(patterns, dtype=np.uint8).view(dtype).astype(np.float64)
    largest = every[np.isfinite(every)].max()
    if saturate or dtype.name.startswith("float4"):
        x = np.clip(x, -largest, largest)
    return x.astype(dtype)


def _spread(node: VersionedNode, parameter: AnyArray, x: AnyArray) -> AnyArray:
    """Return a scale or zero point in a shape that broadcasts: for the tensor, an axis, or its blocks."""
    if parameter.size == 1 and parameter.ndim <= 1:
        return parameter.reshape(())
    axis = node.get("axis", 1) % x.ndim
    if parameter.ndim == 1 and not node.get("block_size", 0):
        return parameter.reshape([-1 if at == axis else 1 for at in range(x.ndim)])
    block = node.get("block_size", 0) or -(-x.shape[axis] // parameter.shape[axis])
    return np.repeat(parameter, block, axis).take(np.arange(x.shape[axis]), axis)


def quantized(x: AnyArray, scale: AnyArray, zero: AnyArray, dtype: Any) -> AnyArray:
    """Return numbers of a type: halves round to even, and numbers beyond the type saturate."""
    low, high = _limits(dtype)
    return np.clip(np.rint(x / scale) + zero, low, high).astype(np.int64).astype(dtype)


def quantize_linear(node: VersionedNode, x: AnyArray, scale: AnyArray, zero: AnyArray = None) -> AnyArray:
    """QuantizeLinear, also that of com.microsoft; to integers."""
    dtype = _UNSIGNED8 if zero is None else zero.dtype
    if zero is None and node.get("output_dtype", 0):
        from onnx import helper

        dtype = np.dtype(helper.tensor_dtype_to_np_dtype(node.get("output_dtype")))
    zeros = 0.0 if zero is None else _spread(node, zero, x).astype(np.float64)
    scales = _spread(node, scale, x).astype(np.float64)
    if _is_float(dtype):
        return narrowed(x.astype(np.float64) / scales, dtype, saturate=bool(node.get("saturate", 1)))
    # Integers in 32 bits are quantized as well.
    return quantized(x.astype(np.float64), scales, zeros, dtype)


def dequantize_linear(node: VersionedNode, x: AnyArray, scale: AnyArray, zero: AnyArray = None) -> AnyArray:
    """DequantizeLinear, also that of com.microsoft; of any type."""
    zeros = 0.0 if zero is None else _spread(node, zero, x).astype(np.float64)
    return (x.astype(np.float64) - zeros) * _spread(node, scale, x)


def dynamic_quantize_linear(node: VersionedNode, x: AnyArray) -> Any:
    """DynamicQuantizeLinear: scale and zero point are real numbers of the range.

    The zero point is rounded.
    """
    del node
    low, high = (min(0.0, float(x.min())), max(0.0, float(x.max()))) if x.size else (0.0, 0.0)
    # The CPU EP and onnx.reference use 1/255 if all elements are zero.
    scale = (high - low) / 255.0 if high != low else 1.0 / 255.0
    zero = np.clip(np.rint(-low / scale), 0, 255).astype(np.uint8)
    return quantized(x, scale, float(zero), _UNSIGNED8), np.array(scale), zero


def real(x: AnyArray, scale: AnyArray, zero: AnyArray = None) -> AnyArray:
    """Return the real numbers of a quantized tensor, for scales that broadcast."""
    return (x.astype(np.float64) - (0.0 if zero is None else zero.astype(np.float64))) * scale


def back(y: AnyArray, scale: AnyArray, zero: AnyArray, like: AnyArray = None) -> AnyArray:
    """Return real numbers quantized; without a zero point they have the type of another tensor."""
    dtype = zero.dtype if zero is not None else like.dtype
    return quantized(y, scale, 0.0 if zero is None else zero.astype(np.float64), dtype)


def binary(function: Any) -> Any:
    """Return QLinearAdd or QLinearMul of com.microsoft."""

    def compute(
        node: VersionedNode,
        a: AnyArray,
        scale_a: AnyArray,
        zero_a: AnyArray,
        b: AnyArray,
        scale_b: AnyArray,
        *rest: AnyArray,
    ) -> Any:
        del node
        zero_b, scale, zero = [*rest, None][:3]
        return back(function(real(a, scale_a, zero_a), real(b, scale_b, zero_b)), scale, zero, a)

    return compute


def unary(function: Any) -> Any:
    """Return QLinearSigmoid or QLinearLeakyRelu of com.microsoft; the function has the node and values."""

    def compute(
        node: VersionedNode,
        x: AnyArray,
        x_scale: AnyArray,
        x_zero: AnyArray,
        scale: AnyArray,
        zero: AnyArray = None,
    ) -> Any:
        return back(function(node, real(x, x_scale, x_zero)), scale, zero, x)

    return compute


def concat(node: VersionedNode, scale: AnyArray, zero: AnyArray, *given: AnyArray) -> AnyArray:
    """QLinearConcat of com.microsoft: each input with its scale and zero point."""
    parts = [real(given[at], given[at + 1], given[at + 2]) for at in range(0, len(given), 3)]
    return back(np.concatenate(parts, node.get("axis")), scale, zero)


def pooled(pool: Any) -> Any:
    """Return QLinearAveragePool or QLinearGlobalAveragePool of com.microsoft."""

    def compute(
        node: VersionedNode,
        x: AnyArray,
        x_scale: AnyArray,
        x_zero: AnyArray,
        scale: AnyArray,
        zero: AnyArray = None,
    ) -> Any:
        values = real(x, x_scale, x_zero)
        last = bool(node.get("channels_last", 0))
        y = pool(node, np.moveaxis(values, -1, 1) if last else values)
        return back(np.moveaxis(y, 1, -1) if last else y, scale, zero, x)

    return compute


def softmax(
    node: VersionedNode,
    x: AnyArray,
    x_scale: AnyArray,
    x_zero: AnyArray,
    scale: AnyArray,
    zero: AnyArray = None,
) -> AnyArray:
    """QLinearSoftmax of com.microsoft, with the meaning of the opset that it names."""
    values = real(x, x_scale, x_zero)
    axis = node.get("axis", -1) % x.ndim
    along = node.get("opset") >= 13  # noqa: PLR2004 - since this opset it is one axis
    rows = np.moveaxis(values, axis, -1) if along else values.reshape(int(np.prod(x.shape[:axis])), -1)
    powers = np.exp(rows - rows.max(-1, keepdims=True))
    y = powers / powers.sum(-1, keepdims=True)
    return back(np.moveaxis(y, -1, axis) if along else y.reshape(x.shape), scale, zero, x)


def where(
    node: VersionedNode,
    condition: AnyArray,
    x: AnyArray,
    x_scale: AnyArray,
    x_zero: AnyArray,
    y: AnyArray,
    *rest: AnyArray,
) -> AnyArray:
    """QLinearWhere of com.microsoft."""
    del node
    y_scale, y_zero, scale, zero = rest
    return back(np.where(condition, real(x, x_scale, x_zero), real(y, y_scale, y_zero)), scale, zero)

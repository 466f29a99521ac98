"""Products of matrices: of integers, quantized, in blocks of a few bits, and fused ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.ops.conv import convolved, shifted
from harness.agent.float64.ops.quantize import back, dynamic_quantize_linear
from harness.agent.float64.ops.window_views import Windows
from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError

_ROWS = 1024
"""Rows of a quantized weight that are held as real numbers at once."""


def matmul(node: VersionedNode, a: AnyArray, b: AnyArray) -> AnyArray:
    """MatMul; of integers, too."""
    if a.dtype.kind == "f":
        shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        node.budget.need(float(np.prod(shape)) * (a.shape[-2] if a.ndim > 1 else 1) * b.shape[-1] * 8)
    return np.matmul(a, b)


def gemm(node: VersionedNode, a: AnyArray, b: AnyArray, c: AnyArray = None) -> AnyArray:
    """Gemm; of integers, too."""
    left, right = (a.T if node.get("transA", 0) else a), (b.T if node.get("transB", 0) else b)
    product = left @ right
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    y = product if alpha == 1 else alpha * product
    y = y if c is None else y + (c if beta == 1 else beta * c)
    return y.astype(a.dtype)


def _rows(zero: AnyArray, a: AnyArray) -> Any:
    """Return the zero point of the left side, which may be one for each row."""
    if zero is None:
        return 0.0
    zeros = zero.astype(np.float64)
    return zeros[..., None] if zeros.ndim == 1 and zeros.size > 1 and a.ndim > 1 else zeros


def matmul_integer(
    node: VersionedNode, a: AnyArray, b: AnyArray, a_zero: AnyArray = None, b_zero: AnyArray = None
) -> AnyArray:
    """MatMulInteger: sums are exact in float64, and int32 at the end."""
    del node
    left = a.astype(np.float64) - _rows(a_zero, a)
    right = b.astype(np.float64) - (0.0 if b_zero is None else b_zero.astype(np.float64))
    return (left @ right).astype(np.int64).astype(np.int32)


def qlinear_matmul(
    node: VersionedNode,
    a: AnyArray,
    a_scale: AnyArray,
    a_zero: AnyArray,
    b: AnyArray,
    b_scale: AnyArray,
    *rest: AnyArray,
) -> AnyArray:
    """QLinearMatMul."""
    del node
    b_zero, scale, zero = rest
    scales = a_scale[..., None] if a_scale.ndim == 1 and a_scale.size > 1 else a_scale
    left = (a.astype(np.float64) - _rows(a_zero, a)) * scales
    right = (b.astype(np.float64) - b_zero.astype(np.float64)) * b_scale
    return back(left @ right, scale, zero)


def qlinear_conv(
    node: VersionedNode,
    x: AnyArray,
    x_scale: AnyArray,
    x_zero: AnyArray,
    w: AnyArray,
    w_scale: AnyArray,
    *rest: AnyArray,
) -> AnyArray:
    """QLinearConv; that of com.microsoft may have channels last. The bias has the scale of the products."""
    w_zero, scale, zero, bias = [*rest, None][:4]
    last = bool(node.get("channels_last", 0))
    values = np.moveaxis(x, -1, 1) if last else x
    windows = Windows(node, values.shape[2:], w.shape[2:])
    sums = convolved(node, windows, values.astype(np.float64) - x_zero.astype(np.float64), shifted(w, w_zero))
    shape = (1, -1, *[1] * (x.ndim - 2))
    sums = sums if bias is None else sums + bias.astype(np.float64).reshape(shape)
    scales = w_scale.reshape(shape) if w_scale.size > 1 else w_scale.reshape(())
    y = back(sums * (x_scale.reshape(()) * scales), scale.reshape(()), zero.reshape(()))
    return np.moveaxis(y, 1, -1) if last else y


def qgemm(
    node: VersionedNode,
    a: AnyArray,
    a_scale: AnyArray,
    a_zero: AnyArray,
    b: AnyArray,
    b_scale: AnyArray,
    *rest: AnyArray,
) -> AnyArray:
    """QGemm of com.microsoft; the result is real if the output has no scale."""
    b_zero, c, scale, zero = [*rest, None, None, None][:4]
    left, right = a.astype(np.float64), b.astype(np.float64)
    left = left - (0.0 if a_zero is None else a_zero.astype(np.float64))
    if node.get("transB", 0):
        right = shifted(right, b_zero).T
    else:
        right = right - (0.0 if b_zero is None else b_zero.astype(np.float64))
    product = node.get("alpha", 1.0) * ((left.T if node.get("transA", 0) else left) @ right)
    y = (product if c is None else product + c.astype(np.float64)) * (a_scale * b_scale)
    return y if scale is None else back(y, scale, zero, a)


def matmul_integer_to_float(
    node: VersionedNode, a: AnyArray, b: AnyArray, a_scale: AnyArray, b_scale: AnyArray, *rest: AnyArray
) -> AnyArray:
    """MatMulIntegerToFloat of com.microsoft."""
    a_zero, b_zero, bias = [*rest, None, None, None][:3]
    y = matmul_integer(node, a, b, a_zero, b_zero).astype(np.float64) * (a_scale * b_scale)
    return y if bias is None else y + bias


def dynamic_quantize_matmul(
    node: VersionedNode,
    a: AnyArray,
    b: AnyArray,
    b_scale: AnyArray,
    b_zero: AnyArray = None,
    bias: AnyArray = None,
) -> AnyArray:
    """DynamicQuantizeMatMul of com.microsoft."""
    quantized, scale, zero = dynamic_quantize_linear(node, a)
    return matmul_integer_to_float(node, quantized, b, scale, b_scale, zero, b_zero, bias)


def fused_matmul(node: VersionedNode, a: AnyArray, b: AnyArray) -> AnyArray:
    """FusedMatMul and TransposeMatMul of com.microsoft: transposed sides, batches on the second axis."""
    left = _turned(a, node.get("transA", 0), node.get("transBatchA", 0))
    right = _turned(b, node.get("transB", 0), node.get("transBatchB", 0))
    return node.get("alpha", 1.0) * np.matmul(left, right)


def _turned(x: AnyArray, trans: int, batch: int) -> AnyArray:
    if batch and x.ndim > 1:  # (M, batch..., K)
        x = np.moveaxis(x, 0, -2)
    return x.swapaxes(-1, -2) if trans and x.ndim > 1 else x


def unpacked(packed: AnyArray, bits: int) -> AnyArray:
    """Return numbers of ``bits`` bits in uint8, the lowest bits first, along the last axis."""
    if bits == 8:  # noqa: PLR2004
        return packed.view(np.uint8)
    parts = [(packed.view(np.uint8) >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return np.stack(parts, -1).reshape(*packed.shape[:-1], -1)


def matmul_nbits(
    node: VersionedNode, a: AnyArray, b: AnyArray, scales: AnyArray, *rest: AnyArray
) -> AnyArray:
    """MatMulNBits of com.microsoft: weights ``(N, blocks, bytes)``, each block with its scale and zero point.

    Activations stay real, whatever ``accuracy_level`` allows.
    """
    zeros, groups, bias = [*rest, None, None, None][:3]
    bits, depth, columns = node.get("bits", 4), node.get("K"), node.get("N")
    if groups is not None or bits not in (2, 4, 8):
        raise UnsupportedError("nothing computes this form of MatMulNBits in float64")
    blocks = -(-depth // node.get("block_size"))
    shift = _zeros(zeros, bits, columns, blocks)
    scales = scales.reshape(columns, blocks, 1)
    y = np.empty((*a.shape[:-1], columns))
    for first in range(0, columns, _ROWS):
        part = slice(first, first + _ROWS)
        values = unpacked(b[part].reshape(-1, blocks, b.shape[-1]), bits).astype(np.float64)
        weights = ((values - shift[part]) * scales[part]).reshape(values.shape[0], -1)[:, :depth]
        y[..., part] = a @ weights.T
    return y if bias is None else y + bias


def _zeros(zeros: AnyArray, bits: int, rows: int, blocks: int) -> AnyArray:
    """Return zero points ``(rows, blocks, 1)``: packed, real, or half of the range if there are none."""
    if zeros is None:
        return np.full((rows, blocks, 1), float(1 << bits - 1))
    if zeros.dtype.kind == "f":
        return zeros.reshape(rows, blocks, 1)
    packed = zeros.reshape(rows, -1)
    return unpacked(packed, bits)[:, :blocks].astype(np.float64)[..., None]


def gather_block_quantized(
    node: VersionedNode, data: AnyArray, indices: AnyArray, scales: AnyArray, zeros: AnyArray = None
) -> AnyArray:
    """GatherBlockQuantized of com.microsoft; uint8 holds several numbers along the last axis."""
    axis, along = node.get("gather_axis", 0), node.get("quantize_axis", 1)
    bits, block = node.get("bits", 4), node.get("block_size", 128)
    is_packed = data.dtype == np.uint8
    if axis % data.ndim != 0:
        raise UnsupportedError("nothing computes this form of GatherBlockQuantized in float64")
    taken = data[indices]
    values = unpacked(taken, bits).astype(np.float64) if is_packed else taken.astype(np.float64)
    at = along % data.ndim + indices.ndim - 1
    size = values.shape[at]

    def spread(one: AnyArray) -> AnyArray:
        return np.repeat(one, block, at).take(np.arange(size), at)

    if zeros is not None:
        some = zeros[indices]
        some = unpacked(some, bits) if zeros.dtype == np.uint8 and is_packed else some
        some = some.astype(np.float64).take(np.arange(scales.shape[-1]), -1)
        values = values - spread(some)
    elif is_packed:
        values = values - float(1 << bits - 1)
    return values * spread(scales[indices])

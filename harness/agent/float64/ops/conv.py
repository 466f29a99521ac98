"""Convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.ops.window_views import WINDOW_BYTES, Windows
from harness.agent.float64.versioned_node import AnyArray, VersionedNode
from harness.agent.target_errors import UnsupportedError


def conv(node: VersionedNode, x: AnyArray, w: AnyArray, bias: AnyArray = None) -> AnyArray:
    """Conv."""
    windows = Windows(node, x.shape[2:], w.shape[2:])
    y = convolved(node, windows, x, w)
    return y if bias is None else y + bias.reshape(1, -1, *[1] * (x.ndim - 2))


def convolved(node: VersionedNode, windows: Windows, x: AnyArray, w: AnyArray) -> AnyArray:
    """Return the sums of products ``(N, M, out...)`` of float64 arrays, some windows at a time."""
    groups = node.get("group", 1)
    batch, filters, rank = x.shape[0], w.shape[0], x.ndim - 2
    count = int(np.prod(windows.out))
    node.budget.need(batch * filters * count * 8.0)
    y = np.empty((batch, groups, filters // groups, *windows.out))
    view = windows.view(windows.padded(x, 0.0))
    depth = w.shape[1]
    kernels = w.reshape(groups, filters // groups, -1)
    row = (
        depth * groups * kernels.shape[2] // max(depth, 1) * (count // max(windows.out[0], 1)) * 8
        if rank
        else 8
    )
    step = max(1, WINDOW_BYTES // max(row, 1))
    order = (0, *range(1 + rank, 1 + 2 * rank), *range(1, 1 + rank))
    for n in range(batch):
        for first in range(0, windows.out[0], step):
            part = view[n, :, first : first + step]
            columns = part.transpose(order).reshape(groups, kernels.shape[2], -1)
            shape = (groups, filters // groups, *part.shape[1 : 1 + rank])
            y[n, :, :, first : first + step] = (kernels @ columns).reshape(shape)
    return y.reshape(batch, filters, *windows.out)


def conv_integer(
    node: VersionedNode, x: AnyArray, w: AnyArray, x_zero: AnyArray = None, w_zero: AnyArray = None
) -> AnyArray:
    """ConvInteger: sums are exact in float64, and int32 at the end."""
    windows = Windows(node, x.shape[2:], w.shape[2:])
    left = x.astype(np.float64) - (0.0 if x_zero is None else x_zero.astype(np.float64))
    right = shifted(w, w_zero)
    return convolved(node, windows, left, right).astype(np.int64).astype(np.int32)


def shifted(w: AnyArray, zero: AnyArray) -> AnyArray:
    """Return quantized filters without their zero point, which may be one for each filter."""
    if zero is None:
        return w.astype(np.float64)
    zeros = zero.astype(np.float64)
    return w.astype(np.float64) - (zeros.reshape(-1, *[1] * (w.ndim - 1)) if zeros.ndim else zeros)


def conv_transpose(node: VersionedNode, x: AnyArray, w: AnyArray, bias: AnyArray = None) -> AnyArray:
    """ConvTranspose."""
    rank, groups = x.ndim - 2, node.get("group", 1)
    kernel = w.shape[2:]
    strides = node.get("strides") or [1] * rank
    dilations = node.get("dilations") or [1] * rank
    extra = node.get("output_padding") or [0] * rank
    full = [
        strides[i] * (x.shape[i + 2] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 for i in range(rank)
    ]
    begin, end = _transposed_pads(node, x.shape[2:], full, strides)
    filters = w.shape[1]
    node.budget.need(x.shape[0] * groups * filters * float(np.prod(full)) * 8)
    canvas = np.zeros((x.shape[0], groups, filters, *(max(one, 1) for one in full)))
    inputs = x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)
    weights = w.reshape(groups, w.shape[0] // groups, filters, *kernel)
    for at in np.ndindex(*kernel):
        products = weights[(slice(None), slice(None), slice(None), *at)].transpose(0, 2, 1) @ inputs
        where = tuple(
            slice(
                at[i] * dilations[i], at[i] * dilations[i] + strides[i] * (x.shape[i + 2] - 1) + 1, strides[i]
            )
            for i in range(rank)
        )
        canvas[(slice(None), slice(None), slice(None), *where)] += products.reshape(
            x.shape[0], groups, filters, *x.shape[2:]
        )
    y = canvas.reshape(x.shape[0], groups * filters, *canvas.shape[3:])
    y = _cut(y, begin, end)
    return y if bias is None else y + bias.reshape(1, -1, *[1] * rank)


def _cut(y: AnyArray, begin: list[int], end: list[int]) -> AnyArray:
    """Return values without padding; negative padding adds zeros."""
    grown = np.pad(y, [(0, 0), (0, 0), *((max(-b, 0), max(-e, 0)) for b, e in zip(begin, end))])
    cuts = [slice(max(b, 0), grown.shape[i + 2] - max(e, 0)) for i, (b, e) in enumerate(zip(begin, end))]
    return grown[(slice(None), slice(None), *cuts)]


def _transposed_pads(
    node: VersionedNode, spatial: tuple[int, ...], full: list[int], strides: list[int]
) -> tuple[list[int], list[int]]:
    rank, auto = len(spatial), node.get("auto_pad", "NOTSET")
    wanted = node.get("output_shape")
    if wanted is None and auto.startswith("SAME"):
        wanted = [size * stride for size, stride in zip(spatial, strides)]
    if wanted is None:
        pads = [0] * (2 * rank) if auto == "VALID" else node.get("pads") or [0] * (2 * rank)
        return list(pads[:rank]), list(pads[rank:])
    totals = [size - one for size, one in zip(full, wanted[-rank:])]
    if any(total < 0 for total in totals):
        raise UnsupportedError("no text defines where ConvTranspose grows beyond its products")
    halves = [total // 2 for total in totals]
    rests = [total - half for total, half in zip(totals, halves)]
    # The text: SAME_UPPER has the smaller half in front, all others the larger one.
    return (halves, rests) if auto == "SAME_UPPER" else (rests, halves)


def fused_conv(
    node: VersionedNode, x: AnyArray, w: AnyArray, bias: AnyArray = None, z: AnyArray = None
) -> AnyArray:
    """FusedConv of com.microsoft: followed by a sum with a further input, and an activation."""
    y = conv(node, x, w, bias)
    return activated(node, y if z is None else y + z)


def nhwc_fused_conv(
    node: VersionedNode, x: AnyArray, w: AnyArray, bias: AnyArray = None, z: AnyArray = None
) -> AnyArray:
    """NhwcFusedConv of com.microsoft: channels come last."""
    y = conv(node, np.moveaxis(x, -1, 1), w, bias)
    y = np.moveaxis(y, 1, -1)
    return activated(node, y if z is None else y + z)


def activated(node: VersionedNode, y: AnyArray) -> AnyArray:
    """Return values after the activation that a fused node names."""
    name, given = node.get("activation", ""), node.get("activation_params") or []
    first, second = [*given, None, None][:2]
    functions: dict[str, Any] = {
        "": lambda: y,
        "Relu": lambda: np.maximum(y, 0.0),
        "Tanh": lambda: np.tanh(y),
        "Sigmoid": lambda: 1.0 / (1.0 + np.exp(-y)),
        "LeakyRelu": lambda: np.where(y < 0, (0.01 if first is None else first) * y, y),
        "Clip": lambda: np.clip(y, first, second),
        "HardSigmoid": lambda: np.clip(first * y + second, 0.0, 1.0),
    }
    if name not in functions:
        raise UnsupportedError("nothing computes the activation %s of %s in float64" % (name, node.name))
    return functions[name]()

"""One level of a latent diffusion UNet: Rombach et al., 2021."""

import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, FLOAT, Architecture, GraphBuilder, SymbolicDim
from harness.annex.made.zoo.inputs import activations
from harness.annex.made.zoo.layers import (
    attention,
    conv,
    gelu,
    layer_norm,
    linear,
    merge_heads,
    silu,
    split_heads,
)
from harness.core.values.value import Array

_LATENTS = 4
_GROUPS = 8
_TEXT = SymbolicDim("text_sequence", 8)

_PER_CHANNEL = 21
"""Opset from which on GroupNormalization scales channels; exporters never wrote the version of opset 18."""


def build(g: GraphBuilder, *, side: int, width: int, heads: int, context: int) -> None:
    """Add the way down, a block that attends to the text, and the way up with a skip connection."""
    x = g.input("sample", (BATCH_DIM, _LATENTS, side, side), activations)
    step = g.input("timestep", (BATCH_DIM,), _steps)
    text = g.input("encoder_hidden_states", (BATCH_DIM, _TEXT, context), activations)
    with g.scope("time"):
        time = _embed(g, step, width)
    with g.scope("in"):
        skip = conv(g, x, (_LATENTS, width), 3, gain=1.0)
    with g.scope("down"):
        x = _residual(g, skip, time, (width, width), width, side)
        x = conv(g, x, (width, width), 3, stride=2, gain=1.0)
    with g.scope("middle"):
        x = _residual(g, x, time, (width, width), width, side // 2)
        x = _transformer(g, x, text, (width, heads, context), side // 2)
    with g.scope("up"):
        scales = g.constant(np.array([1, 1, 2, 2], np.float32))
        kind = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        x = g.op("Resize", x, "", scales, mode="nearest", **kind)
        x = g.op("Concat", x, skip, axis=1)
        x = _residual(g, x, time, (2 * width, width), width, side)
    with g.scope("out"):
        x = conv(g, silu(g, _group_norm(g, x, width, side)), (width, _LATENTS), 3)
    g.output("noise", x, "float32", (BATCH_DIM, _LATENTS, side, side))


def _steps(random: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw steps of a training of 1,000 steps, int64."""
    return random.integers(0, 1000, shape)


def _embed(g: GraphBuilder, step: str, width: int) -> str:
    """Add sines and cosines of the step at many frequencies, and two layers."""
    half = width // 2
    rates = g.weight("rates", 10000.0 ** (-np.arange(half) / half)[None])
    angles = g.op("Mul", g.op("Unsqueeze", g.op("Cast", step, to=FLOAT), g.ints(1)), rates)
    x = g.op("Concat", g.op("Cos", angles), g.op("Sin", angles), axis=1)
    with g.scope("linear1"):
        x = silu(g, linear(g, x, (width, width), gain=2.0))
    with g.scope("linear2"):
        return silu(g, linear(g, x, (width, width), gain=2.0))


def _group_norm(g: GraphBuilder, x: str, channels: int, side: int) -> str:
    scale, shift = g.normal("scale", (channels,), 0.1, mean=1.0), g.normal("shift", (channels,), 0.1)
    if g.opset >= _PER_CHANNEL:
        return g.op("GroupNormalization", x, scale, shift, num_groups=_GROUPS, epsilon=1e-5)
    # As PyTorch exports it: groups in place of channels, then a scale and a shift for each channel.
    flat = g.op("Reshape", x, g.ints(0, _GROUPS, channels // _GROUPS * side * side))
    ones, zeros = g.constant(np.ones(_GROUPS, np.float32)), g.constant(np.zeros(_GROUPS, np.float32))
    normal = g.op("InstanceNormalization", flat, ones, zeros, epsilon=1e-5)
    normal = g.op("Reshape", normal, g.ints(0, channels, side, side))
    scaled = g.op("Mul", normal, g.op("Unsqueeze", scale, g.ints(1, 2)))
    return g.op("Add", scaled, g.op("Unsqueeze", shift, g.ints(1, 2)))


def _residual(
    g: GraphBuilder, x: str, time: str, channels: tuple[int, int], time_width: int, side: int
) -> str:
    before, after = channels
    with g.scope("conv1"):
        y = conv(g, silu(g, _group_norm(g, x, before, side)), channels, 3)
    with g.scope("time"):
        y = g.op("Add", y, g.op("Unsqueeze", linear(g, time, (time_width, after)), g.ints(2, 3)))
    with g.scope("conv2"):
        y = conv(g, silu(g, _group_norm(g, y, after, side)), (after, after), 3, gain=1.0)
    if before != after:
        with g.scope("shortcut"):
            x = conv(g, x, channels, 1, gain=1.0)
    return g.op("Add", x, y)


def _transformer(g: GraphBuilder, x: str, text: str, sizes: tuple[int, int, int], side: int) -> str:
    """Add attention of the picture to itself and to the text, and a gated feed-forward layer."""
    width, heads, context = sizes
    with g.scope("tokens"):
        y = _group_norm(g, x, width, side)
        y = g.op("Transpose", g.op("Reshape", y, g.ints(0, width, side * side)), perm=[0, 2, 1])
    with g.scope("self"):
        normal = layer_norm(g, y, width)
        y = g.op("Add", y, _attend(g, normal, normal, (width, width), heads))
    with g.scope("cross"):
        y = g.op("Add", y, _attend(g, layer_norm(g, y, width), text, (width, context), heads))
    with g.scope("mlp"):
        with g.scope("gated"):
            both = linear(g, layer_norm(g, y, width), (width, 8 * width))
            value, gate = g.ops(2, "Split", both, g.ints(4 * width, 4 * width), axis=-1)
        with g.scope("out"):
            y = g.op("Add", y, linear(g, g.op("Mul", value, gelu(g, gate)), (4 * width, width)))
    y = g.op("Reshape", g.op("Transpose", y, perm=[0, 2, 1]), g.ints(0, width, side, side))
    return g.op("Add", y, x)


def _attend(g: GraphBuilder, x: str, to: str, widths: tuple[int, int], heads: int) -> str:
    width, context = widths
    parts = []
    for name, source, before in (("query", x, width), ("key", to, context), ("value", to, context)):
        with g.scope(name):
            part = linear(g, source, (before, width), bias=False)
            parts.append(split_heads(g, part, heads, width // heads))
    with g.scope("output"):
        return linear(g, merge_heads(g, attention(g, *parts, size=width // heads), width), (width, width))


DIFFUSION = Architecture(
    name="diffusion",
    what="block of a diffusion UNet: group normalization, time embedding, self- and cross-attention, Resize",
    build=build,
    sizes={
        "small": {"side": 8, "width": 32, "heads": 2, "context": 24},
        "base": {"side": 16, "width": 64, "heads": 4, "context": 128},
    },
)

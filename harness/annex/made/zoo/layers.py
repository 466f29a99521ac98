"""Layers of several architectures, in the form that exporters write at the opset of the graph.

Weights preserve the scale of activations: He's standard deviation before a rectifier, Glorot's elsewhere.
"""

from collections.abc import Callable, Sequence

import numpy as np

from harness.annex.made.zoo.graph_builder import GraphBuilder

LOWEST = float(np.finfo(np.float32).min)
"""The value that exporters add to the scores of hidden positions: the lowest float32, not infinity."""


def conv(
    g: GraphBuilder,
    x: str,
    channels: tuple[int, int],
    kernel: int,
    *,
    stride: int = 1,
    bias: bool = True,
    gain: float = 2.0,
) -> str:
    """Add a convolution ``(N, channels[0], H, W)`` to ``(N, channels[1], H / stride, W / stride)``.

    The side of the kernel is odd. ``gain`` is the variance of the output over that of the input; 2
    compensates for a rectifier.
    """
    before, after = channels
    fan_in = before * kernel * kernel
    weights = [g.normal("weight", (after, before, kernel, kernel), (gain / fan_in) ** 0.5)]
    if bias:
        weights.append(g.normal("bias", (after,), 0.05))
    return _conv(g, x, weights, kernel, stride=stride)


def depthwise_conv(g: GraphBuilder, x: str, channels: int, kernel: int, *, stride: int = 1) -> str:
    """Add a convolution of each channel by itself, without a bias; its gain of 2 is for a rectifier."""
    weight = g.normal("weight", (channels, 1, kernel, kernel), (2.0 / kernel**2) ** 0.5)
    return _conv(g, x, [weight], kernel, stride=stride, group=channels)


def _conv(
    g: GraphBuilder, x: str, weights: Sequence[str], kernel: int, *, stride: int, group: int = 1
) -> str:
    """Add a convolution that keeps the size of its input, except for the stride."""
    kernel_shape, strides, pads = [kernel] * 2, [stride] * 2, [kernel // 2] * 4
    return g.op("Conv", x, *weights, kernel_shape=kernel_shape, strides=strides, pads=pads, group=group)


def batch_norm(g: GraphBuilder, x: str, channels: int, *, scale: float = 1.0) -> str:
    """Add batch normalization with statistics as after training; ``scale`` shrinks a residual branch."""
    return g.op(
        "BatchNormalization",
        x,
        g.normal("scale", (channels,), 0.1 * scale, mean=scale),
        g.normal("shift", (channels,), 0.1),
        g.normal("mean", (channels,), 0.1),
        g.weight("variance", g.random("variance").uniform(0.6, 1.4, channels)),
        epsilon=1e-5,
    )


def linear(
    g: GraphBuilder, x: str, features: tuple[int, int], *, bias: bool = True, gain: float = 1.0
) -> str:
    """Add ``x @ W + b`` over the last axis, as MatMul and Add."""
    product = g.op("MatMul", x, g.normal("weight", features, (gain / features[0]) ** 0.5))
    return g.op("Add", product, g.normal("bias", features[1:], 0.05)) if bias else product


def layer_norm(g: GraphBuilder, x: str, width: int, epsilon: float = 1e-5) -> str:
    """Add layer normalization over the last axis."""
    scale, shift = g.normal("scale", (width,), 0.1, mean=1.0), g.normal("shift", (width,), 0.1)
    return g.op("LayerNormalization", x, scale, shift, axis=-1, epsilon=epsilon)


def gelu(g: GraphBuilder, x: str) -> str:
    """Add Gelu with the error function: one operator from opset 20 on, five before."""
    if g.opset >= 20:  # noqa: PLR2004 - the opset of the operator
        return g.op("Gelu", x)
    erf = g.op("Erf", g.op("Div", x, g.scalar(2**0.5)))
    return g.op("Mul", g.op("Mul", x, g.op("Add", erf, g.scalar(1))), g.scalar(0.5))


def gelu_tanh(g: GraphBuilder, x: str) -> str:
    """Add Gelu with the hyperbolic tangent: one operator from opset 20 on, eight before."""
    if g.opset >= 20:  # noqa: PLR2004 - the opset of the operator
        return g.op("Gelu", x, approximate="tanh")
    cubic = g.op("Mul", g.op("Pow", x, g.scalar(3)), g.scalar(0.044715))
    bent = g.op("Tanh", g.op("Mul", g.op("Add", x, cubic), g.scalar((2 / np.pi) ** 0.5)))
    return g.op("Mul", g.op("Mul", x, g.scalar(0.5)), g.op("Add", bent, g.scalar(1)))


def silu(g: GraphBuilder, x: str) -> str:
    """Add ``x * sigmoid(x)``, also called Swish."""
    return g.op("Mul", x, g.op("Sigmoid", x))


def split_heads(g: GraphBuilder, x: str, heads: int, size: int) -> str:
    """Reshape ``(N, sequence, heads * size)`` to ``(N, heads, sequence, size)``."""
    return g.op("Transpose", g.op("Reshape", x, g.ints(0, 0, heads, size)), perm=[0, 2, 1, 3])


def merge_heads(g: GraphBuilder, x: str, width: int) -> str:
    """Reshape ``(N, heads, sequence, size)`` to ``(N, sequence, width)``."""
    return g.op("Reshape", g.op("Transpose", x, perm=[0, 2, 1, 3]), g.ints(0, 0, width))


def attention(g: GraphBuilder, query: str, key: str, value: str, *, size: int, mask: str = "") -> str:
    """Add scaled dot products over ``(N, heads, sequence, size)``; ``mask`` is added to the scores."""
    scores = g.op("MatMul", query, g.op("Transpose", key, perm=[0, 1, 3, 2]))
    scores = g.op("Div", scores, g.scalar(size**0.5))
    if mask:
        scores = g.op("Add", scores, mask)
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), value)


def self_attention(g: GraphBuilder, x: str, width: int, heads: int, mask: str = "") -> str:
    """Add projections to query, key and value, attention, and the projection of its result."""
    parts = []
    for name in ("query", "key", "value"):
        with g.scope(name):
            parts.append(split_heads(g, linear(g, x, (width, width)), heads, width // heads))
    context = merge_heads(g, attention(g, *parts, size=width // heads, mask=mask), width)
    with g.scope("output"):
        return linear(g, context, (width, width))


def mlp(
    g: GraphBuilder,
    x: str,
    width: int,
    activation: Callable[[GraphBuilder, str], str] = gelu,
    gain: float = 1.0,
) -> str:
    """Add feed-forward layers of four times the width; ``gain`` is that of the second."""
    with g.scope("up"):
        x = activation(g, linear(g, x, (width, 4 * width), gain=2.0))
    with g.scope("down"):
        return linear(g, x, (4 * width, width), gain=gain)


def reduce(g: GraphBuilder, op_type: str, x: str, axes: Sequence[int], *, keepdims: int = 1) -> str:
    """Add a reduction such as ReduceMean; its axes are an attribute before opset 18, later an input."""
    if g.opset >= 18:  # noqa: PLR2004 - the opset of the change
        return g.op(op_type, x, g.ints(*axes), keepdims=keepdims)
    return g.op(op_type, x, axes=list(axes), keepdims=keepdims)


def length(g: GraphBuilder, x: str, axis: int) -> str:
    """Add the size of one axis, as an int64 scalar."""
    return g.op("Gather", g.op("Shape", x), g.constant(np.array(axis)), axis=0)

"""Productions of quantized arithmetic: scales are powers of two, so nothing is near a rounding boundary.

On exact values, quotients by such a scale are exact, and ties round to even by ONNX's text.
"""

import numpy as np

from harness.annex.made.grown.growth import Growth

_BYTES = ("int8", "uint8")


def quantized(g: Growth) -> None:
    """Add QuantizeLinear of exact values with a scale that saturates some, and DequantizeLinear behind it."""
    x = g.pick(lambda one: one.exact and one.dtype == "float32" and one.size > 0)
    scale = g.weight(np.array(2.0 ** g.random.between(-8, -2 - 1), np.float32))
    kind = g.random.pick(_BYTES)
    zero = g.weight(np.array(g.random.below(100), kind))
    q = g.op("QuantizeLinear", x, scale, zero, most=255, exact=True)
    if g.chance(0.7):
        g.op("DequantizeLinear", q, scale, zero, most=64, exact=True)


def quantized_by_channel(g: Growth) -> None:
    """Add QuantizeLinear and DequantizeLinear with a scale for each place on an axis."""
    x = g.pick(lambda one: one.exact and one.dtype == "float32" and one.size > 0 and one.rank > 0)
    axis = g.random.below(x.rank)
    size = x.shape[axis]
    scales = np.array([2.0 ** g.random.between(-7, -2 - 1) for _ in range(size)], np.float32)
    scale, zero = g.weight(scales), g.drawn("int8", (size,))
    q = g.op("QuantizeLinear", x, scale, zero, axis=axis, most=255, exact=True)
    g.op("DequantizeLinear", q, scale, zero, axis=axis, most=64, exact=True)


def whole_product(g: Growth) -> None:
    """Add MatMulInteger, with and without zero points."""
    x = g.pick(lambda one: one.dtype in _BYTES and one.rank > 1)
    w = g.drawn(g.random.pick(_BYTES), (x.shape[-1], 3))
    zero = g.weight(np.array(g.random.below(100), x.dtype)) if g.chance(0.5) else None
    # The bound of FAR is about floats; sums of products of bytes are far from the limits of int32.
    g.op("MatMulInteger", x, w, zero, most=1, exact=True)


def quantized_product(g: Growth) -> None:
    """Add QLinearMatMul, whose result saturates."""
    x = g.pick(lambda one: one.dtype == "uint8" and one.rank > 1)
    w = g.drawn("int8", (x.shape[-1], 3))
    points = ((128, np.uint8), (0, np.int8), (100, np.uint8))
    zeros = [g.weight(np.array(point, kind)) for point, kind in points]
    scales = [g.weight(np.array(2.0**power, np.float32)) for power in (-6, -6, g.random.pick([-6, -3, 0]))]
    pairs = [one for pair in zip(scales, zeros, strict=True) for one in pair]
    g.op("QLinearMatMul", x, *pairs[:2], w, *pairs[2:], most=255, exact=True)


def quantized_convolution(g: Growth) -> None:
    """Add QLinearConv or ConvInteger, with odd numbers of channels and a bias."""
    x = g.pick(lambda one: one.dtype == "uint8" and one.rank == 4 and one.size > 0)  # noqa: PLR2004 - images
    filters = g.random.between(1, 4)
    w = g.drawn("int8", (filters, x.shape[1], *(min(2, size) for size in x.shape[2:])))
    zero = g.weight(np.array(128, np.uint8))
    if g.chance(0.4):
        g.op("ConvInteger", x, w, zero, most=1, exact=True)
        return
    unit = g.weight(np.array(2.0**-6, np.float32))
    none = g.weight(np.array(0, np.int8))
    scale = g.weight(np.array(2.0 ** g.random.pick([-6, -3]), np.float32))
    point = g.weight(np.array(90, np.uint8))
    bias = g.drawn("int32", (filters,)) if g.chance(0.6) else None
    g.op("QLinearConv", x, unit, zero, w, unit, none, scale, point, bias, most=255, exact=True)


QUANTIZED = (
    quantized, quantized, quantized_by_channel, whole_product, quantized_product, quantized_convolution,
)  # fmt: skip

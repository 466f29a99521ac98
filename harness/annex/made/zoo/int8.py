"""A CNN quantized to eight bits, in the QDQ form of onnxruntime's static quantization."""

import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import images
from harness.core.values.value import Array

_POSITIVE = (6 / 255, 0)
"""Scale and zero point after a rectifier: from 0 to 6."""

_SIGNED = (8 / 255, 128)
"""Scale and zero point elsewhere: from -4 to 4."""


def build(g: GraphBuilder, *, image: int, width: int, blocks: int) -> None:
    """Add residual blocks; activations are uint8, weights int8 for each channel, biases int32."""
    x = _quantize(g, g.input("image", (BATCH_DIM, 3, image, image), images), _SIGNED)
    with g.scope("stem"):
        x = _quantize(g, g.op("Relu", _conv(g, x, (3, width), _SIGNED, stride=2, gain=2.0)), _POSITIVE)
    for block in range(blocks):
        with g.scope(f"block{block}/conv1"):
            y = _quantize(g, g.op("Relu", _conv(g, x, (width, width), _POSITIVE, gain=1.0)), _POSITIVE)
        with g.scope(f"block{block}/conv2"):
            y = _quantize(g, _conv(g, y, (width, width), _POSITIVE, gain=0.5), _SIGNED)
        with g.scope(f"block{block}"):
            x = _quantize(g, g.op("Relu", g.op("Add", x, y)), _POSITIVE)
    with g.scope("head"):
        x = _quantize(g, g.op("GlobalAveragePool", x), _POSITIVE)
        x = _quantize(g, g.op("Flatten", x, axis=1), _POSITIVE)
        weight, bias = _weights(g, (10, width), _POSITIVE, (4 / width) ** 0.5)
        logits = _quantize(g, g.op("Gemm", x, weight, bias, transB=1), _SIGNED)
    g.output("logits", logits, "float32", (BATCH_DIM, 10))


def _quantize(g: GraphBuilder, x: str, levels: tuple[float, int]) -> str:
    """Round to levels, and back; quantizing providers fuse this with the operators on both sides."""
    scale, zero = g.scalar(levels[0]), g.constant(np.array(levels[1], np.uint8))
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, scale, zero), scale, zero)


def _conv(
    g: GraphBuilder,
    x: str,
    channels: tuple[int, int],
    levels: tuple[float, int],
    *,
    stride: int = 1,
    gain: float,
) -> str:
    before, after = channels
    weight, bias = _weights(g, (after, before, 3, 3), levels, (gain / (9 * before)) ** 0.5)
    return g.op("Conv", x, weight, bias, kernel_shape=[3, 3], strides=[stride, stride], pads=[1, 1, 1, 1])


def _weights(
    g: GraphBuilder, shape: tuple[int, ...], levels: tuple[float, int], std: float
) -> tuple[str, str]:
    """Add a weight and a bias, dequantized; the bias has the product of the scales of input and weight."""
    channels = shape[0]
    random = g.random("weight")
    values = std * random.standard_normal(shape)
    peaks = np.abs(values).reshape(channels, -1).max(axis=1)
    scales = (peaks / 127).astype(np.float32)
    steps = np.rint(values / scales.reshape(channels, *[1] * (len(shape) - 1)))
    weight = _dequantized(g, "weight", steps.clip(-127, 127).astype(np.int8), scales)
    scales = scales * np.float32(levels[0])
    steps = np.rint(0.1 * random.standard_normal(channels) / scales)
    return weight, _dequantized(g, "bias", steps.astype(np.int32), scales)


def _dequantized(g: GraphBuilder, name: str, steps: Array, scales: Array) -> str:
    """Add a weight of integers with a scale for each channel."""
    zeros = np.zeros(len(scales), steps.dtype)
    parts = ((name, steps), (f"{name}_scale", scales), (f"{name}_zero", zeros))
    return g.op("DequantizeLinear", *(g.weight(*part) for part in parts), axis=0)


INT8 = Architecture(
    name="int8-cnn",
    what="quantized image classifier: QuantizeLinear and DequantizeLinear around Conv, Add and Gemm",
    build=build,
    sizes={"small": {"image": 32, "width": 16, "blocks": 2}, "base": {"image": 64, "width": 64, "blocks": 4}},
)

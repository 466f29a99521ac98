"""U-Net: Ronneberger et al., 2015, with both ways of upsampling that exporters write."""

import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import photographs
from harness.annex.made.zoo.layers import batch_norm, conv

_CLASSES = 3


def build(g: GraphBuilder, *, image: int, width: int, levels: int) -> None:
    """Add levels that halve the image, and the way back: ConvTranspose below, Resize at the top."""
    x = g.input("image", (BATCH_DIM, 3, image, image), photographs)
    channels, skips = 3, []
    for level in range(levels):
        with g.scope(f"down{level}"):
            x = _twice(g, x, (channels, width << level))
            channels = width << level
            skips.append(x)
            x = g.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    with g.scope("bottom"):
        x = _twice(g, x, (channels, 2 * channels))
        channels *= 2
    for level in reversed(range(levels)):
        with g.scope(f"up{level}"):
            x = _enlarge(g, x, channels, by_resize=level == 0)
            x = g.op("Concat", skips[level], x, axis=1)
            x = _twice(g, x, (channels, channels // 2))
            channels //= 2
    with g.scope("head"):
        x = conv(g, x, (channels, _CLASSES), 1, gain=1.0)
    g.output("mask", g.op("Sigmoid", x), "float32", (BATCH_DIM, _CLASSES, image, image))


def _twice(g: GraphBuilder, x: str, channels: tuple[int, int]) -> str:
    before, after = channels
    with g.scope("conv1"):
        x = g.op("Relu", batch_norm(g, conv(g, x, (before, after), 3, bias=False), after))
    with g.scope("conv2"):
        return g.op("Relu", batch_norm(g, conv(g, x, (after, after), 3, bias=False), after))


def _enlarge(g: GraphBuilder, x: str, channels: int, *, by_resize: bool) -> str:
    if by_resize:
        scales = g.constant(np.array([1, 1, 2, 2], np.float32))
        x = g.op("Resize", x, "", scales, mode="linear", coordinate_transformation_mode="half_pixel")
        with g.scope("shrink"):
            return conv(g, x, (channels, channels // 2), 1, gain=1.0)
    weight = g.normal("weight", (channels, channels // 2, 2, 2), (1 / channels) ** 0.5)
    bias = g.normal("bias", (channels // 2,), 0.05)
    return g.op("ConvTranspose", x, weight, bias, kernel_shape=[2, 2], strides=[2, 2])


UNET = Architecture(
    name="unet",
    what="segmentation: skip connections with Concat, ConvTranspose, linear Resize, a mask for each pixel",
    build=build,
    sizes={"small": {"image": 32, "width": 8, "levels": 2}, "base": {"image": 64, "width": 16, "levels": 3}},
)

"""ResNet: He et al., Deep Residual Learning for Image Recognition, 2015."""

from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import images
from harness.annex.made.zoo.layers import batch_norm, conv


def build(g: GraphBuilder, *, image: int, width: int, blocks: int) -> None:
    """Add a stem, stages of basic blocks that halve the image and double the width, pooling and Gemm."""
    x = g.input("image", (BATCH_DIM, 3, image, image), images)
    with g.scope("stem"):
        x = g.op("Relu", batch_norm(g, conv(g, x, (3, width), 3, bias=False), width))
    channels = width
    for stage in range(4 if blocks > 1 else 3):
        after = width << stage
        for block in range(blocks):
            with g.scope(f"stage{stage}/block{block}"):
                x = _block(g, x, (channels, after), stride=2 if stage and not block else 1)
            channels = after
    x = g.op("Flatten", g.op("GlobalAveragePool", x), axis=1)
    weight = g.normal("classifier/weight", (100, channels), (1 / channels) ** 0.5)
    logits = g.op("Gemm", x, weight, g.normal("classifier/bias", (100,), 0.05), transB=1)
    g.output("logits", logits, "float32", (BATCH_DIM, 100))


def _block(g: GraphBuilder, x: str, channels: tuple[int, int], stride: int) -> str:
    after = channels[1]
    with g.scope("conv1"):
        y = g.op("Relu", batch_norm(g, conv(g, x, channels, 3, stride=stride, bias=False), after))
    with g.scope("conv2"):
        y = batch_norm(g, conv(g, y, (after, after), 3, bias=False, gain=1.0), after, scale=0.5)
    if stride > 1 or channels[0] != after:
        with g.scope("shortcut"):
            x = batch_norm(g, conv(g, x, channels, 1, stride=stride, bias=False, gain=1.0), after)
    return g.op("Relu", g.op("Add", y, x))


RESNET = Architecture(
    name="resnet",
    what="residual image classifier: Conv + BatchNormalization + Relu, Add, GlobalAveragePool, Gemm",
    build=build,
    sizes={"small": {"image": 32, "width": 16, "blocks": 1}, "base": {"image": 32, "width": 32, "blocks": 2}},
)

"""A classifier like EfficientNet: Tan and Le, 2019."""

from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import images
from harness.annex.made.zoo.layers import batch_norm, conv, depthwise_conv, reduce, silu

_Stage = tuple[int, int, int, int, int]
"""Expansion, channels, kernel, stride, blocks."""


def build(g: GraphBuilder, *, image: int, stages: tuple[_Stage, ...]) -> None:
    """Add a stem, stages of MBConv blocks, and a head that pools by a mean, as from TensorFlow."""
    x = g.input("image", (BATCH_DIM, 3, image, image), images)
    channels = 16
    with g.scope("stem"):
        x = silu(g, batch_norm(g, conv(g, x, (3, channels), 3, stride=2, bias=False), channels))
    for stage, (expansion, after, kernel, stride, blocks) in enumerate(stages):
        for block in range(blocks):
            with g.scope(f"stage{stage}/block{block}"):
                x = _mbconv(g, x, (channels, after), expansion, kernel, 1 if block else stride)
            channels = after
    with g.scope("head"):
        x = silu(g, batch_norm(g, conv(g, x, (channels, 4 * channels), 1, bias=False), 4 * channels))
        x = g.op("Squeeze", reduce(g, "ReduceMean", x, (2, 3)), g.ints(2, 3))
    with g.scope("classifier"):
        weight = g.normal("weight", (4 * channels, 100), (4 / channels) ** 0.5)
        logits = g.op("Gemm", x, weight, g.normal("bias", (100,), 0.05))
    g.output("probabilities", g.op("Softmax", logits, axis=1), "float32", (BATCH_DIM, 100))


def _mbconv(
    g: GraphBuilder, x: str, channels: tuple[int, int], expansion: int, kernel: int, stride: int
) -> str:
    before, after = channels
    inner = before * expansion
    y = x
    if expansion > 1:
        with g.scope("expand"):
            y = silu(g, batch_norm(g, conv(g, y, (before, inner), 1, bias=False), inner))
    with g.scope("depthwise"):
        y = depthwise_conv(g, y, inner, kernel, stride=stride)
        y = silu(g, batch_norm(g, y, inner))
    with g.scope("excitation"):
        pooled = reduce(g, "ReduceMean", y, (2, 3))
        with g.scope("reduce"):
            gate = silu(g, conv(g, pooled, (inner, max(4, before // 4)), 1))
        with g.scope("gate"):
            gate = g.op("Sigmoid", conv(g, gate, (max(4, before // 4), inner), 1))
        y = g.op("Mul", gate, y)
    with g.scope("project"):
        y = batch_norm(g, conv(g, y, (inner, after), 1, bias=False, gain=2.0), after)
    return g.op("Add", y, x) if stride == 1 and before == after else y


EFFICIENTNET = Architecture(
    name="efficientnet",
    what="image classifier: MBConv with Sigmoid * x and squeeze and excitation, ReduceMean pools, Softmax",
    build=build,
    sizes={
        "small": {"image": 32, "stages": ((1, 16, 3, 1, 1), (4, 24, 3, 2, 2))},
        "base": {
            "image": 64,
            "stages": ((1, 16, 3, 1, 1), (6, 24, 3, 2, 2), (6, 40, 5, 2, 2), (6, 80, 3, 2, 3)),
        },
    },
)

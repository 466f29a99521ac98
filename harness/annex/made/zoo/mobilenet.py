"""MobileNetV3: Howard et al., Searching for MobileNetV3, 2019."""

from typing import NamedTuple

from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import images
from harness.annex.made.zoo.layers import batch_norm, conv, depthwise_conv


class _Row(NamedTuple):
    """One bottleneck of table 2 of the paper."""

    expanded: int
    after: int
    kernel: int
    stride: int
    squeeze: bool
    activation: str


def build(g: GraphBuilder, *, image: int, rows: tuple[_Row, ...]) -> None:
    """Add a stem, inverted bottlenecks and a classifier of two 1 x 1 convolutions."""
    x = g.input("image", (BATCH_DIM, 3, image, image), images)
    channels = 16
    with g.scope("stem"):
        x = g.op("HardSwish", batch_norm(g, conv(g, x, (3, channels), 3, stride=2, bias=False), channels))
    for index, row in enumerate(rows):
        with g.scope(f"block{index}"):
            x = _bottleneck(g, x, channels, row)
        channels = row.after
    with g.scope("head"):
        wide = 4 * channels
        x = g.op("HardSwish", batch_norm(g, conv(g, x, (channels, wide), 1, bias=False), wide))
        x = g.op("GlobalAveragePool", x)
    with g.scope("classifier"):
        x = conv(g, x, (wide, 100), 1)
    g.output("logits", g.op("Flatten", x), "float32", (BATCH_DIM, 100))


def _bottleneck(g: GraphBuilder, x: str, before: int, row: _Row) -> str:
    inner = row.expanded
    with g.scope("expand"):
        y = g.op(row.activation, batch_norm(g, conv(g, x, (before, inner), 1, bias=False), inner))
    with g.scope("depthwise"):
        y = depthwise_conv(g, y, inner, row.kernel, stride=row.stride)
        y = g.op(row.activation, batch_norm(g, y, inner))
    if row.squeeze:
        with g.scope("squeeze"):
            y = g.op("Mul", y, _gate(g, y, inner))
    with g.scope("project"):
        y = batch_norm(g, conv(g, y, (inner, row.after), 1, bias=False), row.after)
    return g.op("Add", x, y) if row.stride == 1 and before == row.after else y


def _gate(g: GraphBuilder, x: str, channels: int) -> str:
    x = g.op("GlobalAveragePool", x)
    with g.scope("reduce"):
        x = g.op("Relu", conv(g, x, (channels, channels // 4), 1))
    with g.scope("gate"):
        return g.op("HardSigmoid", conv(g, x, (channels // 4, channels), 1), alpha=1 / 6, beta=0.5)


_SMALL = (
    _Row(16, 16, 3, 1, squeeze=True, activation="Relu"),
    _Row(48, 24, 3, 2, squeeze=False, activation="Relu"),
    _Row(96, 24, 5, 1, squeeze=True, activation="HardSwish"),
)
_BASE = (
    *_SMALL,
    _Row(96, 40, 5, 2, squeeze=True, activation="HardSwish"),
    _Row(240, 40, 5, 1, squeeze=True, activation="HardSwish"),
    _Row(240, 40, 5, 1, squeeze=True, activation="HardSwish"),
    _Row(120, 48, 5, 1, squeeze=True, activation="HardSwish"),
    _Row(288, 96, 5, 2, squeeze=True, activation="HardSwish"),
    _Row(576, 96, 5, 1, squeeze=True, activation="HardSwish"),
)

MOBILENET = Architecture(
    name="mobilenet",
    what="image classifier for phones: depthwise Conv, HardSwish, squeeze and excitation with HardSigmoid",
    build=build,
    sizes={"small": {"image": 32, "rows": _SMALL}, "base": {"image": 64, "rows": _BASE}},
)

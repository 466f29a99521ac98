"""A vision transformer: Dosovitskiy et al., An Image is Worth 16x16 Words, 2020."""

import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import images
from harness.annex.made.zoo.layers import gelu, layer_norm, linear, self_attention

_PATCH = 8


def build(g: GraphBuilder, *, image: int, width: int, heads: int, layers: int) -> None:
    """Add patches by a convolution, a class token, and layers that normalize before the branch."""
    x = g.input("pixel_values", (BATCH_DIM, 3, image, image), images)
    patches = (image // _PATCH) ** 2
    with g.scope("embeddings"):
        x = _embed(g, x, width, patches)
    for layer in range(layers):
        with g.scope(f"layer{layer}/attention"):
            x = g.op("Add", x, self_attention(g, layer_norm(g, x, width), width, heads))
        with g.scope(f"layer{layer}/mlp"):
            y = layer_norm(g, x, width)
            with g.scope("up"):
                y = gelu(g, linear(g, y, (width, 4 * width), gain=2.0))
            with g.scope("down"):
                x = g.op("Add", x, linear(g, y, (4 * width, width)))
    with g.scope("head"):
        x = layer_norm(g, x, width)
        token = g.op("Gather", x, g.constant(np.array(0, np.int64)), axis=1)
        weight = g.normal("weight", (100, width), (1 / width) ** 0.5)
        logits = g.op("Gemm", token, weight, g.normal("bias", (100,), 0.05), transB=1)
    g.output("logits", logits, "float32", (BATCH_DIM, 100))


def _embed(g: GraphBuilder, x: str, width: int, patches: int) -> str:
    weight = g.normal("weight", (width, 3, _PATCH, _PATCH), (1 / (3 * _PATCH * _PATCH)) ** 0.5)
    x = g.op("Conv", x, weight, kernel_shape=[_PATCH, _PATCH], strides=[_PATCH, _PATCH])
    x = g.op("Transpose", g.op("Reshape", x, g.ints(0, width, patches)), perm=[0, 2, 1])
    batch = g.op("Slice", g.op("Shape", x), g.ints(0), g.ints(1))
    shape = g.op("Concat", batch, g.ints(1, width), axis=0)
    token = g.op("Expand", g.normal("class", (1, 1, width), 1.0), shape)
    x = g.op("Concat", token, x, axis=1)
    return g.op("Add", x, g.normal("position", (1, patches + 1, width), 0.3))


VIT = Architecture(
    name="vit",
    what="vision transformer: patches by Conv, a class token by Expand, attention, Gelu, LayerNormalization",
    build=build,
    sizes={
        "small": {"image": 32, "width": 64, "heads": 4, "layers": 2},
        "base": {"image": 64, "width": 192, "heads": 6, "layers": 6},
    },
)

"""A feed-forward block with weights of four bits in blocks, as in shipped language models."""

import ml_dtypes
import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder, SymbolicDim
from harness.annex.made.zoo.inputs import activations
from harness.annex.made.zoo.layers import layer_norm, silu

_SEQUENCE = SymbolicDim("sequence", 8)

_BLOCK = 32
"""Neighbouring weights along the sum that share a scale."""


def build(g: GraphBuilder, *, width: int, layers: int) -> None:
    """Add gated feed-forward layers, each beside a skip connection."""
    x = g.input("hidden_states", (BATCH_DIM, _SEQUENCE, width), activations)
    inner = 2 * width
    for layer in range(layers):
        with g.scope(f"layer{layer}"):
            y = layer_norm(g, x, width)
            gate = silu(g, _matmul(g, "gate", y, (width, inner), gain=2.0))
            y = g.op("Mul", gate, _matmul(g, "up", y, (width, inner)))
            x = g.op("Add", x, _matmul(g, "down", y, (inner, width)))
    g.output("last_hidden_state", x, "float32", (BATCH_DIM, _SEQUENCE, width))


def _matmul(g: GraphBuilder, name: str, x: str, features: tuple[int, int], gain: float = 1.0) -> str:
    """Add a product with a weight of int4, dequantized block by block."""
    with g.scope(name):
        values = (gain / features[0]) ** 0.5 * g.random("weight").standard_normal(features)
        blocks = values.reshape(features[0] // _BLOCK, _BLOCK, features[1])
        scales = (np.abs(blocks).max(axis=1) / 7).astype(np.float32)
        steps = np.rint(blocks / scales[:, None]).clip(-7, 7).reshape(features)
        parts = (g.weight("weight", steps.astype(ml_dtypes.int4)), g.weight("scale", scales))
        return g.op("MatMul", x, g.op("DequantizeLinear", *parts, axis=0, block_size=_BLOCK))


INT4 = Architecture(
    name="int4-mlp",
    what="feed-forward block of a language model: DequantizeLinear of int4 in blocks of 32, MatMul, SwiGLU",
    build=build,
    sizes={"small": {"width": 64, "layers": 1}, "base": {"width": 512, "layers": 2}},
    opsets=(21, 23),
)

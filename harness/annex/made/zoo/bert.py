"""A BERT encoder: Devlin et al., 2018, as exported from PyTorch."""

import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, FLOAT, Architecture, GraphBuilder, SymbolicDim
from harness.annex.made.zoo.inputs import padding_mask, token_ids
from harness.annex.made.zoo.layers import LOWEST, layer_norm, linear, mlp, self_attention

_SEQUENCE = SymbolicDim("sequence", 16)

_POSITIONS = 128
"""The longest sequence that has position embeddings."""


def build(g: GraphBuilder, *, width: int, heads: int, layers: int, vocabulary: int) -> None:
    """Largest number of positions with embeddings."""
    ids = g.input("input_ids", (BATCH_DIM, _SEQUENCE), token_ids(vocabulary))
    mask = g.input("attention_mask", (BATCH_DIM, _SEQUENCE), padding_mask)
    types = g.input("token_type_ids", (BATCH_DIM, _SEQUENCE), token_ids(2))
    with g.scope("embeddings"):
        x = _embed(g, ids, types, width, vocabulary)
    with g.scope("mask"):
        mask = g.op("Cast", g.op("Unsqueeze", mask, g.ints(1, 2)), to=FLOAT)
        mask = g.op("Mul", g.op("Sub", g.scalar(1), mask), g.scalar(LOWEST))
    for layer in range(layers):
        with g.scope(f"layer{layer}"):
            with g.scope("attention"):
                x = layer_norm(g, g.op("Add", self_attention(g, x, width, heads, mask), x), width, 1e-12)
            with g.scope("mlp"):
                x = layer_norm(g, g.op("Add", mlp(g, x, width), x), width, 1e-12)
    with g.scope("pooler"):
        first = g.op("Gather", x, g.constant(np.array(0, np.int64)), axis=1)
        pooled = g.op("Tanh", linear(g, first, (width, width)))
    g.output("last_hidden_state", x, "float32", (BATCH_DIM, _SEQUENCE, width))
    g.output("pooler_output", pooled, "float32", (BATCH_DIM, width))


def _embed(g: GraphBuilder, ids: str, types: str, width: int, vocabulary: int) -> str:
    words = g.op("Gather", g.normal("word", (vocabulary, width), 0.5), ids)
    kinds = g.op("Gather", g.normal("type", (2, width), 0.2), types)
    length = g.op("Slice", g.op("Shape", ids), g.ints(1), g.ints(2))
    table = g.normal("position", (1, _POSITIONS, width), 0.2)
    positions = g.op("Slice", table, g.ints(0), length, g.ints(1))
    return layer_norm(g, g.op("Add", g.op("Add", words, kinds), positions), width, 1e-12)


BERT = Architecture(
    name="bert",
    what="text encoder: three embeddings, masked attention, LayerNormalization, Gelu, a Tanh pooler",
    build=build,
    sizes={
        "small": {"width": 64, "heads": 4, "layers": 2, "vocabulary": 512},
        "base": {"width": 256, "heads": 8, "layers": 4, "vocabulary": 4096},
    },
)

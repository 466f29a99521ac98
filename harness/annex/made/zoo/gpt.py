"""A GPT-2 decoder: Radford et al., 2019, with cached keys and values."""

import numpy as np

from harness.annex.made.zoo.causal import SEQUENCE, cached, hide, keep, visible
from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import token_ids
from harness.annex.made.zoo.layers import (
    attention,
    gelu_tanh,
    layer_norm,
    length,
    linear,
    merge_heads,
    mlp,
    split_heads,
)

_POSITIONS = 128
"""The longest text, cached tokens included."""


def build(g: GraphBuilder, *, width: int, heads: int, layers: int, vocabulary: int) -> None:
    """Add token and position embeddings, decoder layers, and the head that shares the token embedding."""
    size = width // heads
    ids = g.input("input_ids", (BATCH_DIM, SEQUENCE), token_ids(vocabulary))
    caches = cached(g, "past_{}_{}", layers, heads, size)
    with g.scope("mask"):
        past = length(g, caches[0][0], 2)
        total = g.op("Add", past, length(g, ids, 1))
        positions = g.op("Range", past, total, g.constant(np.array(1)))
        mask = hide(g, visible(g, positions, total))
    with g.scope("embeddings"):
        # The head uses the same weight: this scale keeps logits near 1.
        words = g.normal("word", (vocabulary, width), 1 / width**0.5)
        x = g.op("Gather", words, ids)
        places = g.normal("position", (_POSITIONS, width), 0.5 / width**0.5)
        x = g.op("Add", x, g.op("Gather", places, positions))
    presents = []
    for layer in range(layers):
        with g.scope(f"layer{layer}/attention"):
            y, present = _attention(g, layer_norm(g, x, width), caches[layer], (width, heads), mask)
            x = g.op("Add", x, y)
            presents.append(present)
        with g.scope(f"layer{layer}/mlp"):
            x = g.op("Add", x, mlp(g, layer_norm(g, x, width), width, gelu_tanh, gain=0.5))
    with g.scope("head"):
        logits = g.op("MatMul", layer_norm(g, x, width), g.op("Transpose", words, perm=[1, 0]))
    g.output("logits", logits, "float32", (BATCH_DIM, SEQUENCE, vocabulary))
    keep(g, "present_{}_{}", presents, heads, size)


def _attention(
    g: GraphBuilder, x: str, cache: list[str], sizes: tuple[int, int], mask: str
) -> tuple[str, list[str]]:
    width, heads = sizes
    size = width // heads
    with g.scope("qkv"):
        parts = g.ops(3, "Split", linear(g, x, (width, 3 * width)), g.ints(width, width, width), axis=-1)
    query, key, value = (split_heads(g, part, heads, size) for part in parts)
    key = g.op("Concat", cache[0], key, axis=2)
    value = g.op("Concat", cache[1], value, axis=2)
    context = merge_heads(g, attention(g, query, key, value, size=size, mask=mask), width)
    with g.scope("output"):
        return linear(g, context, (width, width), gain=0.5), [key, value]


GPT = Architecture(
    name="gpt",
    what="text decoder with a cache: causal mask by Range and Where, Split, Concat with the past, tanh Gelu",
    build=build,
    sizes={
        "small": {"width": 64, "heads": 4, "layers": 2, "vocabulary": 512},
        "base": {"width": 256, "heads": 8, "layers": 4, "vocabulary": 4096},
    },
)

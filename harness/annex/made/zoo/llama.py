"""A Llama decoder: Touvron et al., 2023; from opset 23 on with ONNX's operators for such models."""

from typing import NamedTuple

import numpy as np

from harness.annex.made.zoo.causal import PAST, SEQUENCE, cached, hide, keep, visible
from harness.annex.made.zoo.graph_builder import BATCH_DIM, Architecture, GraphBuilder
from harness.annex.made.zoo.inputs import positions_after, token_ids
from harness.annex.made.zoo.layers import attention, length, linear, merge_heads, reduce, silu, split_heads

_OWN_OPERATORS = 23
"""The opset of RMSNormalization, RotaryEmbedding and Attention."""

_POSITIONS = 128
"""The longest text, cached tokens included."""


class _Size(NamedTuple):
    """Widths of the model and its feed-forward part, numbers of query and key heads, layers, vocabulary."""

    width: int
    inner: int
    heads: int
    key_heads: int
    layers: int
    vocabulary: int

    @property
    def head(self) -> int:
        """Width of one head."""
        return self.width // self.heads


def build(g: GraphBuilder, *, size: _Size) -> None:
    """Add token embedding, decoder layers and the head; positions are an input, as in the usual exports."""
    ids = g.input("input_ids", (BATCH_DIM, SEQUENCE), token_ids(size.vocabulary))
    positions = g.input("position_ids", (BATCH_DIM, SEQUENCE), positions_after(PAST.size))
    caches = cached(g, "past_key_values.{}.{}", size.layers, size.key_heads, size.head)
    with g.scope("mask"):
        total = g.op("Add", length(g, caches[0][0], 2), length(g, ids, 1))
        mask = g.op("Unsqueeze", visible(g, positions, total), g.ints(1))
        if g.opset < _OWN_OPERATORS:
            mask = hide(g, mask)
    with g.scope("rotary"):
        # For each position, and half of the elements of a head.
        angles = np.outer(np.arange(_POSITIONS), 10000.0 ** (-np.arange(0, size.head, 2) / size.head))
        turns = (g.weight("cosine", np.cos(angles)), g.weight("sine", np.sin(angles)))
    x = g.op("Gather", g.normal("embedding", (size.vocabulary, size.width), 0.7), ids)
    presents = []
    for layer in range(size.layers):
        with g.scope(f"layer{layer}/attention"):
            y = _rms_norm(g, x, size.width)
            y, present = _attention(g, y, caches[layer], size, mask, (*turns, positions))
            x = g.op("Add", x, y)
            presents.append(present)
        with g.scope(f"layer{layer}/mlp"):
            x = g.op("Add", x, _swiglu(g, _rms_norm(g, x, size.width), size))
    with g.scope("head"):
        logits = linear(g, _rms_norm(g, x, size.width), (size.width, size.vocabulary), bias=False)
    g.output("logits", logits, "float32", (BATCH_DIM, SEQUENCE, size.vocabulary))
    keep(g, "present.{}.{}", presents, size.key_heads, size.head)


def _rms_norm(g: GraphBuilder, x: str, width: int) -> str:
    scale = g.normal("scale", (width,), 0.1, mean=1.0)
    if g.opset >= _OWN_OPERATORS:
        return g.op("RMSNormalization", x, scale, axis=-1, epsilon=1e-5)
    power = reduce(g, "ReduceMean", g.op("Pow", x, g.scalar(2)), (-1,))
    root = g.op("Sqrt", g.op("Add", power, g.scalar(1e-5)))
    return g.op("Mul", scale, g.op("Div", x, root))


def _attention(
    g: GraphBuilder, x: str, cache: list[str], size: _Size, mask: str, rotary: tuple[str, ...]
) -> tuple[str, list[str]]:
    """Add grouped-query attention. Return its result, and the keys and values with the new ones."""
    parts = []
    for name, heads in (("query", size.heads), ("key", size.key_heads), ("value", size.key_heads)):
        with g.scope(name):
            part = linear(g, x, (size.width, heads * size.head), bias=False)
            part = split_heads(g, part, heads, size.head)
            parts.append(part if name == "value" else _rotate(g, part, size, rotary))
    if g.opset >= _OWN_OPERATORS:
        y, *present = g.ops(3, "Attention", *parts, mask, *cache)
    else:
        query, *new = parts
        present = [g.op("Concat", old, one, axis=2) for old, one in zip(cache, new, strict=True)]
        key, value = (_repeat(g, one, size) for one in present)
        y = attention(g, query, key, value, size=size.head, mask=mask)
    with g.scope("output"):
        merged = merge_heads(g, y, size.width)
        return linear(g, merged, (size.width, size.width), bias=False, gain=0.5), present


def _rotate(g: GraphBuilder, x: str, size: _Size, rotary: tuple[str, ...]) -> str:
    cosine, sine, positions = rotary
    if g.opset >= _OWN_OPERATORS:
        return g.op("RotaryEmbedding", x, cosine, sine, positions)
    half = size.head // 2
    low, high = g.ops(2, "Split", x, g.ints(half, half), axis=-1)
    cosine, sine = (
        g.op("Unsqueeze", g.op("Gather", table, positions), g.ints(1)) for table in (cosine, sine)
    )
    turned_low = g.op("Sub", g.op("Mul", low, cosine), g.op("Mul", high, sine))
    turned_high = g.op("Add", g.op("Mul", low, sine), g.op("Mul", high, cosine))
    return g.op("Concat", turned_low, turned_high, axis=-1)


def _repeat(g: GraphBuilder, x: str, size: _Size) -> str:
    """Repeat each head of keys or values for every head of queries that uses it."""
    batch = g.op("Unsqueeze", length(g, x, 0), g.ints(0))
    total = g.op("Unsqueeze", length(g, x, 2), g.ints(0))
    groups = g.ints(size.key_heads, size.heads // size.key_heads)
    shape = g.op("Concat", batch, groups, total, g.ints(size.head), axis=0)
    wide = g.op("Expand", g.op("Unsqueeze", x, g.ints(2)), shape)
    return g.op("Reshape", wide, g.op("Concat", batch, g.ints(size.heads), total, g.ints(size.head), axis=0))


def _swiglu(g: GraphBuilder, x: str, size: _Size) -> str:
    with g.scope("gate"):
        gate = silu(g, linear(g, x, (size.width, size.inner), bias=False, gain=2.0))
    with g.scope("up"):
        up = linear(g, x, (size.width, size.inner), bias=False)
    with g.scope("down"):
        return linear(g, g.op("Mul", gate, up), (size.inner, size.width), bias=False)


LLAMA = Architecture(
    name="llama",
    what="text decoder: RMS normalization, rotary positions, SwiGLU, grouped-query attention with a cache",
    build=build,
    sizes={"small": {"size": _Size(64, 176, 8, 2, 2, 512)}, "base": {"size": _Size(256, 688, 8, 2, 4, 4096)}},
    opsets=(17, _OWN_OPERATORS),
)

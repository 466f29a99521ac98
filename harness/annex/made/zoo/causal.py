"""Decoders with cached keys and values: their dimensions, the cache and the causal mask."""

from collections.abc import Sequence

import numpy as np

from harness.annex.made.zoo.graph_builder import BATCH_DIM, GraphBuilder, SymbolicDim
from harness.annex.made.zoo.inputs import activations
from harness.annex.made.zoo.layers import LOWEST

SEQUENCE = SymbolicDim("sequence", 4)
"""New tokens."""

PAST = SymbolicDim("past_sequence", 8)
"""Tokens whose keys and values are cached."""

_TOTAL = SymbolicDim("total_sequence", SEQUENCE.size + PAST.size)
"""A dimension of outputs only, so that any two sizes of the others fit together."""

_PARTS = ("key", "value")


def cached(g: GraphBuilder, name: str, layers: int, heads: int, size: int) -> list[list[str]]:
    """Declare the cached keys and values of each layer; the name has placeholders for layer and part."""
    shape = (BATCH_DIM, heads, PAST, size)
    return [
        [g.input(name.format(layer, part), shape, activations) for part in _PARTS] for layer in range(layers)
    ]


def keep(g: GraphBuilder, name: str, presents: Sequence[Sequence[str]], heads: int, size: int) -> None:
    """Make the keys and values of each layer outputs, including the new ones."""
    for layer, present in enumerate(presents):
        for part, value in zip(_PARTS, present, strict=True):
            g.output(name.format(layer, part), value, "float32", (BATCH_DIM, heads, _TOTAL, size))


def visible(g: GraphBuilder, positions: str, total: str) -> str:
    """Return which keys each new token may see: those up to its position.

    A bool with an axis for the keys.
    """
    keys = g.op("Range", g.constant(np.array(0)), total, g.constant(np.array(1)))
    return g.op("LessOrEqual", keys, g.op("Unsqueeze", positions, g.ints(-1)))


def hide(g: GraphBuilder, seen: str) -> str:
    """Return the mask that is added to the scores: 0 for a visible key, the lowest float32 for any other."""
    return g.op("Where", seen, g.scalar(0), g.scalar(LOWEST))

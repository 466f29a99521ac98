"""What decoders with cached keys and values share: their dimensions and the causal mask."""

import numpy as np

from harness.corpus.zoo.graph import Graph, Symbol
from harness.corpus.zoo.layers import mask_value

SEQUENCE = Symbol("sequence", 4)
"""New tokens."""

PAST = Symbol("past_sequence", 8)
"""Tokens whose keys and values are cached."""

TOTAL = Symbol("total_sequence", SEQUENCE.size + PAST.size)
"""Of outputs only, so that any two sizes of the others fit together."""


def visible(g: Graph, positions: str, total: str) -> str:
    """Which keys each new token may see: those up to its own position.

    Args:
        g: The graph.
        positions: Of the new tokens, the last axis.
        total: How many keys there are, a scalar.

    Returns:
        Bool, with an axis for the keys after those of the positions.
    """
    keys = g.op("Range", g.constant(np.array(0)), total, g.constant(np.array(1)))
    return g.op("LessOrEqual", keys, g.op("Unsqueeze", positions, g.ints(-1)))


def hide(g: Graph, seen: str) -> str:
    """Float32, added to the scores: 0 where a key may be seen, and the lowest number elsewhere."""
    return g.op("Where", seen, g.scalar(0), g.scalar(float(mask_value())))

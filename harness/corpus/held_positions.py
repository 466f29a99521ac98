"""What only the nodes of a decoder tell: how many positions it holds, and whether buffers may be shared."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

_TABLES = {
    ("", "RotaryEmbedding"): 1,
    ("com.microsoft", "RotaryEmbedding"): 2,
    ("com.microsoft", "GroupQueryAttention"): 7,
}
"""Operators with a table of cosines, a row for each position, and the index of that input."""

_GATHERS = frozenset({"Gather", "GatherND"})

_PAST_OF = {"GroupQueryAttention": (3, 4)}
"""Operators that are told the length of the cache, so that its buffer may be longer, and their inputs."""


def held_positions(model: "onnx.ModelProto", positions: str) -> int | None:
    """Return how many positions the tables of a model have rows for; None if it has no such table.

    ``positions`` names the input of positions, by which rows may be chosen; it may be empty.
    """
    rows = {weight.name: weight.dims[0] for weight in model.graph.initializer if len(weight.dims) > 1}
    found = []
    for node in model.graph.node:
        index = _TABLES.get((node.domain, node.op_type))
        if index is not None and len(node.input) > index and node.input[index] in rows:
            found.append(rows[node.input[index]])
        elif positions and node.op_type in _GATHERS and node.input[1] == positions and node.input[0] in rows:
            found.append(rows[node.input[0]])
    return min(found, default=None)


def takes_lengths(model: "onnx.ModelProto", cache: Sequence[tuple[str, str]]) -> bool:
    """Return whether every input and output of the cache is of an operator that is told its length."""
    fed = {
        (node.input[index], node.output[place])
        for node in model.graph.node
        for place, index in enumerate(_PAST_OF.get(node.op_type, ()), 1)
        if len(node.input) > index and len(node.output) > place
    }
    return bool(cache) and fed.issuperset(cache)

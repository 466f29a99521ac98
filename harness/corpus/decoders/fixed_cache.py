"""Facts that only a decoder's nodes show: whether its cache has a fixed length, and for how many positions.

In a cache of a fixed length, new keys and values are written into a tensor that never grows.
``TensorScatter`` of opset 24 writes them, or ``GroupQueryAttention``, whose cache may be longer than the
text; or whatever nodes an exporter makes of an input that tells where to write, such as ``cache_position``.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.corpus.decoders.cache_pairs import CachePair
from harness.corpus.model.port import ValueType

if TYPE_CHECKING:
    import onnx

CachePosition = Literal["start", "places"]
"""What an input counts: the columns before the new ones, or the place of each new one."""

_START = re.compile(r"write_?ind(?:ex|exes|ices)$|start_?pos(?:ition)?$", re.IGNORECASE)
_PLACES = re.compile(r"cache_?positions?$", re.IGNORECASE)
_INTEGERS = frozenset({"int32", "int64"})

_TABLES = {
    ("", "RotaryEmbedding"): 1,
    ("com.microsoft", "RotaryEmbedding"): 2,
    ("com.microsoft", "GroupQueryAttention"): 7,
}
"""Operators with a table of cosines, one row for each position, and the index of that input."""

_GATHERS = frozenset({"Gather", "GatherND"})

_PAST_OF = {"GroupQueryAttention": (3, 4)}
"""Operators that get the length of the cache, so that its buffer may be longer, and their inputs."""


def counts_of(inputs: Mapping[str, ValueType], sequence: str | None) -> dict[str, CachePosition]:
    """Return which of the inputs without another role count columns, by their names and shapes.

    ``sequence`` is the symbol of the new columns; None if their number is fixed.
    """
    found: dict[str, CachePosition] = {}
    for name, kind in inputs.items():
        if kind.kind != "tensor" or kind.dtype not in _INTEGERS or len(kind.shape or ()) > 1:
            continue
        if _START.search(name):
            found[name] = "start"
        elif _PLACES.search(name) and kind.shape and (sequence is None or kind.axes[0] in ("", sequence)):
            found[name] = "places"
    return found


def fixed_cache(
    model: "onnx.ModelProto",
    pairs: Sequence[CachePair],
    inputs: Mapping[str, ValueType],
    *,
    counts: bool,
    placed: bool,
) -> tuple[tuple[CachePair, ...], int | None] | str:
    """Return a cache with the axes along which it is written, and its length, which is None if it grows.

    If a model cannot be fed with it, return the reason.

    ``counts`` says whether an input counts columns, ``placed`` whether positions or a mask give the length of
    the text.
    """
    axes = _written_axes(model)
    pairs = tuple(
        msgspec.structs.replace(pair, axis=axes.get((pair.past, pair.present), pair.axis)) for pair in pairs
    )
    lengths = {pair.past: _length(inputs[pair.past], pair.axis) for pair in pairs}
    if not any(lengths.values()):
        return pairs, None
    first = next(name for name, length in lengths.items() if length)
    fixed = f"its cache {first!r} has a fixed length of {lengths[first]}"
    if len(set(lengths.values())) > 1:
        return f"{fixed}, and another part of it has another length, or none"
    whole = all((pair.past, pair.present) in axes for pair in pairs)
    if not (counts or whole or takes_lengths(model, pairs)):
        return f"{fixed}, and no operator and no input of the model shows where new tokens are written"
    if not (counts or placed):
        return f"{fixed}, and no input of the model shows how much of it is filled"
    return pairs, lengths[first]


def scattered(model: "onnx.ModelProto", pairs: Sequence[CachePair]) -> bool:
    """Return whether ``TensorScatter``, which models an update in place, writes every tensor of a cache."""
    axes = _written_axes(model)
    return bool(pairs) and all((pair.past, pair.present) in axes for pair in pairs)


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


def takes_lengths(model: "onnx.ModelProto", pairs: Sequence[CachePair]) -> bool:
    """Return whether every input and output of a cache belongs to an operator that gets its length."""
    fed = {
        (node.input[index], node.output[place])
        for node in model.graph.node
        for place, index in enumerate(_PAST_OF.get(node.op_type, ()), 1)
        if len(node.input) > index and len(node.output) > place
    }
    return bool(pairs) and fed.issuperset((pair.past, pair.present) for pair in pairs)


def _written_axes(model: "onnx.ModelProto") -> dict[tuple[str, str], int]:
    """Return past and present of each ``TensorScatter``, and the axis along which it writes.

    A circular one overwrites the oldest positions, and is left out.
    """
    ranks = {
        one.name: len(one.type.tensor_type.shape.dim)
        for one in (*model.graph.input, *model.graph.output, *model.graph.value_info)
    }
    found = {}
    for node in model.graph.node:
        if node.op_type != "TensorScatter" or node.domain:
            continue
        attributes = {one.name: one for one in node.attribute}
        axis = attributes["axis"].i if "axis" in attributes else -2
        if "mode" in attributes and attributes["mode"].s != b"linear":
            continue
        found[node.input[0], node.output[0]] = axis if axis >= 0 else axis + ranks.get(node.input[0], 4)
    return found


def _length(kind: ValueType, axis: int) -> int | None:
    return (kind.shape or ())[axis] if kind.axes[axis] is None else None

"""What several faults need: nodes by layer, lengths, choices."""

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.detection.net import Net, Site, attribute

ATTENTIONS = ("GroupQueryAttention", "MultiHeadAttention", "Attention")
PAST = {"GroupQueryAttention": (3, 4), "MultiHeadAttention": (6, 7), "Attention": (4, 5)}
"""Operators with a cache, and which of their inputs are the cached keys and values."""

TABLES = {("com.microsoft", "RotaryEmbedding"): (2, 3), ("", "RotaryEmbedding"): (1, 2)}
POSITIONS = {"com.microsoft": 1, "": 3}
"""Domain of RotaryEmbedding -> which of its inputs are the positions."""


def of_type(net: Net, *op_types: str) -> list[onnx.NodeProto]:
    """The nodes of some types, in their order."""
    return [node for node in net.nodes if node.op_type in op_types]


def attentions(net: Net) -> list[onnx.NodeProto]:
    """The attention of each layer over its own cache."""
    return [
        node
        for node in of_type(net, *ATTENTIONS)
        if len(node.input) > PAST[node.op_type][1] and node.input[PAST[node.op_type][0]]
    ]


def tables(net: Net) -> Iterator[tuple[onnx.NodeProto, int, int]]:
    """The nodes with rotary tables, and which of their inputs these are: cosine and sine."""
    for node in list(net.nodes):
        if node.op_type == "RotaryEmbedding":
            yield (node, *TABLES[node.domain, node.op_type])
        elif node.op_type == "GroupQueryAttention" and attribute(node, "do_rotary"):
            yield node, 7, 8


def length(net: Net, site: Site, name: str, axis: int) -> str:
    """Add the size of one axis, as an int64 scalar."""
    return site.op("Gather", site.op("Shape", name), net.constant(axis, np.int64))


def past_length(net: Net, site: Site) -> str:
    """Add the length of the cache, as an int64 scalar."""
    cache = attentions(net)[0]
    return length(net, site, cache.input[PAST[cache.op_type][0]], 2)


def in_decode(net: Net, site: Site) -> str:
    """Add whether there is a cache, as a bool scalar."""
    return site.op("Greater", past_length(net, site), net.constant(0, np.int64))


def reversed_axis(net: Net, site: Site, name: str, axis: int) -> str:
    """Add a tensor with one axis in reverse."""
    ends = (net.constant([value], np.int64) for value in (-1, -(1 << 31), axis, -1))
    return site.op("Slice", name, *ends)


def rounded(site: Site, name: str, narrow: int, wide: int = TensorProto.FLOAT) -> str:
    """Add a tensor rounded to a narrower type."""
    return site.op("Cast", site.op("Cast", name, to=narrow), to=wide)


def spoil_where(net: Net, site: Site, over: str) -> None:
    """Write NaN where a condition holds, and the value behind the site elsewhere."""
    # Weights of the model have its type; constants of the fault may have another.
    names = (name for node in net.nodes for name in node.input if name.startswith("model/"))
    weights = map(net.weight, names)
    kind = next(one.dtype for one in weights if one is not None and one.dtype.kind == "f")
    site.write(site.op("Where", over, net.constant(np.nan, kind), site.value))

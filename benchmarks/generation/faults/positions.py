"""Positions: which are taken, and how they turn queries and keys."""

from collections.abc import Callable

import numpy as np

from benchmarks.detection.net import Array, Net, attribute, set_attribute
from benchmarks.generation.faults.fault import fault
from benchmarks.generation.faults.surgery import POSITIONS, in_decode, length, of_type, tables

PROMPT, FIRST = 32, 1
"""Position of the first single token in the ways ``step`` and ``from_first``."""

INSIDE = ("gqa-h64", "gqa-h128")
NODES = ("gqa-h64-nodes", "onnx23-h64")


def _tables(net: Net, change: Callable[[Array, Array], tuple[Array, Array]]) -> bool:
    found = False
    for node, cosine, sine in tables(net):
        pair = [net.weight(node.input[index]) for index in (cosine, sine)]
        if pair[0] is not None and pair[1] is not None:
            found = True
            for index, table in zip((cosine, sine), change(pair[0], pair[1]), strict=True):
                node.input[index] = net.constant(table.astype(pair[0].dtype))
    return found


@fault(*INSIDE, *NODES, layer=0, since={"step": 0, "at_once": 0})
def position_one_later(net: Net) -> bool:
    """Every position is one too large, which only the cache shows."""
    return _tables(net, lambda cosine, sine: (np.roll(cosine, -1, axis=0), np.roll(sine, -1, axis=0)))


@fault(*NODES, layer=0, since={"step": PROMPT, "from_first": FIRST})
def position_one_later_in_decode(net: Net) -> bool:
    """With a cache, positions are one too large."""
    return _positions(net, restart=False)


@fault(*NODES, layer=0, since={"step": PROMPT, "from_first": FIRST})
def position_restarts_in_decode(net: Net) -> bool:
    """With a cache, positions begin at 0 again."""
    return _positions(net, restart=True)


def _positions(net: Net, *, restart: bool) -> bool:
    nodes = of_type(net, "RotaryEmbedding")
    for node in nodes:
        index = POSITIONS[node.domain]
        site = net.before(node)
        if restart:
            first = site.op("Gather", node.input[index], net.constant([0], np.int64), axis=1)
            node.input[index] = site.op("Sub", node.input[index], first)
        else:
            more = site.op("Cast", in_decode(net, site), to=7)
            node.input[index] = site.op("Add", node.input[index], more)
    return bool(nodes)


@fault("whisper-h64", layer=0, since={"step": PROMPT, "from_first": FIRST})
def learned_position_restarts(net: Net) -> bool:
    """With a cache, the table of learned positions is read from its first row on."""
    (node,) = of_type(net, "Slice")
    site = net.before(node)
    node.input[1] = net.constant([0], np.int64)
    node.input[2] = site.op("Unsqueeze", length(net, site, "input_ids", 1), net.constant([0], np.int64))
    return True


@fault(*NODES, layer=0, since={"step": 1})
def keys_not_turned(net: Net) -> bool:
    """Queries are turned by their positions, keys are not."""
    for node in of_type(net, "RotaryEmbedding")[1::2]:
        net.before(node).replace(node.input[0])
    return True


@fault(*INSIDE, "onnx23-h64", layer=0, since={"step": 1})
def rotary_base(net: Net) -> bool:
    """The base of the frequencies is 1,000,000 for 10,000."""

    def change(cosine: Array, _sine: Array) -> tuple[Array, Array]:
        rows, half = cosine.shape
        angles = np.outer(np.arange(rows), 1e6 ** (-np.arange(half) / half))
        return np.cos(angles), np.sin(angles)

    return _tables(net, change)


@fault(*INSIDE, *NODES, layer=0, since={"step": 1})
def other_pairs_turned(net: Net) -> bool:
    """Neighbours are turned together for halves of a head."""
    for node in of_type(net, "RotaryEmbedding", "GroupQueryAttention"):
        name = "interleaved" if node.op_type == "RotaryEmbedding" else "rotary_interleaved"
        set_attribute(node, name, 1 - attribute(node, name, 0))
    return True


@fault("gqa-h64", layer=0, since={"step": 1})
def turned_backwards(net: Net) -> bool:
    """The sine has the other sign."""
    return _tables(net, lambda cosine, sine: (cosine, -sine))


@fault("gqa-h64", "onnx24-h128", layer=0, since={"step": 16})
def table_of_16_rows(net: Net) -> bool:
    """From position 16 on the rotary table is read from its start again."""
    return _tables(net, lambda cosine, sine: (_wrapped(cosine), _wrapped(sine)))


def _wrapped(table: Array) -> Array:
    return table[np.arange(len(table)) % 16]


@fault("gqa-h80", layer=0, since={"step": 1})
def half_of_a_head_turned(net: Net) -> bool:
    """Only the first half of the pairs is turned."""

    def change(cosine: Array, sine: Array) -> tuple[Array, Array]:
        first = np.arange(cosine.shape[1]) < cosine.shape[1] // 2
        return np.where(first, cosine, 1), np.where(first, sine, 0)

    return _tables(net, change)


@fault("gqa-h64", layer=0, since={"step": 1})
def angles_in_float16(net: Net) -> bool:
    """The rotary tables are rounded to float16."""
    return _tables(net, lambda cosine, sine: (cosine.astype(np.float16), sine.astype(np.float16)))

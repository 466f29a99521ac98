"""The cache: which one is read, what is written to it, in which order."""

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto

from benchmarks.detection.net import Net, Site
from benchmarks.generation.faults.fault import AFTER, fault
from benchmarks.generation.faults.positions import FIRST, PROMPT
from benchmarks.generation.faults.surgery import (
    PAST,
    attentions,
    in_decode,
    length,
    of_type,
    past_length,
    reversed_axis,
    rounded,
)

SEVERAL = ("gqa-h64", "mha-h64", "onnx23-h64")
"""Models of three operators of attention."""

KEY, VALUE = 0, 1
"""Which of the cached tensors of an attention."""


def _cached(net: Net, part: int, change: Callable[[Site, str], str]) -> bool:
    """Have the first layer read something else than one of its cached tensors."""
    node = attentions(net)[0]
    index = PAST[node.op_type][part]
    node.input[index] = change(net.before(node), node.input[index])
    return True


def _rows_kept(
    net: Net, site: Site, value: str, rows: str, kept: Callable[[str, str], tuple[str, str]]
) -> str:
    """Add a tensor in which rows are zeros for which neither of two conditions holds.

    Args:
        net: The model.
        site: Where nodes are added.
        value: The tensor.
        rows: How many it has.
        kept: The conditions, from the number of each row and the length of the cache.
    """
    places = site.op("Range", net.constant(0, np.int64), rows, net.constant(1, np.int64))
    holds = site.op("Cast", site.op("Or", *kept(places, past_length(net, site))), to=TensorProto.FLOAT)
    return site.op("Mul", value, site.op("Unsqueeze", holds, net.constant([0, 1, 3], np.int64)))


@fault(*SEVERAL, layer=1)
def cache_of_the_other_layer(net: Net) -> bool:
    """The second layer reads the cache of the first."""
    first, second = attentions(net)
    for index in PAST[first.op_type]:
        second.input[index] = first.input[index]
    return True


@fault(*SEVERAL, layer=0)
def keys_read_as_values(net: Net) -> bool:
    """The first layer reads its cached keys in the place of its cached values."""
    node = attentions(net)[0]
    key, value = PAST[node.op_type]
    node.input[value] = node.input[key]
    return True


@fault(*SEVERAL, layer=0, since={"step": PROMPT, "from_first": FIRST})
def new_key_lost(net: Net) -> bool:
    """With a cache, new keys of the first layer are attended to, but stored as zeros."""
    node = attentions(net)[0]
    site = net.behind(node, 1)

    def kept(places: str, past: str) -> tuple[str, str]:
        return site.op("Less", places, past), site.op("Equal", past, net.constant(0, np.int64))

    site.write(_rows_kept(net, site, site.value, length(net, site, site.value, 2), kept))
    return True


@fault(*SEVERAL, layer=0)
def cache_one_row_late(net: Net) -> bool:
    """With a cache, the first layer's keys are one row late, and the last comes first."""

    def late(site: Site, name: str) -> str:
        last = site.op("Slice", name, *_ints(net, -1, 1 << 31, 2))
        return site.op("Concat", last, site.op("Slice", name, *_ints(net, 0, -1, 2)), axis=2)

    return _cached(net, KEY, late)


@fault("gqa-h64", "mha-h64", layer=0)
def cache_in_float16(net: Net) -> bool:
    """The first layer's cached keys are rounded to float16."""
    return _cached(net, KEY, lambda site, name: rounded(site, name, TensorProto.FLOAT16))


@fault(*SEVERAL, layer=0)
def texts_swapped_in_the_cache(net: Net) -> bool:
    """The texts of a batch read each other's cached values."""
    return _reversed(net, 0, VALUE)


@fault("gqa-h64-nodes", "mha-h64", "gqa-h64-int4", layer=0)
def heads_of_the_cache_swapped(net: Net) -> bool:
    """The heads of cached keys come in the reverse order."""
    return _reversed(net, 1, KEY)


@fault("gqa-h64-nodes", "mha-h64", layer=0)
def heads_of_cached_values_swapped(net: Net) -> bool:
    """The heads of cached values come in the reverse order."""
    return _reversed(net, 1, VALUE)


def _reversed(net: Net, axis: int, part: int) -> bool:
    return _cached(net, part, lambda site, name: reversed_axis(net, site, name, axis))


def _ints(net: Net, *values: int) -> list[str]:
    """Add vectors of one integer each."""
    return [net.constant([value], np.int64) for value in values]


@fault(*SEVERAL, layer=0)
def oldest_key_overwritten(net: Net) -> bool:
    """From 32 cached positions on, the first key is gone."""

    def gone(site: Site, name: str) -> str:
        def kept(places: str, past: str) -> tuple[str, str]:
            few = site.op("Less", past, net.constant(PROMPT, np.int64))
            return site.op("Greater", places, net.constant(0, np.int64)), few

        return _rows_kept(net, site, name, past_length(net, site), kept)

    return _cached(net, KEY, gone)


@fault("whisper-h64", layer=1)
def cross_cache_of_the_other_layer(net: Net) -> bool:
    """The first layer reads the encoder's keys and values of the second."""
    first, second = _cross(net)
    first.input[1], first.input[2] = second.input[1], second.input[2]
    return True


@fault("whisper-h64", layer=AFTER)
def cross_heads_swapped(net: Net) -> bool:
    """In the second layer, the heads of the encoder's values come in the reverse order."""
    node = _cross(net)[1]
    node.input[2] = reversed_axis(net, net.before(node), node.input[2], 1)
    return True


def _cross(net: Net) -> list[onnx.NodeProto]:
    return [node for node in of_type(net, "MultiHeadAttention") if "past_key_cross" in node.input[1]]


@fault(*SEVERAL, layer=1, since={"step": PROMPT, "from_first": FIRST})
def values_of_decode_doubled(net: Net) -> bool:
    """With a cache, what the first layer's attention gives is twice as large."""
    node = attentions(net)[0]
    site = net.behind(node)
    factor = site.op("Add", net.scalar(1), site.op("Cast", in_decode(net, site), to=TensorProto.FLOAT))
    site.write(site.op("Mul", site.value, factor))
    return True

"""Quantized weights: zero points, scales, order of bits and blocks."""

from collections.abc import Callable

import numpy as np

from benchmarks.detection.net import Array, Net, set_attribute
from benchmarks.generation.faults.fault import fault
from benchmarks.generation.faults.surgery import of_type

POINTS = ("gqa-h64-int4-points", "gqa-h64-int8-points")
FOUR = ("gqa-h64-int4", "gqa-h64-int4-points", "gqa-h64-int4-f16")
EIGHT = ("gqa-h64-int8", "gqa-h64-int8-points")


def _changed(net: Net, op_type: str, index: int, change: Callable[[Array], Array]) -> bool:
    nodes = [node for node in of_type(net, op_type) if len(node.input) > index and node.input[index]]
    for node in nodes:
        weight = net.weight(node.input[index])
        if weight is None:
            return False
        node.input[index] = net.constant(np.ascontiguousarray(change(weight)), weight.dtype)
    return bool(nodes)


@fault(*POINTS, "gqa-h64-int4-f16", layer=0, since={"step": 0})
def zero_points_ignored(net: Net) -> bool:
    """The zero points of products are those of symmetric weights."""
    for node in of_type(net, "MatMulNBits"):
        node.input[3] = ""
    return True


@fault(*POINTS, layer=0, since={"step": 0})
def zero_points_of_embeddings_ignored(net: Net) -> bool:
    """The zero points of embeddings are those of symmetric weights."""
    (node,) = of_type(net, "GatherBlockQuantized")
    del node.input[3:]
    return True


@fault("gqa-h64-int4-points", "gqa-h64-int4-f16", layer=0, since={"step": 0})
def zero_points_in_the_other_order(net: Net) -> bool:
    """Of two zero points in a byte, the high four bits are the first."""
    return _changed(net, "MatMulNBits", 3, _swapped)


@fault(*FOUR, layer=0, since={"step": 0})
def weights_in_the_other_order(net: Net) -> bool:
    """Of two weights in a byte, the high four bits are the first."""
    return _changed(net, "MatMulNBits", 1, _swapped)


def _swapped(weight: Array) -> Array:
    return (weight >> 4) | (weight << 4)


@fault(*FOUR, layer=0, since={"step": 0})
def top_bits_lost(net: Net) -> bool:
    """The top bit of each weight of 4 bits is lost."""
    return _changed(net, "MatMulNBits", 1, lambda weight: weight & 0x77)


@fault(*FOUR, *EIGHT, layer=0, since={"step": 0})
def scales_of_the_next_block(net: Net) -> bool:
    """Each block has the scale of the one after it."""
    return _changed(net, "MatMulNBits", 2, lambda scales: np.roll(scales, -1, axis=-1))


@fault(*FOUR, *EIGHT, layer=0, since={"step": 0})
def blocks_of_twice_the_size(net: Net) -> bool:
    """Two blocks share the scale of the first."""
    return _changed(net, "MatMulNBits", 2, lambda scales: np.repeat(scales[..., ::2], 2, axis=-1))


@fault(*EIGHT, layer=0, since={"step": 0})
def bytes_signed(net: Net) -> bool:
    """Weights of 8 bits are read as signed bytes, which moves them by half of the range."""
    return _changed(net, "MatMulNBits", 1, lambda weight: weight ^ 0x80)


@fault("gqa-h64-int4", "gqa-h64-int4-points", "gqa-h64-int8", layer=0, since={"step": 0})
def activations_of_8_bits(net: Net) -> bool:
    """Activations are rounded to 8 bits, which the model does not allow."""
    nodes = of_type(net, "MatMulNBits")
    for node in nodes:
        set_attribute(node, "accuracy_level", 4)
    return bool(nodes)


@fault("gqa-h64-int4", "gqa-h64-int8", layer=0, since={"step": 0})
def embedding_of_the_next_token(net: Net) -> bool:
    """The table of embeddings is read one row late."""
    return _changed(net, "GatherBlockQuantized", 0, lambda table: np.roll(table, -1, axis=0))


@fault("moe-h64-int4", "moe-h64-int8", layer=1, since={"step": 0})
def scales_of_the_next_expert(net: Net) -> bool:
    """Each expert has the scales of the next."""
    return _changed(net, "QMoE", 3, lambda scales: np.roll(scales, -1, axis=0))

"""A net of which some dimensions have other sizes."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from harness.core.value import Tensor
from harness.triage.net import Net
from harness.triage.node import Weight, new_weight, node_of
from harness.triage.redeclare import redeclared

LARGEST_INLINE = 64 << 20
"""Bytes up to which a part of external data is put into the model."""


class Axis(msgspec.Struct, frozen=True):
    """An axis of a graph input or an initializer."""

    tensor: str
    axis: int


class Element(msgspec.Struct, frozen=True):
    """An element of a small integer input or initializer, which may be a size."""

    tensor: str
    index: int


class Attribute(msgspec.Struct, frozen=True):
    """An integer attribute of a node, which may be a size."""

    node: int
    name: str


Spot = Axis | Element | Attribute


def resized(net: Net, sizes: Mapping[Spot, int]) -> Net | None:
    """Return a net with other sizes, what is beyond them cut off.

    Returns:
        None if the shapes contradict each other then, or an initializer is too large for the model.
    """
    fed, weights, inputs = dict(net.fed), dict(net.weights), dict(net.inputs)
    for name in dict.fromkeys(spot.tensor for spot in sizes if not isinstance(spot, Attribute)):
        spots = [spot for spot in sizes if not isinstance(spot, Attribute) and spot.tensor == name]
        if name in fed:
            value = fed[name]
            if not isinstance(value, Tensor):
                return None
            fed[name] = _cut(value, spots, sizes)
        if name in weights:
            weight = _resized_weight(net, weights[name], spots, sizes)
            if weight is None:
                return None
            weights[name] = weight
        if name in inputs:
            inputs[name] = _declared(inputs[name], spots, sizes)
    return redeclared(
        net.changed(nodes=_with_attributes(net, sizes), inputs=inputs, fed=fed, weights=weights)
    )


def _cut(value: Tensor, spots: "list[Axis | Element]", sizes: Mapping[Spot, int]) -> Tensor:
    array = value.array
    elements = [spot for spot in spots if isinstance(spot, Element)]
    if elements:
        array = np.array(array, order="C")
        for spot in elements:
            array.reshape(-1)[spot.index] = sizes[spot]
    for axis in spots:
        if isinstance(axis, Axis):
            array = array[(slice(None),) * axis.axis + (slice(sizes[axis]),)]
    # Copied only here: of external data, only what is left is read.
    array = np.array(array, order="C")
    return Tensor(dtype=value.dtype, array=array)


def _resized_weight(
    net: Net, weight: Weight, spots: "list[Axis | Element]", sizes: Mapping[Spot, int]
) -> Weight | None:
    shape = list(weight.shape)
    for spot in spots:
        if isinstance(spot, Axis):
            shape[spot.axis] = sizes[spot]
    left = weight.nbytes * int(np.prod(shape, dtype=object)) // max(1, weight.elements)
    if weight.external and left > LARGEST_INLINE:
        return None
    return new_weight(weight.name, _cut(weight.value(net.folder), spots, sizes))


def _declared(info: Any, spots: "list[Axis | Element]", sizes: Mapping[Spot, int]) -> Any:
    copy = type(info)()
    copy.CopyFrom(info)
    dims = copy.type.tensor_type.shape.dim
    for spot in spots:
        if isinstance(spot, Axis) and spot.axis < len(dims) and dims[spot.axis].HasField("dim_value"):
            dims[spot.axis].dim_value = sizes[spot]
    return copy


def _with_attributes(net: Net, sizes: Mapping[Spot, int]) -> tuple[Any, ...]:
    nodes = list(net.nodes)
    for spot, size in sizes.items():
        if isinstance(spot, Attribute):
            proto = nodes[spot.node].proto()
            for attribute in proto.attribute:
                if attribute.name == spot.name:
                    attribute.i = size
            nodes[spot.node] = node_of(proto)
    return tuple(nodes)

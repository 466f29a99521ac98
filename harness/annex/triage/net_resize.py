"""A net with other sizes of some dimensions."""

from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetWeight, copied, new_weight, node_of
from harness.annex.triage.outline import is_large
from harness.annex.triage.redeclare import redeclared
from harness.core.values.value import Tensor

LARGEST_INLINE = 64 << 20
"""Bytes of external data up to which a part of it is moved into the model."""


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


def resize_net(net: Net, sizes: Mapping[Spot, int]) -> Net | None:
    """Return a net with other sizes; elements beyond them are cut off.

    Returns:
        Return None if the shapes then contradict each other, or if a part of external data is too large for
        the model or spread too far in its file.
    """
    shaped = declared(net, sizes)
    if shaped is None:
        return None
    weights = dict(net.weights)
    for name, spots in _by_tensor(sizes).items():
        if name in weights:
            weight = weights[name]
            if weight.external and _span(weight, spots, sizes) > LARGEST_INLINE:
                return None
            weights[name] = new_weight(name, _cut(weight.value(net.folder), spots, sizes))
    return msgspec.structs.replace(shaped, weights=weights, home=None)


def declared(net: Net, sizes: Mapping[Spot, int]) -> Net | None:
    """Return a net with other sizes and without elements in its larger initializers; see ``resize_net``.

    It costs little, and shows whether the shapes contradict each other.
    """
    fed, weights, inputs = dict(net.fed), dict(net.weights), dict(net.inputs)
    for name, spots in _by_tensor(sizes).items():
        value = fed.get(name)
        if isinstance(value, Tensor):
            fed[name] = _cut(value, spots, sizes)
        if name in weights:
            weights[name] = _shaped(net, weights[name], spots, sizes)
        if name in inputs:
            inputs[name] = _with_sizes(inputs[name], spots, sizes)
    return redeclared(
        net.changed(nodes=_with_attributes(net, sizes), inputs=inputs, fed=fed, weights=weights)
    )


def _by_tensor(sizes: Mapping[Spot, int]) -> dict[str, list[Axis | Element]]:
    found: dict[str, list[Axis | Element]] = {}
    for spot in sizes:
        if not isinstance(spot, Attribute):
            found.setdefault(spot.tensor, []).append(spot)
    return found


def _cut(value: Tensor, spots: list[Axis | Element], sizes: Mapping[Spot, int]) -> Tensor:
    array = value.array
    elements = [spot for spot in spots if isinstance(spot, Element)]
    if elements:
        array = np.array(array, order="C")
        for spot in elements:
            array.reshape(-1)[spot.index] = sizes[spot]
    for axis in spots:
        if isinstance(axis, Axis):
            array = array[(slice(None),) * axis.axis + (slice(sizes[axis]),)]
    # Copied only here: only the remaining part of external data is read.
    return Tensor(dtype=value.dtype, array=np.array(array, order="C"))


def _shaped(net: Net, weight: NetWeight, spots: list[Axis | Element], sizes: Mapping[Spot, int]) -> NetWeight:
    if not is_large(weight):
        return new_weight(weight.name, _cut(weight.value(net.folder), spots, sizes))
    return NetWeight(
        name=weight.name,
        dtype=weight.dtype,
        shape=_shape(weight, spots, sizes),
        external=True,
        wire=b"",
    )


def _shape(weight: NetWeight, spots: list[Axis | Element], sizes: Mapping[Spot, int]) -> tuple[int, ...]:
    shape = list(weight.shape)
    for spot in spots:
        if isinstance(spot, Axis):
            shape[spot.axis] = sizes[spot]
    return tuple(shape)


def _span(weight: NetWeight, spots: list[Axis | Element], sizes: Mapping[Spot, int]) -> int:
    """Return the bytes from the first to the last remaining element: this much of a file is read."""
    place = 0
    for size, left in zip(weight.shape, _shape(weight, spots, sizes), strict=True):
        place = place * size + left - 1
    return (place + 1) * weight.nbytes // max(1, weight.elements)


def _with_sizes(info: Any, spots: list[Axis | Element], sizes: Mapping[Spot, int]) -> Any:
    copy = copied(info)
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

"""Attention: its mask, its scale, its heads."""

import numpy as np
import onnx

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.net import Net, attribute

HIDDEN = -1e4
"""What a mask adds at most where it hides; the lowest float32 in most exports."""


def _before_softmax(net: Net, node: onnx.NodeProto, op_types: set[str]) -> onnx.NodeProto | None:
    """The node of some type that feeds a Softmax, over at most one other node."""
    found = net.producer(node.input[0])
    for _ in range(2):
        if found is None or found.op_type in op_types:
            return found
        found = net.producer(found.input[0])
    return None


@fault("Softmax")
def mask_ignored(net: Net, node: onnx.NodeProto) -> bool:
    """Attention sees what is masked."""
    mask = _before_softmax(net, node, {"Add"})
    if mask is None:
        return False
    for index, name in enumerate(mask.input):
        if name in net.values and net.values[name].min(initial=0) < HIDDEN:
            site = net.before(mask)
            site.replace(site.op("Identity", mask.input[1 - index]))
            return True
    return False


@fault("Softmax")
def scale_missing(net: Net, node: onnx.NodeProto) -> bool:
    """Attention's scores are not scaled."""
    scale = _before_softmax(net, node, {"Div", "Mul"})
    if scale is None or (number := net.weight(scale.input[1])) is None or number.size > 1:
        return False
    site = net.before(scale)
    site.replace(site.op("Identity", scale.input[0]))
    return True


@fault("Softmax")
def mask_shifted(net: Net, node: onnx.NodeProto) -> bool:
    """Attention's mask is one place off."""
    mask = _before_softmax(net, node, {"Add"})
    if mask is None:
        return False
    for index, name in enumerate(mask.input):
        value = net.values.get(name)
        if value is not None and value.min(initial=0) < HIDDEN and value.shape[-1] > 1:
            site = net.before(mask)
            order = net.constant(np.roll(np.arange(value.shape[-1]), 1), np.int64)
            mask.input[index] = site.op("Gather", name, order, axis=-1)
            return True
    return False


@fault("Transpose")
def heads_mixed_up(net: Net, node: onnx.NodeProto) -> bool:
    """The heads of attention come in the reverse order."""
    if list(attribute(node, "perm", ())) != [0, 2, 1, 3] or not net.is_float(node.input[0]):
        return False
    heads = net.values[node.input[0]].shape[2]
    if heads < 2:
        return False
    site = net.before(node)
    order = net.constant(np.arange(heads)[::-1].copy(), np.int64)
    node.input[0] = site.op("Gather", node.input[0], order, axis=2)
    return True


@fault("Concat")
def cache_ignored(net: Net, node: onnx.NodeProto) -> bool:
    """Cached keys or values are read one token late."""
    name = node.input[0]
    value = net.values.get(name)
    if value is None or value.ndim != 4 or attribute(node, "axis") not in {2, -2} or value.shape[2] < 2:
        return False
    site = net.before(node)
    order = net.constant(np.roll(np.arange(value.shape[2]), 1), np.int64)
    node.input[0] = site.op("Gather", name, order, axis=2)
    return True

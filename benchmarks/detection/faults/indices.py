"""Indices, slices and selections that are one off, or that are bounded wrongly."""

import numpy as np
import onnx

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.net import Net, attribute, set_attribute

TREES = ("TreeEnsembleRegressor", "TreeEnsembleClassifier")


@fault("Gather")
def gather_next(net: Net, node: onnx.NodeProto) -> bool:
    """Gather takes the row after the one that is asked for."""
    if not net.is_float(node.input[0]):
        return False
    rows = net.values[node.input[0]].shape[attribute(node, "axis", 0)]
    indices = net.values.get(node.input[1])
    if indices is None or rows < 2:
        return False
    site = net.before(node)
    one, last = (net.constant(number, indices.dtype) for number in (1, rows - 1))
    node.input[1] = site.op("Min", site.op("Add", node.input[1], one), last)
    return True


@fault("Gather", "Slice")
def negative_index(net: Net, node: onnx.NodeProto) -> bool:
    """A negative index is taken for 0."""
    index = net.weight(node.input[1])
    if index is None or (index >= 0).all():
        return False
    node.input[1] = net.constant(np.maximum(index, 0))
    return True


@fault("Slice")
def slice_shifted(net: Net, node: onnx.NodeProto) -> bool:
    """Slice starts and stops one place early or late."""
    if not net.is_float(node.input[0]):
        return False
    before, after = net.values[node.input[0]], net.values[node.output[0]]
    starts, stops = (net.values[name].copy() for name in node.input[1:3])
    axes = net.values[node.input[3]] if len(node.input) > 3 and node.input[3] else np.arange(len(starts))
    for place, axis in enumerate(axes):
        room = before.shape[axis] - after.shape[axis]
        start = int(starts[place]) % before.shape[axis] if before.shape[axis] else 0
        if room:
            move = 1 if start + after.shape[axis] < before.shape[axis] else -1
            starts[place], stops[place] = start + move, start + move + after.shape[axis]
            node.input[1], node.input[2] = net.constant(starts), net.constant(stops)
            return True
    return False


@fault("ArgMax", "TopK", "NonMaxSuppression")
def selection_spoilt(net: Net, node: onnx.NodeProto) -> bool:
    """ArgMax takes the smallest; suppression takes 0.55 for its limit of 0.5."""
    if node.op_type == "ArgMax":
        node.op_type = "ArgMin"
        return True
    if node.op_type == "TopK":
        set_attribute(node, "largest", 1 - attribute(node, "largest", 1))
        return True
    limit = net.weight(node.input[3]) if len(node.input) > 3 else None
    if limit is None:
        return False
    node.input[3] = net.constant(limit * np.float32(1.1))
    return True


@fault("NonMaxSuppression")
def score_limit_ignored(_net: Net, node: onnx.NodeProto) -> bool:
    """Suppression passes over its limit for scores."""
    if len(node.input) < 5:
        return False
    del node.input[4]
    return True


@fault(*TREES)
def tree_comparison(_net: Net, node: onnx.NodeProto) -> bool:
    """Trees go left where they should go right."""
    modes = attribute(node, "nodes_modes")
    if not modes:
        return False
    set_attribute(node, "nodes_modes", [b"BRANCH_GT" if mode == b"BRANCH_LEQ" else mode for mode in modes])
    return True


@fault(*TREES)
def tree_lost(net: Net, node: onnx.NodeProto) -> bool:
    """One tree of an ensemble counts nothing."""
    leaves, trees = attribute(node, "target_weights"), attribute(node, "target_treeids")
    if not leaves:
        return False
    lost = np.array(trees) == net.random.choice(trees)
    set_attribute(node, "target_weights", np.where(lost, 0, leaves).tolist())
    return True


@fault("Range")
def range_shifted(net: Net, node: onnx.NodeProto) -> bool:
    """Range starts one late: positions that forget what is cached, masks that look ahead."""
    value = net.values[node.output[0]]
    site = net.behind(node)
    site.write(site.op("Add", site.value, net.constant(1, value.dtype)))
    return True

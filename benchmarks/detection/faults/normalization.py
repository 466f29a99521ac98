"""Normalization layers and Softmax: epsilon, axis, the estimate of the variance."""

import numpy as np
import onnx

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.net import Net, attribute, set_attribute

NORMS = ("BatchNormalization", "LayerNormalization", "InstanceNormalization", "GroupNormalization")
SMALL = 1e-2
"""A constant below this that is added before a root is an epsilon."""


def _scale_epsilon(net: Net, node: onnx.NodeProto, factor: float, least: float = 0.0) -> bool:
    """Change an epsilon, which exporters may have written as an addition before a square root."""
    if node.op_type in NORMS:
        set_attribute(node, "epsilon", max(factor * attribute(node, "epsilon", 1e-5), least))
        return True
    for index, name in enumerate(node.input):
        number = net.weight(name)
        if number is None or number.size != 1 or not 0 < number.item() < SMALL:
            continue
        if any(reader.op_type == "Sqrt" for reader in net.readers(node.output[0])):
            node.input[index] = net.constant(np.maximum(number * factor, least), np.float32)
            return True
    return False


@fault(*NORMS, "Add")
def epsilon_tenfold(net: Net, node: onnx.NodeProto) -> bool:
    """Epsilon of a normalization ten times as large."""
    return _scale_epsilon(net, node, 10.0)


@fault(*NORMS, "Add")
def epsilon_1e_3(net: Net, node: onnx.NodeProto) -> bool:
    """Epsilon of a normalization at least 1e-3, the default of another framework."""
    return _scale_epsilon(net, node, 1.0, least=1e-3)


@fault("LayerNormalization", "InstanceNormalization")
def variance_unbiased(net: Net, node: onnx.NodeProto) -> bool:
    """Variance divided by n - 1 for n."""
    shape = net.values[node.input[0]].shape
    n = shape[-1] if node.op_type == "LayerNormalization" else int(np.prod(shape[2:]))
    scale = net.weight(node.input[1])
    if scale is None or n < 2:
        return False
    node.input[1] = net.constant(scale * np.float32(((n - 1) / n) ** 0.5))
    return True


@fault("LayerNormalization")
def norm_axis(net: Net, node: onnx.NodeProto) -> bool:
    """Layer normalization over the axis before the last."""
    x, shape = node.input[0], net.values[node.input[0]].shape
    if len(shape) < 3 or shape[-2] < 2:
        return False
    site = net.before(node)
    turned = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    ones = net.constant(np.ones(shape[-2]), np.float32)
    epsilon = attribute(node, "epsilon", 1e-5)
    y = site.op("LayerNormalization", site.op("Transpose", x, perm=turned), ones, axis=-1, epsilon=epsilon)
    y = site.op("Mul", site.op("Transpose", y, perm=turned), node.input[1])
    site.replace(site.op("Add", y, node.input[2]) if len(node.input) > 2 else y)
    return True


@fault("Softmax", "LogSoftmax")
def softmax_axis(net: Net, node: onnx.NodeProto) -> bool:
    """Softmax over the axis before its own."""
    shape = net.values[node.input[0]].shape
    axis = attribute(node, "axis", -1) % max(len(shape), 1)
    if len(shape) < 2 or shape[axis - 1] < 2:
        return False
    set_attribute(node, "axis", (axis - 1) % len(shape))
    return True


@fault("GlobalAveragePool", "ReduceMean", "AveragePool")
def mean_divisor(net: Net, node: onnx.NodeProto) -> bool:
    """A mean divided by n + 1 for n."""
    n = max(1, net.values[node.input[0]].size // max(1, net.values[node.output[0]].size))
    if n < 2:
        return False
    site = net.behind(node)
    site.write(site.op("Mul", site.value, net.scalar(n / (n + 1))))
    return True


@fault("BatchNormalization")
def mean_ignored(net: Net, node: onnx.NodeProto) -> bool:
    """Batch normalization that does not subtract the mean."""
    mean = net.weight(node.input[3])
    if mean is None:
        return False
    node.input[3] = net.constant(np.zeros_like(mean))
    return True

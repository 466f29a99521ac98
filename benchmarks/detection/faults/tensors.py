"""Tensors on their way between operators: stale, swapped, unwritten, of the wrong item."""

import numpy as np
import onnx

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.net import Net

COMPUTING = (
    "Add", "Mul", "MatMul", "Gemm", "Conv", "Relu", "LayerNormalization", "BatchNormalization", "Softmax",
    "Sigmoid", "Transpose", "Concat",
)  # fmt: skip
LEAST = 8
"""Elements that a tensor has to have, for a part of it to be wrong."""


@fault("Add", "Sub", "Mul", "Div", "MatMul", "Concat")
def stale_second_input(net: Net, node: onnx.NodeProto) -> bool:
    """The second input is an earlier tensor of the same shape, whose buffer it shares."""
    name = node.input[1] if len(node.input) > 1 else ""
    if not net.is_float(name) or not net.is_activation(name):
        return False
    place = next(index for index, other in enumerate(net.nodes) if other is node)
    earlier = [
        output
        for other in net.nodes[:place]
        for output in other.output
        if output not in node.input and net.is_float(output) and net.is_activation(output)
        if net.values[output].shape == net.values[name].shape
        if not np.array_equal(net.values[output], net.values[name])
    ]
    if not earlier:
        return False
    node.input[1] = earlier[-1]
    return True


@fault("Sub", "Div", "MatMul", "Concat")
def inputs_swapped(net: Net, node: onnx.NodeProto) -> bool:
    """Two inputs of one shape are swapped."""
    first, second = node.input[0], node.input[1] if len(node.input) > 1 else ""
    if not (net.is_float(first) and net.is_float(second)):
        return False
    if net.values[first].shape != net.values[second].shape:
        return False
    node.input[0], node.input[1] = second, first
    return True


@fault("Split")
def outputs_swapped(net: Net, node: onnx.NodeProto) -> bool:
    """The first two parts of Split are swapped."""
    first, second = node.output[0], node.output[1] if len(node.output) > 1 else ""
    if not net.is_float(first) or net.values[first].shape != net.values[second].shape:
        return False
    node.output[0], node.output[1] = second, first
    return True


@fault(*COMPUTING)
def batch_repeated(net: Net, node: onnx.NodeProto) -> bool:
    """The last item of the batch gets the first one's result."""
    value = net.values.get(node.output[0])
    if value is None or not net.is_float(node.output[0]) or value.ndim < 2 or value.shape[0] < 2:
        return False
    site = net.behind(node)
    items = np.arange(value.shape[0])
    items[-1] = 0
    site.write(site.op("Gather", site.value, net.constant(items, np.int64), axis=0))
    return True


@fault(*COMPUTING)
def tail_unwritten(net: Net, node: onnx.NodeProto) -> bool:
    """The last element of an intermediate result is never written: it is 0."""
    return _tail(net, node, 1)


@fault(*COMPUTING)
def block_unwritten(net: Net, node: onnx.NodeProto) -> bool:
    """The last sixteenth of an intermediate result is never written: it is 0."""
    value = net.values.get(node.output[0])
    return value is not None and _tail(net, node, max(1, value.size // 16))


def _tail(net: Net, node: onnx.NodeProto, elements: int) -> bool:
    value = net.values.get(node.output[0])
    if value is None or not net.is_float(node.output[0]) or value.size < LEAST:
        return False
    kept = np.ones(value.size, bool)
    kept[-elements:] = False
    site = net.behind(node)
    site.write(site.op("Where", net.constant(kept.reshape(value.shape)), site.value, net.scalar(0)))
    return True


@fault("Transpose")
def transpose_ignored(net: Net, node: onnx.NodeProto) -> bool:
    """The elements stay where they were; only the shape is changed."""
    value = net.values.get(node.output[0])
    if value is None or not net.is_float(node.output[0]) or not net.is_activation(node.output[0]):
        return False
    site = net.before(node)
    site.replace(site.op("Reshape", node.input[0], net.constant(value.shape, np.int64)))
    return True


@fault("Add", "Mul")
def input_scaled(net: Net, node: onnx.NodeProto) -> bool:
    """One input is too large by a part between a millionth and a hundredth."""
    for index, name in enumerate(node.input):
        if net.is_float(name) and net.is_activation(name):
            site = net.before(node)
            node.input[index] = site.op("Mul", name, net.scalar(1 + 10 ** net.random.uniform(-6, -2)))
            return True
    return False


@fault("Add", "Concat")
def input_dropped(net: Net, node: onnx.NodeProto) -> bool:
    """The second input is read as 0: a skip connection or a cache that is lost."""
    name = node.input[1] if len(node.input) > 1 else ""
    if not net.is_float(name) or not net.is_activation(name):
        return False
    site = net.before(node)
    node.input[1] = site.op("Mul", name, net.scalar(0))
    return True


@fault("Mul", "Add", "Sub", "Cast", "Gather", "Identity")
def int64_truncated(net: Net, node: onnx.NodeProto) -> bool:
    """An int64 result keeps its lower 32 bits."""
    value = net.values.get(node.output[0])
    if value is None or value.dtype != np.int64 or np.abs(value).max(initial=0) < 2**31:
        return False
    site = net.behind(node)
    narrow = site.op("Cast", site.value, to=onnx.TensorProto.INT32)
    site.write(site.op("Cast", narrow, to=onnx.TensorProto.INT64))
    return True

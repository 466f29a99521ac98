"""Weights that are read wrongly: order, layout, tails, single numbers."""

import numpy as np
import onnx

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.faults.rounding import round_array
from benchmarks.detection.net import Array, Net

PRODUCTS = ("MatMul", "Gemm", "Conv", "ConvTranspose")
TILE = 8
"""Columns or channels that a kernel computes at once."""


def _weight(net: Net, node: onnx.NodeProto) -> Array | None:
    """The float32 weight of a product, second input, to be changed; None where there is none."""
    weight = net.weight(node.input[1]) if len(node.input) > 1 else None
    return weight.copy() if weight is not None and net.is_float(node.input[1]) and weight.ndim > 1 else None


def _out_axis(node: onnx.NodeProto) -> int:
    """The axis of a product's weight that its output's channels come from."""
    if node.op_type == "Gemm":
        return 0 if any(one.name == "transB" and one.i for one in node.attribute) else 1
    return {"Conv": 0, "ConvTranspose": 1}.get(node.op_type, -1)


def _write(net: Net, node: onnx.NodeProto, weight: Array) -> bool:
    node.input[1] = net.constant(weight)
    return True


@fault(*PRODUCTS)
def channel_scaled(net: Net, node: onnx.NodeProto) -> bool:
    """One output channel is too large by a part between a hundred-thousandth and a tenth."""
    weight = _weight(net, node)
    if weight is None:
        return False
    channels = np.moveaxis(weight, _out_axis(node), 0)
    channels[net.random.integers(len(channels))] *= np.float32(1 + 10 ** net.random.uniform(-5, -1))
    return _write(net, node, weight)


@fault(*PRODUCTS)
def weight_scaled(net: Net, node: onnx.NodeProto) -> bool:
    """One weight is too large by a part between a millionth and a hundredth."""
    weight = _weight(net, node)
    if weight is None:
        return False
    return _write(net, node, weight * np.float32(1 + 10 ** net.random.uniform(-6, -2)))


@fault(*PRODUCTS)
def weight_coarse(net: Net, node: onnx.NodeProto) -> bool:
    """One weight keeps between 8 and 20 of its 24 bits."""
    weight = _weight(net, node)
    return weight is not None and _write(net, node, round_array(weight, int(net.random.integers(8, 21))))


@fault(*PRODUCTS)
def last_tile(net: Net, node: onnx.NodeProto) -> bool:
    """The last channels of a product leave the last term of their sums out."""
    weight = _weight(net, node)
    if weight is None:
        return False
    channels = np.moveaxis(weight, _out_axis(node), 0)
    channels[-TILE:, -1] = 0
    return _write(net, node, weight)


@fault(*PRODUCTS)
def last_tile_off(net: Net, node: onnx.NodeProto) -> bool:
    """The last channels of a product are 0.1 % too small."""
    weight = _weight(net, node)
    if weight is None:
        return False
    np.moveaxis(weight, _out_axis(node), 0)[-TILE:] *= np.float32(0.999)
    return _write(net, node, weight)


@fault(*PRODUCTS)
def bit_flipped(net: Net, node: onnx.NodeProto) -> bool:
    """One bit of one number of a weight is flipped: the highest of its fraction."""
    return _flip(net, node, 22)


@fault(*PRODUCTS)
def low_bit_flipped(net: Net, node: onnx.NodeProto) -> bool:
    """One bit of one number of a weight is flipped: the ninth of its fraction."""
    return _flip(net, node, 14)


def _flip(net: Net, node: onnx.NodeProto, bit: int) -> bool:
    weight = _weight(net, node)
    if weight is None:
        return False
    weight = np.ascontiguousarray(weight)
    weight.view(np.uint32).reshape(-1)[net.random.integers(weight.size)] ^= np.uint32(1 << bit)
    return _write(net, node, weight)


@fault(*PRODUCTS)
def number_lost(net: Net, node: onnx.NodeProto) -> bool:
    """One number of a weight is read as 0."""
    weight = _weight(net, node)
    if weight is None:
        return False
    weight = np.ascontiguousarray(weight)
    weight.reshape(-1)[net.random.integers(weight.size)] = 0
    return _write(net, node, weight)


@fault("MatMul", "Gemm")
def weight_transposed(net: Net, node: onnx.NodeProto) -> bool:
    """A square weight is read by columns."""
    weight = _weight(net, node)
    if weight is None or weight.shape[-1] != weight.shape[-2]:
        return False
    return _write(net, node, np.ascontiguousarray(np.swapaxes(weight, -1, -2)))


@fault("Conv", "ConvTranspose")
def kernel_flipped(net: Net, node: onnx.NodeProto) -> bool:
    """A convolution's kernel is applied from its other end."""
    weight = _weight(net, node)
    if weight is None or weight.shape[-1] < 2:
        return False
    return _write(net, node, np.ascontiguousarray(weight[..., ::-1]))


@fault("Conv", "MatMul", "Gemm")
def channels_shifted(net: Net, node: onnx.NodeProto) -> bool:
    """Output channels are one place on, as after a wrong layout change."""
    weight = _weight(net, node)
    return weight is not None and _write(net, node, np.roll(weight, 1, axis=_out_axis(node)))


@fault(*PRODUCTS)
def weights_mixed_up(net: Net, node: onnx.NodeProto) -> bool:
    """A product takes the weight of another one of the same shape."""
    weight = _weight(net, node)
    if weight is None:
        return False
    others = [
        other.input[1]
        for other in net.nodes
        if other.op_type == node.op_type
        and other.input[1] != node.input[1]
        and (found := net.weight(other.input[1])) is not None
        and found.shape == weight.shape
    ]
    if not others:
        return False
    node.input[1] = others[net.random.integers(len(others))]
    return True


@fault("Conv", "Gemm", "ConvTranspose", "Add")
def bias_dropped(net: Net, node: onnx.NodeProto) -> bool:
    """A bias is not added."""
    if node.op_type != "Add":
        if len(node.input) < 3:
            return False
        del node.input[2]
        return True
    for index, name in enumerate(node.input):
        weight = net.weight(name)
        if weight is not None and weight.ndim and weight.size > 1 and net.is_float(name):
            site = net.before(node)
            site.replace(site.op("Identity", node.input[1 - index]))
            return True
    return False


@fault("Add", "Mul", "BatchNormalization", "LayerNormalization")
def broadcast_axis(net: Net, node: onnx.NodeProto) -> bool:
    """A vector of parameters goes along the axis before its own."""
    shape = net.values[node.input[0]].shape if node.input[0] in net.values else ()
    if node.op_type in {"Add", "Mul"}:
        for index, name in enumerate(node.input):
            weight, other = net.weight(name), net.values.get(node.input[1 - index])
            if weight is None or other is None or not net.is_float(name):
                continue
            if weight.ndim == 1 and weight.size > 1 and other.ndim > 1 and other.shape[-2] > 1:
                turned = np.resize(weight, other.shape[-2]).reshape(-1, 1)
                node.input[index] = net.constant(turned)
                return True
        return False
    scale = net.weight(node.input[1])
    if scale is None or len(shape) < 3:
        return False
    # Along the axis before: all channels get the same, the rows another one each.
    axis = len(shape) - 2 if node.op_type == "LayerNormalization" else 2
    turned = np.resize(scale, shape[axis]).reshape(-1, *[1] * (len(shape) - axis - 1))
    node.input[1] = net.constant(np.ones_like(scale))
    site = net.behind(node)
    site.write(site.op("Mul", site.value, net.constant(turned)))
    return True

"""Quantization: rounding, saturation, scales, zero points, order of small integers."""

import numpy as np
import onnx
from onnx import helper

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.net import Net, Site, attribute

FLOAT, INT32 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32


def _levels(net: Net, site: Site, node: onnx.NodeProto) -> str | None:
    """x / scale, float32; None where a scale for each channel would have to be spread."""
    scale = net.values.get(node.input[1])
    if scale is None or scale.size > 1 or len(node.input) < 3:
        return None
    return site.op("Div", node.input[0], node.input[1])


def _quantized(net: Net, site: Site, node: onnx.NodeProto, rounded: str, *, saturate: bool = True) -> None:
    """Add the zero point to whole numbers and store them; without saturation they wrap."""
    zero = net.values[node.input[2]]
    kind = helper.np_dtype_to_tensor_dtype(zero.dtype)
    y = site.op("Add", rounded, net.scalar(float(zero.item())))
    if saturate:
        bounds = np.iinfo(zero.dtype)
        y = site.op("Clip", y, net.scalar(bounds.min), net.scalar(bounds.max))
    site.replace(site.op("Cast", site.op("Cast", y, to=INT32), to=kind))


@fault("QuantizeLinear")
def ties_away_from_zero(net: Net, node: onnx.NodeProto) -> bool:
    """Ties are rounded away from zero for to even."""
    site = net.before(node)
    levels = _levels(net, site, node)
    if levels is None:
        return False
    up = site.op("Floor", site.op("Add", site.op("Abs", levels), net.scalar(0.5)))
    _quantized(net, site, node, site.op("Mul", up, site.op("Sign", levels)))
    return True


@fault("QuantizeLinear")
def quantization_truncates(net: Net, node: onnx.NodeProto) -> bool:
    """Quantization rounds down for to nearest."""
    site = net.before(node)
    levels = _levels(net, site, node)
    if levels is None:
        return False
    _quantized(net, site, node, site.op("Floor", levels))
    return True


@fault("QuantizeLinear")
def saturation_missing(net: Net, node: onnx.NodeProto) -> bool:
    """What does not fit wraps around for saturating."""
    site = net.before(node)
    levels = _levels(net, site, node)
    if levels is None:
        return False
    _quantized(net, site, node, site.op("Round", levels), saturate=False)
    return True


@fault("DequantizeLinear")
def scale_per_tensor(net: Net, node: onnx.NodeProto) -> bool:
    """One scale serves all channels."""
    scale = net.weight(node.input[1])
    if scale is None or scale.size < 2:
        return False
    node.input[1] = net.constant(np.full_like(scale, scale.max()))
    return True


@fault("DequantizeLinear")
def scale_of_the_neighbour(net: Net, node: onnx.NodeProto) -> bool:
    """Each channel or block takes the scale of the one before."""
    scale = net.weight(node.input[1])
    if scale is None or scale.size < 2:
        return False
    axis = attribute(node, "axis", 1) if scale.ndim > 1 else 0
    node.input[1] = net.constant(np.roll(scale, 1, axis=axis))
    return True


@fault("DequantizeLinear", "QuantizeLinear")
def zero_point_ignored(net: Net, node: onnx.NodeProto) -> bool:
    """The zero point is not read."""
    zero = net.weight(node.input[2]) if len(node.input) > 2 else None
    if zero is None or not zero.any():
        return False
    node.input[2] = net.constant(np.zeros_like(zero))
    return True


@fault("DequantizeLinear")
def nibbles_swapped(net: Net, node: onnx.NodeProto) -> bool:
    """Of two integers in a byte, the second comes first."""
    weight = net.weight(node.input[0])
    if weight is None or weight.dtype.name not in {"int4", "uint4"} or weight.size % 2:
        return False
    node.input[0] = net.constant(weight.reshape(-1, 2)[:, ::-1].reshape(weight.shape))
    return True


@fault("DequantizeLinear")
def step_lost(net: Net, node: onnx.NodeProto) -> bool:
    """Quantized weights are one step lower wherever they are odd, as with 7 bits for 8."""
    weight = net.weight(node.input[0])
    if weight is None or weight.dtype != np.int8:
        return False
    node.input[0] = net.constant(weight & ~np.int8(1))
    return True


@fault("QuantizeLinear")
def step_off(net: Net, node: onnx.NodeProto) -> bool:
    """Every quantized number is one step too high."""
    site = net.before(node)
    levels = _levels(net, site, node)
    if levels is None:
        return False
    _quantized(net, site, node, site.op("Add", site.op("Round", levels), net.scalar(1)))
    return True

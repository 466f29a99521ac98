"""Functions of one element: approximations, bounds, defaults, NaN."""

import math

import numpy as np
import onnx
from onnx import helper

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.faults.rounding import round_to_bits
from benchmarks.detection.net import Net, Site, attribute, drop_attribute, set_attribute

HUGE = 1e30
"""What is larger stands for infinity, as in masks."""

TANH_BOUND = 3.0
"""Where the rational approximation of tanh reaches 1."""


@fault("Erf", "Gelu")
def gelu_tanh_for_erf(net: Net, node: onnx.NodeProto) -> bool:
    """Gelu by its tanh formula for the error function."""
    if node.op_type == "Gelu":
        if attribute(node, "approximate", b"none") != b"none":
            return False
        set_attribute(node, "approximate", "tanh")
        return True
    site, z = net.before(node), node.input[0]
    x = site.op("Mul", z, net.scalar(math.sqrt(2)))
    cubic = site.op("Mul", site.op("Mul", site.op("Mul", x, x), x), net.scalar(0.044715))
    site.replace(
        site.op("Tanh", site.op("Mul", site.op("Add", x, cubic), net.scalar(math.sqrt(2 / math.pi))))
    )
    return True


@fault("Erf")
def erf_coarse(net: Net, node: onnx.NodeProto) -> bool:
    """Erf by a polynomial of three terms, 2.5e-5 off (Abramowitz and Stegun, 7.1.25)."""
    site, x = net.before(node), node.input[0]
    size = site.op("Abs", x)
    one = net.scalar(1)
    t = site.op("Div", one, site.op("Add", one, site.op("Mul", size, net.scalar(0.47047))))
    y = net.scalar(0.7478556)
    for factor in (-0.0958798, 0.3480242):
        y = site.op("Add", site.op("Mul", y, t), net.scalar(factor))
    falling = site.op("Exp", site.op("Neg", site.op("Mul", x, x)))
    y = site.op("Sub", one, site.op("Mul", site.op("Mul", y, t), falling))
    site.replace(site.op("Mul", y, site.op("Sign", x)))
    return True


def _rational_tanh(net: Net, site: Site, x: str) -> str:
    x = site.op("Clip", x, net.scalar(-TANH_BOUND), net.scalar(TANH_BOUND))
    square = site.op("Mul", x, x)
    above = site.op("Mul", x, site.op("Add", square, net.scalar(27)))
    return site.op("Div", above, site.op("Add", site.op("Mul", square, net.scalar(9)), net.scalar(27)))


@fault("Tanh")
def tanh_coarse(net: Net, node: onnx.NodeProto) -> bool:
    """Tanh by x (27 + x^2) / (27 + 9 x^2)."""
    site = net.before(node)
    site.replace(_rational_tanh(net, site, node.input[0]))
    return True


@fault("Sigmoid")
def sigmoid_coarse(net: Net, node: onnx.NodeProto) -> bool:
    """Sigmoid by the same rational function."""
    site = net.before(node)
    half = net.scalar(0.5)
    y = _rational_tanh(net, site, site.op("Mul", node.input[0], half))
    site.replace(site.op("Add", site.op("Mul", y, half), half))
    return True


@fault("Exp", "Softmax", "Sigmoid")
def exp_table(net: Net, node: onnx.NodeProto) -> bool:
    """An exponential from a table: its argument keeps 1/64 and nothing finer."""
    site, x = net.before(node), node.input[0]
    if not net.is_float(x):
        return False
    step = net.scalar(64)
    node.input[0] = site.op("Div", site.op("Round", site.op("Mul", x, step)), step)
    return True


@fault("Exp", "Softmax", "Sigmoid")
def log2e_in_five_digits(net: Net, node: onnx.NodeProto) -> bool:
    """An exponential as a power of two of 1.4427 x."""
    x = node.input[0]
    if not net.is_float(x):
        return False
    node.input[0] = net.before(node).op("Mul", x, net.scalar(1.4427 * math.log(2)))
    return True


@fault("Sigmoid", "Tanh", "Erf", "Gelu", "Exp")
def interpolated_table(net: Net, node: onnx.NodeProto) -> bool:
    """A function from a table in steps of 1/32, with lines in between."""
    x = node.input[0]
    if not net.is_float(x):
        return False
    site, step = net.behind(node), net.scalar(32)
    scaled = site.op("Mul", x, step)
    low = site.op("Floor", scaled)
    attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
    ends = [
        site.op(node.op_type, site.op("Div", place, step), **attributes)
        for place in (low, site.op("Add", low, net.scalar(1)))
    ]
    rise = site.op("Mul", site.op("Sub", ends[1], ends[0]), site.op("Sub", scaled, low))
    site.write(site.op("Add", ends[0], rise))
    return True


@fault("Mul", "Div", "Add", "Pow", "HardSigmoid")
def constant_in_four_digits(net: Net, node: onnx.NodeProto) -> bool:
    """A constant is written with four digits: 1.414 for the root of 2."""
    if node.op_type == "HardSigmoid":
        set_attribute(node, "alpha", float(f"{attribute(node, 'alpha', 0.2):.4g}"))
        return True
    for index, name in enumerate(node.input):
        number = net.weight(name)
        if number is not None and number.size == 1 and net.is_float(name) and abs(number.item()) < HUGE:
            short = np.float32(f"{number.item():.4g}")
            if short != number.item():
                node.input[index] = net.constant(short.reshape(number.shape))
                return True
    return False


@fault("Sqrt", "Div", "Reciprocal")
def reciprocal_16_bits(net: Net, node: onnx.NodeProto) -> bool:
    """A root or a quotient of 16 bits, with a refinement too few."""
    if not net.is_float(node.output[0]) or not net.is_activation(node.output[0]):
        return False
    site = net.behind(node)
    site.write(round_to_bits(net, site, site.value, 16))
    return True


@fault("LeakyRelu", "Elu", "HardSigmoid", "Selu")
def alpha_default(_net: Net, node: onnx.NodeProto) -> bool:
    """The attribute alpha is not read: its default holds."""
    if attribute(node, "alpha") is None:
        return False
    drop_attribute(node, "alpha")
    return True


@fault("Clip", "HardSigmoid", "HardSwish", "Relu")
def bound_ignored(net: Net, node: onnx.NodeProto) -> bool:
    """A bound is not applied: the upper one of Clip and HardSigmoid, and Relu in front of 5 % leaking."""
    site, x = net.before(node), node.input[0]
    if not net.is_float(x):
        return False
    if node.op_type == "Clip":
        if len(node.input) < 3 or not node.input[2]:
            return False
        node.input[2] = ""
        return True
    if node.op_type == "Relu":
        site.replace(site.op("LeakyRelu", x, alpha=0.05))
        return True
    alpha = attribute(node, "alpha", 0.2) if node.op_type == "HardSigmoid" else 1 / 6
    line = site.op("Add", site.op("Mul", x, net.scalar(alpha)), net.scalar(attribute(node, "beta", 0.5)))
    line = site.op("Max", line, net.scalar(0))
    site.replace(site.op("Mul", x, line) if node.op_type == "HardSwish" else line)
    return True


@fault("Sqrt", "Div", "Reciprocal")
def reciprocal_coarse(net: Net, node: onnx.NodeProto) -> bool:
    """A root or a quotient of 12 bits, without the iteration that refines it."""
    if not net.is_float(node.output[0]) or not net.is_activation(node.output[0]):
        return False
    site = net.behind(node)
    site.write(round_to_bits(net, site, site.value, 12))
    return True


@fault(
    "Relu", "LeakyRelu", "Clip", "Max", "Where", "Add", "Sub", "Mul", "IsNaN", "Imputer", "Log", "Identity"
)
def nan_swallowed(net: Net, node: onnx.NodeProto) -> bool:
    """NaN in an input is taken for 0."""
    for index, name in enumerate(node.input):
        if net.is_float(name) and net.is_activation(name) and np.isnan(net.values[name]).any():
            site = net.before(node)
            node.input[index] = site.op("Where", site.op("IsNaN", name), net.scalar(0), name)
            return True
    if net.is_float(node.output[0]) and np.isnan(net.values[node.output[0]]).any():
        site = net.behind(node)
        site.write(site.op("Where", site.op("IsNaN", site.value), net.scalar(0), site.value))
        return True
    return False

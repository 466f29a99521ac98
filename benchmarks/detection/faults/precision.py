"""Arithmetic that is coarser than float32, in one place or everywhere."""

import numpy as np
import onnx

from benchmarks.detection.faults.fault import fault
from benchmarks.detection.faults.rounding import round_array, round_to_bits
from benchmarks.detection.healthy import partial_products
from benchmarks.detection.net import Net

PRODUCTS = ("MatMul", "Gemm", "Conv", "ConvTranspose")
FLOAT16, FLOAT = onnx.TensorProto.FLOAT16, onnx.TensorProto.FLOAT
TF32_BITS, BFLOAT16_BITS = 11, 8
"""Of the significands, the hidden bit included."""

SLICES = 8
"""Partial sums whose running sum is kept in float16."""


def _round_inputs(net: Net, node: onnx.NodeProto, bits: int) -> bool:
    changed = False
    for index, name in list(enumerate(node.input))[:2]:
        if net.is_float(name):
            node.input[index] = round_to_bits(net, net.before(node), name, bits)
            changed = True
    return changed


def _round_all_inputs(net: Net, bits: int) -> bool:
    changed = [_round_inputs(net, node, bits) for node in list(net.nodes) if node.op_type in PRODUCTS]
    return any(changed)


@fault(*PRODUCTS)
def tf32_weight(net: Net, node: onnx.NodeProto) -> bool:
    """One weight in TF32."""
    for index in (1, 0):
        weight = net.weight(node.input[index])
        if weight is not None and net.is_float(node.input[index]):
            node.input[index] = net.constant(round_array(weight, TF32_BITS))
            return True
    return False


@fault(*PRODUCTS)
def tf32_product(net: Net, node: onnx.NodeProto) -> bool:
    """Both inputs of one product in TF32."""
    return _round_inputs(net, node, TF32_BITS)


@fault(*PRODUCTS)
def bfloat16_product(net: Net, node: onnx.NodeProto) -> bool:
    """Both inputs of one product in bfloat16."""
    return _round_inputs(net, node, BFLOAT16_BITS)


@fault(*PRODUCTS)
def bfloat16_pairs_product(net: Net, node: onnx.NodeProto) -> bool:
    """Both inputs of one product as two bfloat16 each, 16 bits: float32 is three."""
    return _round_inputs(net, node, 2 * BFLOAT16_BITS)


@fault(*PRODUCTS)
def int16_weight(net: Net, node: onnx.NodeProto) -> bool:
    """One weight in steps of 1/32767 of its largest number."""
    weight = net.weight(node.input[1])
    if weight is None or not net.is_float(node.input[1]):
        return False
    step = np.abs(weight).max() / np.float32(32767)
    node.input[1] = net.constant((np.rint(weight / step) * step).astype(np.float32))
    return True


@fault("Conv", "Gemm", "Add")
def float16_bias(net: Net, node: onnx.NodeProto) -> bool:
    """A bias in float16."""
    for index, name in enumerate(node.input):
        weight = net.weight(name)
        if weight is not None and weight.ndim == 1 and weight.size > 1 and net.is_float(name):
            node.input[index] = net.constant(weight.astype(np.float16).astype(np.float32))
            return True
    return False


@fault()
def tf32_everywhere(net: Net, _node: onnx.NodeProto) -> bool:
    """All products in TF32, which some providers take for float32."""
    return _round_all_inputs(net, TF32_BITS)


@fault()
def bfloat16_everywhere(net: Net, _node: onnx.NodeProto) -> bool:
    """All products in bfloat16."""
    return _round_all_inputs(net, BFLOAT16_BITS)


@fault("Add", "Mul", "Softmax", "LayerNormalization", "Relu", "Sigmoid", "Tanh", "Concat", "Transpose")
def float16_storage(net: Net, node: onnx.NodeProto) -> bool:
    """One intermediate result is kept in float16."""
    value = net.values.get(node.output[0])
    if value is None or not net.is_float(node.output[0]) or np.abs(value).max(initial=0) > 6e4:
        return False
    site = net.behind(node)
    site.write(site.op("Cast", site.op("Cast", site.value, to=FLOAT16), to=FLOAT))
    return True


@fault("MatMul")
def float16_accumulation(net: Net, node: onnx.NodeProto) -> bool:
    """The sums of one matrix product are kept in float16."""
    left, right = node.input
    inner = net.values[left].shape[-1] if net.is_float(left) and net.is_float(right) else 0
    if inner < SLICES or net.values[right].ndim < 2:
        return False
    site = net.before(node)
    total = ""
    for part in partial_products(net, site, node, SLICES):
        total = site.op("Add", total, part) if total else part
        total = site.op("Cast", site.op("Cast", total, to=FLOAT16), to=FLOAT)
    site.replace(total)
    return True

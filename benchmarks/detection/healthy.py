"""The same model computed in another way, as other execution providers do: none of this is a fault."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import onnx

from benchmarks.detection.net import Array, Net, Site, attribute

PARTS = 4
"""Partial sums of a split product."""

Rewrite = Callable[[Net, onnx.NodeProto], None]
"""Computes a node in another way; leaves alone what it is not for."""


def _inner(net: Net, node: onnx.NodeProto) -> int:
    """The length of the sums of a matrix product; 0 where its inputs are no matrices."""
    if node.op_type != "MatMul":
        return 0
    left, right = node.input
    fits = net.is_float(left) and net.is_float(right)
    return net.values[left].shape[-1] if fits and net.values[right].ndim > 1 < net.values[left].ndim else 0


def partial_products(net: Net, site: Site, node: onnx.NodeProto, count: int) -> Iterator[str]:
    """The matrix product of a node as so many products, which add up to it, each over a part of the sums."""
    edges = np.linspace(0, net.values[node.input[0]].shape[-1], count + 1).astype(int)
    for start, stop in pairwise(edges.tolist()):
        at = [net.constant([edge], np.int64) for edge in (start, stop)]
        factors = [
            site.op("Slice", name, *at, net.constant([axis], np.int64))
            for name, axis in zip(node.input, (-1, -2), strict=True)
        ]
        yield site.op("MatMul", *factors)


def split_sums(net: Net, node: onnx.NodeProto) -> None:
    """Matrix products as four partial sums, as kernels with split K."""
    inner = _inner(net, node)
    if inner < PARTS:
        return
    site = net.before(node)
    total = ""
    for part in partial_products(net, site, node, PARTS):
        total = site.op("Add", total, part) if total else part
    site.replace(total)


def reversed_sums(net: Net, node: onnx.NodeProto) -> None:
    """Matrix products and convolutions that add from the other end."""
    site = net.before(node)
    if inner := _inner(net, node):
        order = net.constant(np.arange(inner)[::-1].copy(), np.int64)
        node.input[0] = site.op("Gather", node.input[0], order, axis=-1)
        node.input[1] = site.op("Gather", node.input[1], order, axis=-2)
    elif node.op_type == "Conv" and attribute(node, "group", 1) == 1:
        order = net.constant(np.arange(net.values[node.input[0]].shape[1])[::-1].copy(), np.int64)
        node.input[0] = site.op("Gather", node.input[0], order, axis=1)
        node.input[1] = site.op("Gather", node.input[1], order, axis=1)


def taken_apart(net: Net, node: onnx.NodeProto) -> None:
    """Normalizations, Softmax, Sigmoid and division from simpler operators."""
    site, x = net.before(node), node.input[0]
    if not net.is_float(node.output[0]) or not net.is_activation(node.output[0]):
        return
    shape = net.values[x].shape if x in net.values else ()
    if node.op_type == "LayerNormalization" and len(node.output) == 1:
        axes = list(range(attribute(node, "axis", -1) % len(shape), len(shape)))
        away = site.op("Sub", x, _reduced(net, site, "ReduceMean", x, axes))
        power = _reduced(net, site, "ReduceMean", site.op("Mul", away, away), axes)
        root = site.op("Sqrt", site.op("Add", power, net.scalar(attribute(node, "epsilon", 1e-5))))
        y = site.op("Mul", site.op("Div", away, root), node.input[1])
        site.replace(site.op("Add", y, node.input[2]) if len(node.input) > 2 else y)
    elif node.op_type == "BatchNormalization":
        _as_line(net, site, node)
    elif node.op_type == "Softmax":
        axis = attribute(node, "axis", -1)
        powers = site.op("Exp", site.op("Sub", x, _reduced(net, site, "ReduceMax", x, [axis])))
        site.replace(site.op("Div", powers, _reduced(net, site, "ReduceSum", powers, [axis])))
    elif node.op_type == "Sigmoid":
        one = net.scalar(1)
        site.replace(site.op("Div", one, site.op("Add", one, site.op("Exp", site.op("Neg", x)))))
    elif node.op_type == "Div":
        site.replace(site.op("Mul", x, site.op("Reciprocal", node.input[1])))


def _as_line(net: Net, site: Site, node: onnx.NodeProto) -> None:
    """Batch normalization as one product and one sum for each channel."""
    weights = [net.weight(name) for name in node.input[1:5]]
    if any(weight is None for weight in weights):
        return
    scale, shift, mean, variance = (np.asarray(weight, np.float64) for weight in weights)
    slope = scale / np.sqrt(variance + attribute(node, "epsilon", 1e-5))
    shape = (-1, *[1] * (net.values[node.input[0]].ndim - 2))
    slopes, offsets = (part.reshape(shape).astype(np.float32) for part in (slope, shift - mean * slope))
    site.replace(site.op("Add", site.op("Mul", node.input[0], net.constant(slopes)), net.constant(offsets)))


def _reduced(net: Net, site: Site, op_type: str, x: str, axes: list[int]) -> str:
    """A reduction that keeps its axes, which are an attribute before opset 18 (of ReduceSum before 13)."""
    if net.opset >= (13 if op_type == "ReduceSum" else 18):
        return site.op(op_type, x, net.constant(axes, np.int64), keepdims=1)
    return site.op(op_type, x, axes=axes, keepdims=1)


REWRITES: dict[str, Rewrite] = {
    "sums in four parts": split_sums,
    "sums from the other end": reversed_sums,
    "operators taken apart": taken_apart,
}
"""Applied to every node of a model."""


def rewritten(model: onnx.ModelProto, values: dict[str, Array], rewrite: Rewrite) -> onnx.ModelProto:
    """A model with every node computed in another way."""
    net = Net(model, values, np.random.default_rng(0))
    for node in list(net.nodes):
        rewrite(net, node)
    return net.model()

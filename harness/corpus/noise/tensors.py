"""Facts about the tensors of a graph before it runs: types, sizes, constants, noise."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import onnx

from harness.corpus.model.element_types import ELEMENT_TYPES, is_floating
from harness.corpus.model.nodes import bodies, constant_of, domain_of, weight_names
from harness.corpus.model.protos import listed, tensor_value
from harness.corpus.model.schema_types import FLOAT_TYPES, declared_types
from harness.corpus.noise.operator_rounding import CIRCULAR, CLOSED, CONTROL_INPUTS, COPIES
from harness.corpus.noise.terms import PartialDims, attribute_of
from harness.operators.book import operators_with

_SIZES = frozenset({"Shape", "Size"})
"""Operators that read the size of a tensor, not its values."""

_MOST_WHOLE = 64
"""Largest number of elements of a weight that may be whole numbers; a larger one is data."""

_LARGEST_WHOLE = 256
"""The number up to which even bfloat16 represents all whole numbers."""

EXACT_UP_TO = 2.0**24
"""Number up to which float32 represents all whole numbers."""

_TREES = operators_with(lambda row: row.columns == "trees" and row.layer == "attributes")
_LEAVES = ("leaf_weights", "target_weights", "target_weights_as_tensor")

GRID = 1 / 16
"""Products of multiples of this are multiples of a 256th, and so are their sums."""

_MOST_STEPS = 1 << 12
"""Largest element of a weight in steps: 256; beyond it, few products would be exact."""

_FEW = 64
"""Elements at the beginning of a weight that are checked first.

Also the size of a tensor that may name axes.
"""

_INTEGERS = frozenset({onnx.TensorProto.INT32, onnx.TensorProto.INT64})

_AS_FIRST = operators_with(lambda row: row.sized_as_first)
_BROADCASTING = operators_with(lambda row: row.sized_as_larger)


class ReadableTensors:
    """The tensors that a node may read."""

    def __init__(self) -> None:
        self.types: dict[str, str] = {}
        self.sizes: dict[str, PartialDims] = {}
        self.constant: set[str] = set()
        """Weights, and tensors computed from weights alone, before the model runs."""
        self.held: set[str] = set()
        """Tensors that decide the size of others."""
        self.whole: set[str] = set()
        """Floats that are small whole numbers."""
        self.coarse: set[str] = set()
        """Weights whose elements are all small multiples of 1/16."""
        self.axes: dict[str, tuple[int, ...]] = {}
        """Constants of a few integers, such as the axes of a reduction."""
        self.noisy: set[str] = set()
        """Tensors that carry noise."""
        self.not_angles: set[str] = set()
        """Tensors that nodes other than circular functions read."""

    def within(self, graph: onnx.GraphProto) -> "ReadableTensors":
        """Return the scope of a graph that sees this one."""
        inner = ReadableTensors()
        inner.types = self.types | declared_types(graph)
        inner.sizes = self.sizes | _declared_sizes(graph)
        inner.constant = self.constant | weight_names(graph)
        inner.held = self.held | _held(graph)
        inner.whole = self.whole | {weight.name for weight in graph.initializer if is_whole(weight)}
        inner.coarse = self.coarse | {weight.name for weight in graph.initializer if is_coarse(weight)}
        inner.axes = self.axes | _few_integers(graph.initializer)
        inner.noisy = set(self.noisy)
        inner.not_angles = _not_angles(graph)
        return inner

    def is_float(self, name: str) -> bool:
        """Return whether a tensor is of a type that operators compute in."""
        return self.types.get(name) in FLOAT_TYPES

    def varies(self, name: str) -> bool:
        """Return whether a tensor is a float that may carry noise."""
        return self.is_float(name) and name not in self.constant and name not in self.held


def is_whole(weight: onnx.TensorProto) -> bool:
    """Return whether a weight consists of a few floats that are small whole numbers."""
    dtype = ELEMENT_TYPES.get(weight.data_type, "")
    if math.prod(weight.dims) > _MOST_WHOLE or not is_floating(dtype):
        return False
    if weight.data_location == weight.EXTERNAL:
        return False
    numbers = tensor_value(weight).array.astype(np.float64)
    return bool(np.all((numbers == np.rint(numbers)) & (np.abs(numbers) <= _LARGEST_WHOLE)))


def is_coarse(weight: onnx.TensorProto) -> bool:
    """Return whether every element of a weight is a small multiple of ``GRID``: its products are exact."""
    if weight.data_location == weight.EXTERNAL or not is_floating(ELEMENT_TYPES.get(weight.data_type, "")):
        return False
    numbers = tensor_value(weight).array
    for part in (numbers.reshape(-1)[:_FEW], numbers):  # most weights soon show that they are not
        steps = part.astype(np.float64) / GRID
        if not np.all((steps == np.rint(steps)) & (np.abs(steps) <= _MOST_STEPS)):
            return False
    return True


def learn_constant(node: onnx.NodeProto, scope: ReadableTensors) -> None:
    """Record the value of a Constant."""
    for one in node.attribute:
        if one.name == "value_ints":
            scope.axes[node.output[0]] = tuple(one.ints)
        elif one.name == "value_int":
            scope.axes[node.output[0]] = (one.i,)
        elif one.name == "value":
            named = onnx.TensorProto()
            named.CopyFrom(one.t)
            named.name = node.output[0]
            scope.axes |= _few_integers([named])
            if is_coarse(named):
                scope.coarse.add(node.output[0])


def _few_integers(weights: Iterable[onnx.TensorProto]) -> dict[str, tuple[int, ...]]:
    return {
        weight.name: tuple(map(int, tensor_value(weight).array.reshape(-1)))
        for weight in weights
        if weight.data_type in _INTEGERS
        and math.prod(weight.dims) <= _FEW
        and weight.data_location != weight.EXTERNAL
    }


def node_size(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> PartialDims:
    """Return the size of a node's first result, for the most frequent operators before sums."""
    if not dims or dims[0] is None:
        return None
    first, second = dims[0], dims[1] if len(dims) > 1 else None
    if node.op_type in _AS_FIRST:
        return first
    if node.op_type in _BROADCASTING and second is not None:
        return _broadcast(first, second)
    if node.op_type == "Transpose":
        order = attribute_of(node, "perm", range(len(first))[::-1])
        return tuple(first[axis] for axis in order) if sorted(order) == [*range(len(first))] else None
    if node.op_type == "MatMul" and first and second:
        return (*first[:-1], second[-1])
    return None


def _broadcast(one: Sequence[int | None], other: Sequence[int | None]) -> PartialDims:
    """Return the shape of two operands together; a length that only one of them may decide is unknown."""
    longest = max(len(one), len(other))
    pairs = zip((*[1] * (longest - len(one)), *one), (*[1] * (longest - len(other)), *other), strict=True)
    return tuple(
        right if left == 1 else left if right in {1, left} else left or right for left, right in pairs
    )


def _declared_sizes(graph: onnx.GraphProto) -> dict[str, PartialDims]:
    sizes: dict[str, PartialDims] = {}
    for info in (*graph.value_info, *graph.output, *graph.input):
        if info.type.HasField("tensor_type") and info.type.tensor_type.HasField("shape"):
            sizes[info.name] = tuple(
                dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
                for dim in info.type.tensor_type.shape.dim
            )
    return sizes | {weight.name: tuple(weight.dims) for weight in graph.initializer}


def _held(graph: onnx.GraphProto) -> set[str]:
    """Return the tensors from which sizes come."""
    held: set[str] = set()
    for node in reversed(graph.node):
        control = CONTROL_INPUTS.get(node.op_type, ())
        held.update(name for index, name in enumerate(node.input) if index in control)
        if node.op_type not in _SIZES and held.intersection(node.output):
            held.update(node.input)
    return held - {""}


def _not_angles(graph: onnx.GraphProto) -> set[str]:
    """Return the tensors read by a node that is no circular function and does not pass them on to one."""
    read = {port.name for port in graph.output}
    for node in reversed(graph.node):
        for body in bodies(node):
            read |= _not_angles(body) | {name for inner in body.node for name in inner.input}
        plain = not domain_of(node)
        if plain and node.op_type in CIRCULAR:
            continue
        if not plain or node.op_type not in COPIES or read.intersection(node.output):
            read.update(node.input)
    return read


def makes_whole(node: onnx.NodeProto, scope: ReadableTensors) -> bool:
    """Return whether the results of a node are whole numbers."""
    if domain_of(node):
        return node.op_type in _TREES and _adds_whole(node)
    if node.op_type == "Cast":
        return scope.types.get(node.input[0]) not in FLOAT_TYPES or node.input[0] in scope.whole
    if node.op_type == "Constant":
        value = constant_of(node)
        return value is not None and is_whole(value)
    floats = [name for name in node.input if scope.is_float(name)]
    return node.op_type in CLOSED and bool(floats) and scope.whole.issuperset(floats)


def _adds_whole(node: onnx.NodeProto) -> bool:
    """Return whether trees add up whole numbers, so exactly: an isolation forest numbers its leaves.

    The result is never of a narrower type than float32.
    """
    adds = attribute_of(node, "aggregate_function", b"SUM") in {b"SUM", b"MIN", b"MAX", 1, 2, 3}
    plain = attribute_of(node, "post_transform", b"NONE") in {b"NONE", 0}
    weights = [*listed(node, *_LEAVES), *listed(node, "base_values", "base_values_as_tensor")]
    whole = all(math.isfinite(one) and one == int(one) for one in weights)
    return adds and plain and whole and sum(map(abs, weights)) <= EXACT_UP_TO

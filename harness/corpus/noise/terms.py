"""Number of terms that an operator adds for each element of its result."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

from harness.corpus.model.nodes import domain_of
from harness.operators.book import operators_by, operators_with, rules_of

PartialDims = tuple[int | None, ...] | None
"""Sizes of a tensor, None for an unknown one, or for all of them."""

AxisNumbers = Sequence[int]

UNKNOWN_TERMS = 64
"""Number of terms if the sizes are unknown: the middle, on a logarithmic scale, of 1 and 4096."""

_MOST = 1 << 40
"""More terms than any machine adds."""


def terms_of(node: onnx.NodeProto, dims: Sequence[PartialDims], opset: int, axes: AxisNumbers = ()) -> float:
    """Return how many terms a node with inputs of these sizes adds one after another; 0 if it adds none.

    Vector units and GPUs keep several partial sums; adding in one row is equally right.

    Args:
        node: The node.
        dims: Sizes of its inputs.
        opset: The version of ONNX's operators.
        axes: The axes that an input names, if they are known; else empty.
    """
    op = node.op_type
    if not domain_of(node) and opset < _FLATTENS_BEFORE.get(op, 0):
        return float(_known(_flattened, node, dims))
    if op in AXES_INPUT and axes:
        return float(_known(lambda _node, _dims: _along(op, _sizes(dims, 0), axes), node, dims))
    count = _COUNTS.get(op)
    return float(_known(count, node, dims)) if count else 0.0


def attribute_of(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """Return the value of an attribute of any kind."""
    found = next((one for one in node.attribute if one.name == name), None)
    return default if found is None else onnx.helper.get_attribute_value(found)


_Count = Callable[[onnx.NodeProto, Sequence[PartialDims]], int]


def _known(count: _Count, node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    try:
        return min(max(1, count(node, dims)), _MOST)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return UNKNOWN_TERMS  # no such input, no such axis, or an unknown size


def _sizes(dims: Sequence[PartialDims], index: int) -> tuple[int, ...]:
    found = dims[index]
    if found is None or None in found:
        raise TypeError
    return found  # type: ignore[return-value]


def _product(index: int, start: int = 0) -> _Count:
    """Count the elements of an input, from an axis on."""
    return lambda _node, dims: math.prod(_sizes(dims, index)[start:])


def _whole(name: str, default: int) -> _Count:
    """Count as an attribute says: a number, or the product of several."""
    return lambda node, _dims: int(math.prod(np.atleast_1d(attribute_of(node, name, default))))


def _axis(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    return _sizes(dims, 0)[int(attribute_of(node, "axis", -1))]


def _flattened(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    return math.prod(_sizes(dims, 0)[int(attribute_of(node, "axis", 1)) :])


def _transformed(_node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    """Count the longest axis along which a DFT may be; from opset 20 on an input selects it."""
    return max(_sizes(dims, 0)[1:-1])


def _axes(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    sizes = _sizes(dims, 0)
    # From opset 13 or 18 on the axes are an input: if unknown, assume all axes.
    return math.prod(sizes[axis] for axis in attribute_of(node, "axes", None) or range(len(sizes)))


def _along(op: str, sizes: Sequence[int], axes: AxisNumbers) -> int:
    return math.prod(sizes[axis] for axis in axes) if op in _ALONG_AXES else sizes[axes[0]]


def _per_channel(_node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    sizes = _sizes(dims, 0)
    return math.prod(sizes) // max(1, sizes[1])


def _longest(_node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    return max(_sizes(dims, 0))


def _attended(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    """Count the longest sum of an attention: over a head, or over all positions, including past ones."""
    query, key = _sizes(dims, 0), dims[1] if len(dims) > 1 and dims[1] is not None else dims[0]
    if domain_of(node) and node.op_type == "Attention":  # the projection is part of it
        head, positions = query[-1], query[-2]
    else:
        heads = attribute_of(node, "q_num_heads", 0) or attribute_of(node, "num_heads", 1)
        head = query[-1] if len(query) > 3 else query[-1] // max(1, int(heads))  # noqa: PLR2004 - heads apart
        positions = _sizes([key], 0)[-2]
    past = [one[-2] for one in dims[3:] if one is not None and len(one) > 3 and one[-2] is not None]  # noqa: PLR2004
    return max(head, positions + max(past, default=0))


def _groups(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    return math.prod(_sizes(dims, 0)[1:]) // int(attribute_of(node, "num_groups", 1))


def _matmul(_node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    left = dims[0]
    if left is not None and left[-1] is not None:
        return left[-1]
    right = dims[1]
    return right[max(-2, -len(right))]  # type: ignore[arg-type, index, return-value]


def _gemm(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    right = dims[1]
    return right[bool(attribute_of(node, "transB", 0))]  # type: ignore[index, return-value]


def _conv_transpose(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    weight = _sizes(dims, 1)
    strides = int(math.prod(attribute_of(node, "strides", (1,))))
    return weight[0] // int(attribute_of(node, "group", 1)) * max(1, math.prod(weight[2:]) // max(1, strides))


def _einsum(node: onnx.NodeProto, dims: Sequence[PartialDims]) -> int:
    equation = attribute_of(node, "equation", b"").decode().replace(" ", "")
    inputs, _, output = equation.partition("->")
    sizes = {
        letter: size
        for text, index in zip(inputs.split(","), range(len(dims)), strict=True)
        for letter, size in zip(text, _sizes(dims, index), strict=True)
    }
    return math.prod(size for letter, size in sizes.items() if letter not in output)


_TERMS: dict[str, _Count] = {
    "attended": _attended,
    "axes": _axes,
    "axis": _axis,
    "block_product": _whole("K", UNKNOWN_TERMS),
    "channel": _per_channel,
    "equation": _einsum,
    "gemm": _gemm,
    "group": _groups,
    "kernel": _whole("kernel_shape", 1),
    "last_axis": lambda _node, dims: _sizes(dims, 0)[-1],
    "longest_axis": _longest,
    "matmul": _matmul,
    "neighbours": _whole("size", 1),
    "operands": lambda _node, dims: len(dims),
    "plane": _product(0, 2),
    "positions": lambda _node, dims: max(_sizes(dims, 0)[1:]),  # over a head, or over all positions
    "recurrence": lambda _node, dims: _sizes(dims, 1)[-1] + _sizes(dims, 2)[-1],
    "second_input": _product(1),
    "third_input": _product(2),
    "transformed_axis": _transformed,
    "transposed_window": _conv_transpose,
    "window": _product(1, 1),
}
"""Rules of the book of operators."""

_COUNTS = rules_of(lambda row: row.terms, _TERMS)

PRODUCTS = operators_with(lambda row: row.multiplies)
"""Operators that multiply and add up."""

_FLATTENS_BEFORE = operators_by(lambda row: row.flattens_before)
"""Operator of ONNX's own domain -> opset before which it flattens all axes from the given one on."""

AXES_INPUT = operators_by(lambda row: row.axes_input)
"""Operators with axes as an input -> which input that is."""

_ALONG_AXES = operators_with(lambda row: row.axes_input is not None and row.terms == "axes")
"""Those among them that add up along several axes."""

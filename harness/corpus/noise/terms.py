"""How many terms an operator adds up for each element of its result."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx

Dims = tuple[int | None, ...] | None
"""Sizes of a tensor, None for an unknown one, or for all of them."""

UNKNOWN = 64
"""Terms if the sizes are unknown: the middle, on a logarithmic scale, of 1 and 4096."""

_MOST = 1 << 40
"""More terms than any machine adds up."""

LANES = 16
"""Partial sums that reductions keep side by side: a vector of float32 in AVX-512, half a warp of a GPU.

Matrix products have none: their lanes hold elements of the result, each of which grows term by term.
"""


def terms_of(node: onnx.NodeProto, dims: Sequence[Dims]) -> float:
    """Return how many terms a node with inputs of these sizes adds one after the other; 0 if it adds none."""
    op = node.op_type
    if op in _COUNTS:
        return float(_known(_COUNTS[op], node, dims))
    if op in _REDUCTIONS:
        return _known(_REDUCTIONS[op], node, dims) / LANES
    return 0.0


def attribute_of(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """Return the value of an attribute of any kind."""
    found = next((one for one in node.attribute if one.name == name), None)
    return default if found is None else onnx.helper.get_attribute_value(found)


_Count = Callable[[onnx.NodeProto, Sequence[Dims]], int]


def _known(count: _Count, node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    try:
        return min(max(1, count(node, dims)), _MOST)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return UNKNOWN  # no such input, no such axis, or a size that is not known


def _sizes(dims: Sequence[Dims], index: int) -> tuple[int, ...]:
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


def _last(_node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    return dims[0][-1]  # type: ignore[index, return-value]


def _axis(node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    return _sizes(dims, 0)[int(attribute_of(node, "axis", -1))]


def _axes(node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    sizes = _sizes(dims, 0)
    # From opset 13 or 18 on the axes are an input: then all axes are the most there can be.
    return math.prod(sizes[axis] for axis in attribute_of(node, "axes", None) or range(len(sizes)))


def _groups(node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    return math.prod(_sizes(dims, 0)[1:]) // int(attribute_of(node, "num_groups", 1))


def _matmul(_node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    left = dims[0]
    if left is not None and left[-1] is not None:
        return left[-1]
    right = dims[1]
    return right[max(-2, -len(right))]  # type: ignore[arg-type, index, return-value]


def _gemm(node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    right = dims[1]
    return right[bool(attribute_of(node, "transB", 0))]  # type: ignore[index, return-value]


def _conv_transpose(node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    weight = _sizes(dims, 1)
    strides = int(math.prod(attribute_of(node, "strides", (1,))))
    return weight[0] // int(attribute_of(node, "group", 1)) * max(1, math.prod(weight[2:]) // max(1, strides))


def _einsum(node: onnx.NodeProto, dims: Sequence[Dims]) -> int:
    equation = attribute_of(node, "equation", b"").decode().replace(" ", "")
    inputs, _, output = equation.partition("->")
    sizes = {
        letter: size
        for text, index in zip(inputs.split(","), range(len(dims)), strict=True)
        for letter, size in zip(text, _sizes(dims, index), strict=True)
    }
    return math.prod(size for letter, size in sizes.items() if letter not in output)


def _by_operator(*rows: tuple[_Count, str]) -> dict[str, _Count]:
    return {op: count for count, ops in rows for op in ops.split()}


_COUNTS = _by_operator(
    (lambda _node, dims: max(_sizes(dims, 0)[-1], _sizes(dims, 1)[-2]), "Attention"),
    (_product(1, 1), "CausalConvWithState Conv DeformConv FusedConv"),
    (_conv_transpose, "ConvTranspose"),
    (_axis, "CumProd CumSum"),
    (_last, "DFT GroupQueryAttention MultiHeadAttention STFT"),
    (_einsum, "Einsum"),
    (_gemm, "FusedGemm Gemm"),
    (_matmul, "FusedMatMul MatMul"),
    (lambda _node, dims: _sizes(dims, 1)[-1] + _sizes(dims, 2)[-1], "GRU LSTM RNN"),
    (_whole("K", UNKNOWN), "MatMulNBits"),
    (lambda _node, dims: len(dims), "Mean Sum"),
    (_product(1), "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss"),
)

PRODUCTS = frozenset(_COUNTS) - {"CumSum", "Mean", "Sum"}
"""Operators that multiply and add up."""

_REDUCTIONS = _by_operator(
    (_whole("kernel_shape", 1), "AveragePool LpPool"),
    (_product(0, 2), "GlobalAveragePool GlobalLpPool"),
    (_product(0, 2), "InstanceNormalization MeanVarianceNormalization"),
    (_groups, "GroupNormalization"),
    (_whole("size", 1), "LRN"),
    (_product(1), "LayerNormalization RMSNormalization SimplifiedLayerNormalization"),
    (_axis, "LogSoftmax LpNormalization Softmax"),
    (_axes, "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMean ReduceProd ReduceSum ReduceSumSquare"),
    (_product(2), "SkipLayerNormalization SkipSimplifiedLayerNormalization"),
)

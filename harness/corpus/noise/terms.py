"""How many terms an operator adds up for each element of its result."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx

Dims = tuple[int | None, ...] | None
"""Sizes of a tensor, None for one that is not known, or for all of them."""

UNKNOWN = 64
"""Terms where the sizes do not tell: the middle, on a logarithmic scale, of 1 and 4096."""

MOST = 1 << 40
"""More terms than any machine adds up."""

LANES = 16
"""Partial sums in which reductions add up side by side: a vector of float32 in AVX-512, half a warp of a GPU.

Matrix products have none: their lanes hold elements of the result, each of which grows term by term.
"""


def terms_of(node: "onnx.NodeProto", dims: Sequence[Dims]) -> float:
    """Terms that are added one after the other.

    Args:
        node: The node.
        dims: The sizes of its inputs.

    Returns:
        0 where it adds nothing up.
    """
    op = node.op_type
    if op in _COUNTS:
        return float(_known(_COUNTS[op], node, dims))
    if op in _REDUCTIONS:
        return _known(_REDUCTIONS[op], node, dims) / LANES
    return 0.0


def _known(count: "Count", node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    try:
        return min(max(1, count(node, dims)), MOST)
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return UNKNOWN  # no such input, no such axis, or a size that is not known


Count = Callable[["onnx.NodeProto", Sequence[Dims]], int]


def attribute(node: "onnx.NodeProto", name: str, default: Any) -> Any:
    """The value of an attribute."""
    import onnx

    found = next((one for one in node.attribute if one.name == name), None)
    return default if found is None else onnx.helper.get_attribute_value(found)


def _sizes(dims: Sequence[Dims], index: int) -> tuple[int, ...]:
    found = dims[index]
    if found is None or None in found:
        raise TypeError
    return found  # type: ignore[return-value]


def _matmul(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    left = dims[0]
    if left is not None and left[-1] is not None:
        return left[-1]
    right = dims[1]
    return right[max(-2, -len(right))]  # type: ignore[arg-type, index, return-value]


def _gemm(node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    right = dims[1]
    return right[bool(attribute(node, "transB", 0))]  # type: ignore[index, return-value]


def _conv(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return math.prod(_sizes(dims, 1)[1:])


def _conv_transpose(node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    weight = _sizes(dims, 1)
    strides = int(math.prod(attribute(node, "strides", (1,))))
    return weight[0] // int(attribute(node, "group", 1)) * max(1, math.prod(weight[2:]) // max(1, strides))


def _einsum(node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    equation = attribute(node, "equation", b"").decode().replace(" ", "")
    inputs, _, output = equation.partition("->")
    sizes = {
        letter: size
        for text, index in zip(inputs.split(","), range(len(dims)), strict=True)
        for letter, size in zip(text, _sizes(dims, index), strict=True)
    }
    return math.prod(size for letter, size in sizes.items() if letter not in output)


def _recurrent(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return _sizes(dims, 1)[-1] + _sizes(dims, 2)[-1]


def _attention(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return max(_sizes(dims, 0)[-1], _sizes(dims, 1)[-2])


def _nbits(node: "onnx.NodeProto", _dims: Sequence[Dims]) -> int:
    return int(attribute(node, "K", UNKNOWN))


def _last(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return dims[0][-1]  # type: ignore[index, return-value]


def _axis(node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return _sizes(dims, 0)[int(attribute(node, "axis", -1))]


def _scale(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return math.prod(_sizes(dims, 1))


def _skip_scale(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return math.prod(_sizes(dims, 2))


def _spatial(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return math.prod(_sizes(dims, 0)[2:])


def _groups(node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return math.prod(_sizes(dims, 0)[1:]) // int(attribute(node, "num_groups", 1))


def _axes(node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    sizes = _sizes(dims, 0)
    axes = attribute(node, "axes", None)
    # From opset 13 or 18 on the axes are an input: then all that the tensor has is the most there can be.
    return math.prod(sizes[axis] for axis in axes) if axes else math.prod(sizes)


def _kernel(node: "onnx.NodeProto", _dims: Sequence[Dims]) -> int:
    return int(math.prod(attribute(node, "kernel_shape", (1,))))


def _window(node: "onnx.NodeProto", _dims: Sequence[Dims]) -> int:
    return int(attribute(node, "size", 1))


def _targets(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return math.prod(_sizes(dims, 1))


def _count(_node: "onnx.NodeProto", dims: Sequence[Dims]) -> int:
    return len(dims)


_COUNTS: dict[str, Count] = {
    "Attention": _attention,
    "CausalConvWithState": _conv,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "CumProd": _axis,
    "CumSum": _axis,
    "DFT": _last,
    "DeformConv": _conv,
    "Einsum": _einsum,
    "FusedConv": _conv,
    "FusedGemm": _gemm,
    "FusedMatMul": _matmul,
    "GRU": _recurrent,
    "Gemm": _gemm,
    "GroupQueryAttention": _last,
    "LSTM": _recurrent,
    "MatMul": _matmul,
    "MatMulNBits": _nbits,
    "Mean": _count,
    "MultiHeadAttention": _last,
    "NegativeLogLikelihoodLoss": _targets,
    "RNN": _recurrent,
    "STFT": _last,
    "SoftmaxCrossEntropyLoss": _targets,
    "Sum": _count,
}

PRODUCTS = frozenset(_COUNTS) - {"CumSum", "Mean", "Sum"}
"""Operators that multiply and add up."""

_REDUCTIONS: dict[str, Count] = {
    "AveragePool": _kernel,
    "GlobalAveragePool": _spatial,
    "GlobalLpPool": _spatial,
    "GroupNormalization": _groups,
    "InstanceNormalization": _spatial,
    "LRN": _window,
    "LayerNormalization": _scale,
    "LogSoftmax": _axis,
    "LpNormalization": _axis,
    "LpPool": _kernel,
    "MeanVarianceNormalization": _spatial,
    "RMSNormalization": _scale,
    "ReduceL1": _axes,
    "ReduceL2": _axes,
    "ReduceLogSum": _axes,
    "ReduceLogSumExp": _axes,
    "ReduceMean": _axes,
    "ReduceProd": _axes,
    "ReduceSum": _axes,
    "ReduceSumSquare": _axes,
    "SimplifiedLayerNormalization": _scale,
    "SkipLayerNormalization": _skip_scale,
    "SkipSimplifiedLayerNormalization": _skip_scale,
    "Softmax": _axis,
}

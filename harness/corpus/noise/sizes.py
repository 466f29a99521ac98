"""Sizes of results, for the operators that stand before sums most often; the others need not be known."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.corpus.noise.terms import Dims, attribute

if TYPE_CHECKING:
    import onnx

# fmt: off
AS_FIRST = frozenset({
    "Abs", "BatchNormalization", "Cast", "Clip", "DequantizeLinear", "Dropout", "Elu", "Erf", "Exp", "Gelu",
    "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization", "LayerNormalization", "LeakyRelu",
    "Mish", "Neg", "PRelu", "QuantizeLinear", "RMSNormalization", "Relu", "Sigmoid",
    "SimplifiedLayerNormalization", "SkipLayerNormalization",
    "SkipSimplifiedLayerNormalization", "Softmax", "Softplus", "Sqrt", "Swish",
    "Tanh",
})
"""Operators whose first result is as large as their first input."""

BROADCASTING = frozenset({"Add", "Div", "Mul", "Pow", "Sub"})
"""Operators of two inputs, the smaller of which is repeated."""
# fmt: on


def size_of(node: "onnx.NodeProto", dims: Sequence[Dims]) -> Dims:
    """Sizes of the first result of a node, as far as they follow from those of its inputs.

    Args:
        node: The node.
        dims: The sizes of its inputs.
    """
    if not dims or dims[0] is None:
        return None
    first, second = dims[0], dims[1] if len(dims) > 1 else None
    if node.op_type in AS_FIRST:
        return first
    if node.op_type in BROADCASTING and second is not None:
        return max(first, second, key=len)
    if node.op_type == "Transpose":
        order = attribute(node, "perm", range(len(first))[::-1])
        return tuple(first[axis] for axis in order) if sorted(order) == [*range(len(first))] else None
    if node.op_type == "MatMul" and first and second:
        return (*first[:-1], second[-1])
    return None

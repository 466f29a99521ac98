"""Work in pieces: a tensor is cut and joined again, before a node or after it."""

import numpy as np
import onnx

from harness.annex.made.variants.draft import Draft, NewNodes, Type, cut_sizes
from harness.annex.made.variants.transformation import MOVABLE, Transformation, change, pair
from harness.corpus.model.nodes import number_of, operator_set

UNARY = operator_set("""
    Abs Ceil Celu Cos Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log Mish Neg Not Reciprocal
    Relu Round Selu Sigmoid Sign Sin Softplus Softsign Sqrt Tanh ThresholdedRelu
""")
"""Operators of one input that work on each element independently."""

_BY_SAMPLE = operator_set("""
    AveragePool Conv ConvTranspose DepthToSpace GlobalAveragePool GlobalMaxPool InstanceNormalization LRN
    SpaceToDepth
""")
"""Operators that work on each sample (axis 0 of the first input) independently, by ONNX's texts."""

_SPLIT_NUMBER = 18


def cut_and_joined(part: NewNodes, x: str, kind: Type) -> str:
    """Split along an axis and concatenate the pieces: elements return to their place."""
    sizes = kind.sizes
    axes = [axis for axis, size in enumerate(sizes or ()) if size > 1]
    if sizes is None or not axes:
        return ""
    axis = part.draft.random.pick(axes)
    return part.op("Concat", *part.split(x, axis, cut_sizes(part.draft.random, sizes[axis])), axis=axis)


def cut_through(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Apply an elementwise operator to two pieces instead of the whole.

    Each element is computed from the same operand. Vectorized kernels treat the ends of a row with other
    instructions, so functions may differ in their last bits.
    """
    axes = [axis for axis, size in enumerate(kind.shape) if size is not None and size > 1]
    if not axes:
        return ""
    return _in_two(part, node, kind, part.draft.random.pick(axes))


def batch_cut(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Compute the samples of a batch in two nodes: no sample depends on another one.

    A kernel may choose another algorithm for another batch size, which sums in another order.
    """
    size = kind.shape[0]
    return "" if size is None or size <= 1 else _in_two(part, node, kind, 0)


def _in_two(part: NewNodes, node: onnx.NodeProto, kind: Type, axis: int) -> str:
    pieces = part.split(node.input[0], axis, cut_sizes(part.draft.random, kind.shape[axis] or 0))
    return part.op("Concat", *(part.like(node, [piece, *node.input[1:]]) for piece in pieces), axis=axis)


def batch_doubled(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Compute each sample of a batch twice and keep the first half: no sample depends on another one."""
    if not kind.shape[0] and kind.shape[0] is not None:
        return ""  # onnxruntime does not split an empty axis into a number of parts
    x = node.input[0]
    both = part.like(node, [part.op("Concat", x, x, axis=0), *node.input[1:]])
    # Since opset 18, either the sizes or their number must be given.
    number = 2 if part.draft.opset >= _SPLIT_NUMBER else None
    return part.ops(2, "Split", both, axis=0, num_outputs=number)[0]


def filters_cut(part: NewNodes, node: onnx.NodeProto, _: Type) -> str:
    """Compute the filters of a convolution in two nodes: each channel depends only on its filter."""
    weights = part.draft.type_of(node.input[1]).sizes
    if number_of(node, "group", 1) != 1 or weights is None or weights[0] == 1:
        return ""
    sizes = cut_sizes(part.draft.random, weights[0])
    constants = part.draft.constants()
    given = [name for name in node.input[1:] if name]
    # A constant weight is cut now: many kernels accept only constant weights.
    cut = [
        [part.constant(piece) for piece in np.split(constants[name], [sizes[0]])]
        if name in constants
        else part.split(name, 0, sizes)
        for name in given
    ]
    halves = (part.like(node, [node.input[0], *(pieces[half] for pieces in cut)]) for half in (0, 1))
    return part.op("Concat", *halves, axis=1)


def sum_cut(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Cut the axis that a product sums over: A B = A1 B1 + A2 B2, in another order of the sum."""
    other = part.draft.type_of(node.input[1])
    if kind.dtype != "float32" or min(kind.rank, other.rank) < 2 or other.dtype != "float32":  # noqa: PLR2004
        return ""
    inner = kind.shape[-1]
    if inner is None or inner < 2:  # noqa: PLR2004 - nothing to cut
        return ""
    sizes = cut_sizes(part.draft.random, inner)
    left = part.split(node.input[0], kind.rank - 1, sizes)
    right = part.split(node.input[1], other.rank - 2, sizes)
    return part.op("Add", *(part.op("MatMul", *both) for both in zip(left, right, strict=True)))


def _by_sample(draft: Draft) -> list[int]:
    products = [
        index
        for index in draft.nodes({"MatMul"})
        if draft.type_of(draft.graph.node[index].input[1]).rank == 2  # noqa: PLR2004 - a matrix for all
    ]
    return [
        index
        for index in draft.nodes(UNARY | _BY_SAMPLE) + products
        if draft.type_of(draft.graph.node[index].input[0]).rank >= 2  # noqa: PLR2004 - a vector has no batch
    ]


PIECES: tuple[Transformation, ...] = (
    pair("cut and joined", cut_and_joined, MOVABLE),
    change("cut through", cut_through, UNARY, exact=False),
    change("batch cut", batch_cut, _by_sample, exact=False),
    change("batch doubled", batch_doubled, _by_sample, exact=False),
    change("filters cut", filters_cut, {"Conv"}, exact=False),
    change("sum cut", sum_cut, {"MatMul"}, exact=False),
)

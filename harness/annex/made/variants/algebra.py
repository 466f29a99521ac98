"""Laws of arithmetic: commute, associate, and express an operator by others."""

import numpy as np
import onnx

from harness.annex.made.variants.draft import Draft, NewNodes, Type, is_op, result_of
from harness.annex.made.variants.transformation import NUMERIC, Transformation, change
from harness.corpus.model.nodes import operator_set

_COMMUTE = operator_set("Add Mul And Or Xor Equal")
"""Operators whose operands commute to the last bit; Max and Min do not, for zeros of both signs."""

_FLIPPED = {
    "Greater": "Less",
    "Less": "Greater",
    "GreaterOrEqual": "LessOrEqual",
    "LessOrEqual": "GreaterOrEqual",
}


def commuted(draft: Draft) -> str:
    """Exchange two operands: IEEE 754 and integers commute; comparisons are reversed."""
    indices = draft.nodes(_COMMUTE | _FLIPPED.keys())
    if not indices:
        return ""
    node = draft.graph.node[draft.random.pick(indices)]
    node.input[:] = [node.input[1], node.input[0]]
    node.op_type = _FLIPPED.get(node.op_type, node.op_type)
    return result_of(node)


def subtracted(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Write a - b as a + (-b), which is its definition in IEEE 754.

    Both wrap in the same way for integers.
    """
    known = kind.dtype in NUMERIC
    return part.op("Add", node.input[0], part.op("Neg", node.input[1])) if known else ""


def associated(draft: Draft) -> str:
    """Write (a + b) + c as a + (b + c), or a product likewise: another order of rounding.

    The sum of all three stays within rounding noise of the largest partial sum.
    """
    makers = {node.output[0]: index for index, node in enumerate(draft.graph.node) if node.output}
    indices = draft.nodes({"Add", "Mul"})
    for index in draft.random.some(indices, len(indices)):
        node = draft.graph.node[index]
        inner = makers.get(node.input[0])
        if inner is None or not is_op(draft.graph.node[inner], node.op_type):
            continue
        kinds = {draft.type_of(name).dtype for name in draft.graph.node[inner].input}
        if not kinds <= NUMERIC:
            continue
        a, b = draft.graph.node[inner].input
        part, name = NewNodes(draft), result_of(node)
        result = part.op(node.op_type, a, part.op(node.op_type, b, node.input[1]))
        draft.replace(index, part, [result])
        return name
    return ""


def product_transposed(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Write A B as the transpose of B' A'; its sums have the same terms."""
    ranks = {kind.rank, part.draft.type_of(node.input[1]).rank}
    if ranks != {2} or kind.dtype != "float32":
        return ""
    a, b = (part.op("Transpose", name, perm=[1, 0]) for name in node.input)
    return part.op("Transpose", part.op("MatMul", b, a), perm=[1, 0])


def relu_as_maximum(part: NewNodes, node: onnx.NodeProto, kind: Type) -> str:
    """Write Relu(x) as Clip(x, 0) or Max(x, 0), its definition; only the sign of a zero may differ."""
    if kind.dtype != "float32":
        return ""
    zero = part.constant(np.array(0, np.float32))
    return part.op(part.draft.random.pick(["Clip", "Max"]), node.input[0], zero)


ALGEBRA: tuple[Transformation, ...] = (
    Transformation(name="commuted", apply=commuted),
    change("subtracted", subtracted, {"Sub"}),
    Transformation(name="associated", apply=associated, exact=False),
    change("product transposed", product_transposed, {"MatMul"}, exact=False),
    change("relu as maximum", relu_as_maximum, {"Relu"}, exact=False),
)

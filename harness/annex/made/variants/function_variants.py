"""Functions: an operator replaced by its body, and a node as a function of the model."""

from typing import Any

import onnx
import onnx.checker
import onnx.defs
import onnx.helper
import onnx.inliner
import onnx.shape_inference

from harness.annex.made.variants.draft import Draft, complete, is_op, result_of
from harness.annex.made.variants.transformation import Transformation
from harness.corpus.model.nodes import bodies, domain_of, opsets_of
from harness.corpus.model.origins import RANDOM_OPERATORS

DOMAIN = "variants"
"""Domain of the functions that models receive."""

_IR_OF_FUNCTIONS = 8
"""Version of the file format since which a model may have functions."""


def opened(draft: Draft) -> str:
    """Replace an operator that ONNX defines by others with the nodes of its definition.

    The body is the operator's meaning; a separate kernel may round in another order.
    """
    opsets = opsets_of(draft.model)
    nodes = [node for node in draft.graph.node if not domain_of(node) and _has_body(node, opsets)]
    names = {node.op_type for node in nodes} - RANDOM_OPERATORS
    if not names:
        return ""
    name = draft.random.pick(sorted(names))
    typed = onnx.shape_inference.infer_shapes(draft.model)
    for node in typed.graph.node:
        # The inliner of onnx 1.23 forgets defaults: MeanVarianceNormalization would reduce other axes.
        if is_op(node, name):
            complete(node, draft.opset)
    try:
        apart = onnx.inliner.inline_selected_functions(typed, [("", name)], inline_schema_functions=True)
        del apart.graph.value_info[:]
        onnx.checker.check_model(apart)
    except (RuntimeError, ValueError, onnx.checker.ValidationError):  # exceptions of onnx
        return ""
    if opsets_of(apart) != opsets or any(node.op_type == name for node in apart.graph.node):
        return ""
    draft.model.CopyFrom(apart)
    return str(name)


def outlined(draft: Draft) -> str:
    """Turn a node into a function of the model, which the node then calls."""
    indices = [
        index
        for index, node in enumerate(draft.graph.node)
        if node.input and not domain_of(node) and not any(bodies(node)) and all(node.output)
    ]
    if not indices:
        return ""
    index = draft.random.pick(indices)
    node = draft.graph.node[index]
    where = result_of(node)
    inner = onnx.NodeProto.FromString(node.SerializeToString())
    # onnx 1.23 infers types of a function within a function without the defaults of its attributes.
    complete(inner, draft.opset)
    given = list(dict.fromkeys(name for name in node.input if name))
    name = draft.fresh(f"{node.op_type}Function")
    imports = [one for one in draft.model.opset_import if not domain_of(one)]
    function = onnx.helper.make_function(DOMAIN, name, given, list(node.output), [inner], imports)
    draft.model.functions.append(function)
    if DOMAIN not in opsets_of(draft.model):
        draft.model.opset_import.append(onnx.helper.make_opsetid(DOMAIN, 1))
    draft.model.ir_version = max(draft.model.ir_version, _IR_OF_FUNCTIONS)
    call = onnx.helper.make_node(name, given, list(node.output), name=draft.fresh("n_call"), domain=DOMAIN)
    node.CopyFrom(call)
    return where


def _has_body(node: onnx.NodeProto, opsets: dict[str, int]) -> bool:
    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opsets.get("", 1), "")
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


FUNCTIONS: tuple[Transformation, ...] = (
    Transformation(name="opened", apply=opened, exact=False),
    Transformation(name="outlined", apply=outlined),
)

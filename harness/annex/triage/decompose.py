"""Composite operators: a node with a function body, in ONNX or in the model, is replaced by its body."""

from typing import TYPE_CHECKING, Any

import msgspec

from harness.annex.triage.subject import Subject
from harness.corpus.model.nodes import domain_of, opsets_of
from harness.corpus.model.schema_types import schema_of

if TYPE_CHECKING:
    import onnx

OperatorKey = tuple[str, str]
"""Domain (empty for ONNX's own) and operator type."""


def composite_operators(subject: Subject) -> tuple[OperatorKey, ...]:
    """Return the operators of a model's main graph that have a function body, each once."""
    model = subject.proto()
    opsets = opsets_of(model)
    local = {(domain_of(function), function.name) for function in model.functions}
    found = {(domain_of(node), node.op_type): node for node in model.graph.node}
    return tuple(one for one, node in found.items() if one in local or _has_body(node, opsets))


def decomposed(subject: Subject, operator: OperatorKey) -> Subject | None:
    """Return the model with each node of an operator replaced by its body; None if that cannot be done.

    A body that depends on the types of the inputs needs them declared or inferable.
    """
    from onnx import inliner, shape_inference

    model = subject.proto()
    try:
        model = shape_inference.infer_shapes(model)
        apart = inliner.inline_selected_functions(model, [operator], inline_schema_functions=True)
    except Exception:  # noqa: BLE001 - onnx raises errors of its C++ code
        return None
    if any((domain_of(node), node.op_type) == operator for node in apart.graph.node):
        return None
    return msgspec.structs.replace(subject, model=apart.SerializeToString())


def _has_body(node: "onnx.NodeProto", opsets: dict[str, int]) -> bool:
    schema: Any = schema_of(node, opsets)
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)

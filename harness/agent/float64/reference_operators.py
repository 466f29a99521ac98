"""Single operators of ``onnx.reference``, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.agent.float64.kinds import NARROWER_KINDS, kind_of
from harness.agent.target_errors import UnsupportedError

FIRST_BROADCAST = 7  # the first opset in which operators broadcast as numpy does
# They accept doubles besides the types of their schema: numbers are chosen or compared, not computed.
_WITHOUT_SCHEMA = ("NonMaxSuppression", "Resize", "Upsample", "OneHot", "TopK", "Range", "Pad")

FLOAT32_INSIDE = ("MelWeightMatrix", "SVMRegressor")
"""Operators that ``onnx.reference`` computes in float32 whatever the inputs are, although it is otherwise
right."""


def onnx_schema(proto: Any, opsets: dict[str, int]) -> Any:
    """Return the schema that a node follows; None if its operator is not ONNX's."""
    from onnx import defs

    domain = "" if proto.domain == "ai.onnx" else proto.domain
    try:
        return defs.get_schema(proto.op_type, opsets.get(domain, 1), domain)
    except defs.SchemaError:
        return None


def takes_doubles(schema: Any, given: list[Any]) -> bool:
    """Return whether the text of an operator allows doubles wherever it gets them here."""
    if schema is None or schema.name in FLOAT32_INSIDE:
        return False
    if schema.name in _WITHOUT_SCHEMA:
        return True
    for index, value in enumerate(given):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)]
        is_float = value.kind in ("float32", "float16", "bfloat16", "float64")
        if is_float and not any("double" in one for one in formal.types):
            return False
    return True


def computed_by_reference(node: Any, *, may_narrow: bool = False) -> Callable[[Any, list[Any]], Any]:
    """Return the operator of ``onnx.reference`` that computes a node."""
    if not node.domain and node.opsets.get("", FIRST_BROADCAST) < FIRST_BROADCAST:
        raise UnsupportedError("onnx.reference computes every opset before %d as that one" % FIRST_BROADCAST)
    more: dict[str, Any] = {}
    if node.domain == "ai.onnx.ml":
        from onnx.reference.ops.aionnxml import load_op
    elif node.domain:
        raise UnsupportedError("onnx.reference has no %s" % node.name)
    else:
        from onnx.reference import ReferenceEvaluator
        from onnx.reference.ops import load_op

        more = {"node": node.proto, "evaluator_cls": ReferenceEvaluator}  # for operators that are functions
    settings = {"log": _silent, "opsets": node.opsets, "verbose": 0, "new_ops": None}
    made = load_op(node.domain, node.op_type, node.opsets.get(node.domain, 1), **more)(node.proto, settings)

    def compute(_: Any, inputs: list[Any]) -> Any:
        found = tuple(made.run(*inputs))
        wide = any(kind_of(one) == "float64" for one in inputs)
        if wide and not may_narrow and any(kind_of(one) in NARROWER_KINDS for one in found):
            raise UnsupportedError("onnx.reference computes %s in float32" % node.name)
        return found

    return compute


def _silent(*_: Any) -> None:
    pass

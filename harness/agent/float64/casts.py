"""Operators whose result depends on the element types of the original model."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.kinds import FLOAT32, NARROWER, NUMBERS, kind_of, rounded, widened
from harness.agent.float64.node import Node
from harness.agent.float64.references import computed_by_reference
from harness.agent.float64.scope import Scope, Value, stored

_INTEGERS = {
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    12: "uint32",
    13: "uint64",
}
_BOOL, _STRING = 9, 8


def cast(step: Any, given: list[Value], scope: Scope) -> list[Value]:
    """Cast: a narrower float still rounds, unless its values have that type or come from a narrower one."""
    del scope
    return [_cast(step, given[0], step.node.get("to"))]


def cast_like(step: Any, given: list[Value], scope: Scope) -> list[Value]:
    """CastLike: the type is that of the second input in the original model."""
    del scope
    from onnx import helper

    kind = given[1].kind
    numbers = {name: number for number, name in NUMBERS.items()}
    number = numbers.get(kind) or helper.np_dtype_to_tensor_dtype(given[1].data.dtype)
    return [_cast(step, given[0], number)]


def _cast(step: Any, value: Value, number: int) -> Value:
    kind = NUMBERS.get(number)
    data, source = value.data, value.kind
    if kind is not None and data.dtype.kind in "fiub":
        wide = data.astype(np.float64)
        same = kind == source or (kind == FLOAT32 and source in NARROWER)
        return Value(wide if same else rounded(wide, kind), kind)
    if number == _BOOL and data.dtype.kind in "fiub":
        return Value(data != 0, "bool")
    if number in _INTEGERS and data.dtype.kind in "fiub":
        wide = data if data.dtype.kind != "f" else np.trunc(data).astype(np.int64)
        return Value(wide.astype(_INTEGERS[number]), _INTEGERS[number])
    if number == _STRING or kind_of(data) == "float64":
        # Its text and its saturation are those of the narrower type.
        data = data.astype(source) if source in ("float32", "float16") else data
    (found,) = computed_by_reference(_as_cast(step.node, number), may_narrow=True)(step.node, [data])
    return Value(widened(found), kind if kind is not None else kind_of(found))


def _as_cast(node: Node, number: int) -> Node:
    """Return the Cast that is equivalent to a node."""
    from onnx import NodeProto, helper

    proto = NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type = "Cast"
    del proto.input[1:]
    kept = [one for one in proto.attribute if one.name != "to"]
    del proto.attribute[:]
    proto.attribute.extend([*kept, helper.make_attribute("to", number)])
    return Node(proto, node.since, node.opsets)


def bit_cast(step: Any, given: list[Value], scope: Scope) -> list[Value]:
    """BitCast: the bits are those of the type in the original model."""
    del scope
    value = given[0]
    data = value.data.astype(value.kind) if value.kind in ("float32", "float16") else value.data
    (found,) = computed_by_reference(step.node, may_narrow=True)(step.node, [data])
    return [Value(widened(found), kind_of(found))]


def constant(step: Any, given: list[Value], scope: Scope) -> list[Value]:
    """Constant: a tensor, or numbers and texts of an attribute."""
    del given, scope
    node = step.node
    for name, dtype in (
        ("value_float", "f4"),
        ("value_floats", "f4"),
        ("value_int", "i8"),
        ("value_ints", "i8"),
    ):
        if node.has(name):
            array = np.array(node.get(name), dtype)
            return [Value(widened(array), kind_of(array))]
    for name in ("value_string", "value_strings"):
        if node.has(name):
            found = node.get(name)
            texts = [one.decode() for one in found] if isinstance(found, list) else found
            return [Value(np.array(texts, object), "object")]
    return [stored(node.get("value") if node.has("value") else node.get("sparse_value"))]


def constant_of_shape(step: Any, given: list[Value], scope: Scope) -> list[Value]:
    """ConstantOfShape: zeros of float32 unless a value is given."""
    shape = tuple(int(one) for one in given[0].data)
    tensor = step.node.get("value")
    value = stored(tensor) if tensor is not None else Value(np.zeros(1), FLOAT32)
    scope.budget.need(float(np.prod(shape, dtype=np.float64)) * value.data.itemsize)
    return [Value(np.full(shape, value.data.reshape(-1)[0], value.data.dtype), value.kind)]


def identity(step: Any, given: list[Value], scope: Scope) -> list[Value]:
    """Return the first input unchanged; an absent optional one stays absent."""
    del step, scope
    return [given[0]]


SPECIAL: dict[str, Any] = {
    "BitCast": bit_cast,
    "Cast": cast,
    "CastLike": cast_like,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "Identity": identity,
}
"""Operator -> function that computes it."""

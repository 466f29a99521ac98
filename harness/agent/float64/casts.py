"""Operators whose result depends on the element types of the original model."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.kinds import (
    FLOAT32,
    KIND_BY_NUMBER,
    NARROWER_KINDS,
    kind_of,
    round_to_type,
    widened,
)
from harness.agent.float64.reference_operators import computed_by_reference
from harness.agent.float64.scope import Scope, ScopeValue, stored
from harness.agent.float64.versioned_node import VersionedNode

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


def cast(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """Cast: a narrower float still rounds, unless its values have that type or come from a narrower one."""
    del scope
    return [_cast(step, given[0], step.node.get("to"))]


def cast_like(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """CastLike: the type is that of the second input in the original model."""
    del scope
    from onnx import helper

    kind = given[1].kind
    numbers = {name: number for number, name in KIND_BY_NUMBER.items()}
    number = numbers.get(kind) or helper.np_dtype_to_tensor_dtype(given[1].data.dtype)
    return [_cast(step, given[0], number)]


def _cast(step: Any, value: ScopeValue, number: int) -> ScopeValue:
    kind = KIND_BY_NUMBER.get(number)
    data, source = value.data, value.kind
    if kind is not None and data.dtype.kind in "fiub":
        wide = data.astype(np.float64)
        same = kind == source or (kind == FLOAT32 and source in NARROWER_KINDS)
        return ScopeValue(wide if same else round_to_type(wide, kind), kind)
    if number == _BOOL and data.dtype.kind in "fiub":
        return ScopeValue(data != 0, "bool")
    if number in _INTEGERS and data.dtype.kind in "fiub":
        wide = data if data.dtype.kind != "f" else np.trunc(data).astype(np.int64)
        return ScopeValue(wide.astype(_INTEGERS[number]), _INTEGERS[number])
    if number == _STRING or kind_of(data) == "float64":
        # Its text and its saturation are those of the narrower type.
        data = data.astype(source) if source in ("float32", "float16") else data
    (found,) = computed_by_reference(_as_cast(step.node, number), may_narrow=True)(step.node, [data])
    return ScopeValue(widened(found), kind if kind is not None else kind_of(found))


def _as_cast(node: VersionedNode, number: int) -> VersionedNode:
    """Return the Cast that is equivalent to a node."""
    from onnx import NodeProto, helper

    proto = NodeProto()
    proto.CopyFrom(node.proto)
    proto.op_type = "Cast"
    del proto.input[1:]
    kept = [one for one in proto.attribute if one.name != "to"]
    del proto.attribute[:]
    proto.attribute.extend([*kept, helper.make_attribute("to", number)])
    return VersionedNode(proto, node.since, node.opsets)


def bit_cast(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """BitCast: the bits are those of the type in the original model."""
    del scope
    value = given[0]
    data = value.data.astype(value.kind) if value.kind in ("float32", "float16") else value.data
    (found,) = computed_by_reference(step.node, may_narrow=True)(step.node, [data])
    return [ScopeValue(widened(found), kind_of(found))]


def constant(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
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
            return [ScopeValue(widened(array), kind_of(array))]
    for name in ("value_string", "value_strings"):
        if node.has(name):
            found = node.get(name)
            texts = [one.decode() for one in found] if isinstance(found, list) else found
            return [ScopeValue(np.array(texts, object), "object")]
    return [stored(node.get("value") if node.has("value") else node.get("sparse_value"))]


def constant_of_shape(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """ConstantOfShape: zeros of float32 unless a value is given."""
    shape = tuple(int(one) for one in given[0].data)
    tensor = step.node.get("value")
    value = stored(tensor) if tensor is not None else ScopeValue(np.zeros(1), FLOAT32)
    scope.budget.need(float(np.prod(shape, dtype=np.float64)) * value.data.itemsize)
    return [ScopeValue(np.full(shape, value.data.reshape(-1)[0], value.data.dtype), value.kind)]


def identity(step: Any, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
    """Return the first input unchanged; an absent optional one stays absent."""
    del step, scope
    return [given[0]]


CASTS: dict[str, Any] = {
    "BitCast": bit_cast,
    "Cast": cast,
    "CastLike": cast_like,
    "Constant": constant,
    "ConstantOfShape": constant_of_shape,
    "Identity": identity,
}
"""Operator -> function that computes it."""

"""Restamping: a model gets another opset and file format that mean the same, so that more tools read it."""

import contextlib
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.nodes import bodies, tensors_in
from harness.corpus.model.used_operators import used_operators
from harness.corpus.noise.flat import NotFlatError, flattened

if TYPE_CHECKING:
    import onnx
    from onnx.defs import OpSchema

RESTAMP_OPSET = 21
OLDEST_IR = 10
"""Versions of opset and file format in onnx 1.16, the oldest that a model is converted to."""

_NAMES = {"float": "float32", "double": "float64"}
"""Element types for which schemas have other names than the harness."""


def restamp(model: "onnx.ModelProto") -> None:
    """Give a model the oldest opset, from 21 on, and file format that mean the same.

    An opset names the same operators as an older one, down to the newest schema that the model uses. An older
    schema of an operator means the same under two conditions. It has the same inputs and outputs, and the
    newer one only adds element types that the model does not use and attributes that no node sets. A model
    before opset 7, where ``onnx.reference`` begins, gets that one if every operator means the same there.
    """
    from onnx.helper import find_min_ir_version_for

    used = used_operators(model)
    own = {one.domain for one in model.opset_import} <= {"", "ai.onnx"}
    if own and not model.functions and used:
        with contextlib.suppress(NotFlatError):
            flattened(model)
        traits = _traits(model)
        needed = max(_oldest(name, max(versions), *traits) for name, versions in used.items())
        for one in model.opset_import:
            one.version = min(one.version, max(RESTAMP_OPSET, needed))
    needed = find_min_ir_version_for(model.opset_import, ignore_unknown=True)
    model.ir_version = min(model.ir_version, max(OLDEST_IR, needed))


def _oldest(op_type: str, since: int, types: frozenset[str], attributes: frozenset[str]) -> int:
    """Return the version of the oldest schema, down to that of opset 21, that means the same here."""
    import onnx.defs

    while since > RESTAMP_OPSET:
        try:
            newer = onnx.defs.get_schema(op_type, since, "")
            older = onnx.defs.get_schema(op_type, since - 1, "")
        except onnx.defs.SchemaError:
            break  # the operator is that new
        new = {f"{op_type}.{name}" for name in newer.attributes.keys() - older.attributes.keys()}
        if _form(older) != _form(newer, older.attributes) or new & attributes or _added(older, newer) & types:
            break
        since = older.since_version
    return since


def _form(schema: "OpSchema", attributes: Iterable[str] | None = None) -> tuple[object, ...]:
    """Return the form of nodes of a schema, without element types; with only these attributes if given."""
    values = [
        [(one.name, one.option, one.type_str, one.is_homogeneous, one.min_arity) for one in part]
        for part in (schema.inputs, schema.outputs)
    ]
    known = schema.attributes
    kept = {
        name: (known[name].type, known[name].required, known[name].default_value.SerializeToString())
        for name in (known if attributes is None else attributes)
        if name in known
    }
    return schema.deprecated, values, kept, {one.type_param_str for one in schema.type_constraints}


def _added(older: "OpSchema", newer: "OpSchema") -> frozenset[str]:
    """Return the element types that some constraint allows in more places in the newer schema."""
    before = {one.type_param_str: set(one.allowed_type_strs) for one in older.type_constraints}
    return frozenset(
        _NAMES.get(name, name)
        for one in newer.type_constraints
        for kind in set(one.allowed_type_strs) - before[one.type_param_str]
        for name in re.findall(r"tensor\((\w+)\)", kind)
    )


def _traits(model: "onnx.ModelProto") -> tuple[frozenset[str], frozenset[str]]:
    """Return the types of all tensors, inferred ones included, and ``operator.attribute`` of all nodes."""
    import onnx.shape_inference

    numbers: set[int] = set()
    attributes: set[str] = set()

    def walk(graph: "onnx.GraphProto") -> None:
        for info in (*graph.input, *graph.output, *graph.value_info):
            numbers.update(tensor.elem_type for tensor in tensors_in(info.type))
        numbers.update(one.data_type for one in graph.initializer)
        numbers.update(one.values.data_type for one in graph.sparse_initializer)
        for node in graph.node:
            numbers.update(attribute.t.data_type for attribute in node.attribute)
            attributes.update(f"{node.op_type}.{attribute.name}" for attribute in node.attribute)
            for body in bodies(node):
                walk(body)

    walk(onnx.shape_inference.infer_shapes(model).graph)
    types = frozenset(ELEMENT_TYPES[one] for one in numbers if one in ELEMENT_TYPES)
    return types, frozenset(attributes)

"""The types of a model's values, from its declarations and ONNX's schemas.

onnx's own type inference is native code that some models crash; this one only reads schemas. Types are texts
in the schemas' spelling: ``tensor(float)``, ``seq(tensor(int64))``; empty if unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from harness.corpus.model.element_types import ELEMENT_TYPES, NUMBERS
from harness.corpus.model.nodes import bodies, domain_of
from harness.operators.book import operators_by, operators_with

if TYPE_CHECKING:
    import onnx
    import onnx.defs

TYPE_ATTRIBUTES = frozenset({"dtype", "output_datatype", "output_dtype", "to"})
"""Attributes that name the element type of an output; 0 leaves it to the inputs."""

FLOAT32_BY_DEFAULT = operators_by(lambda row: row.float32_unless)
"""Operators of one output -> the attribute without which it is float32."""

_LIKE_ITS_INPUT = operators_with(lambda row: row.typed_as_input)
"""Operators whose result has their input's type if no attribute names another."""

_SPELLED = {NUMBERS["float32"]: "float", NUMBERS["float64"]: "double"}


def tensor_text(number: int) -> str:
    """Return the type of tensors of an element type, by its ``TensorProto.DataType``."""
    spelled = _SPELLED.get(number) or ELEMENT_TYPES.get(number)
    return f"tensor({spelled})" if spelled else ""


FLOAT_TYPES = {
    tensor_text(NUMBERS[dtype]): NUMBERS[dtype] for dtype in ("float32", "float16", "float64", "bfloat16")
}
"""Types that operators compute in -> ``TensorProto.DataType``."""


def _type_text(declared: "onnx.TypeProto") -> str:
    """Return the text of a declared type."""
    kind = declared.WhichOneof("value")
    if kind == "tensor_type":
        return tensor_text(declared.tensor_type.elem_type)
    if kind == "map_type":
        item = _type_text(declared.map_type.value_type)
        key = tensor_text(declared.map_type.key_type)[len("tensor(") : -1]
        return f"map({key}, {item})" if item and key else ""
    if kind in {"sequence_type", "optional_type"}:
        item = _type_text(getattr(declared, kind).elem_type)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({item})" if item else ""
    return ""


def formal_of(
    formals: "Sequence[onnx.defs.OpSchema.FormalParameter]", index: int
) -> "onnx.defs.OpSchema.FormalParameter":
    """Return the schema's entry for an input or output; the last one may stand for several.

    Raises:
        ValueError: A node has more of them than its operator.
    """
    import onnx.defs

    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic
    if not formals or (index >= len(formals) and formals[-1].option != variadic):
        raise ValueError("a node has more inputs or outputs than its operator")
    return formals[min(index, len(formals) - 1)]


def schema_of(node: "onnx.NodeProto", opsets: Mapping[str, int]) -> "onnx.defs.OpSchema | None":
    """Return the schema that a node follows; None if its operator is not ONNX's."""
    import onnx.defs

    domain = domain_of(node)
    try:
        return onnx.defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return None


def declared_types(graph: "onnx.GraphProto") -> dict[str, str]:
    """Return the types that a graph declares, by name."""
    types = {info.name: _type_text(info.type) for info in (*graph.value_info, *graph.output, *graph.input)}
    types |= {weight.name: tensor_text(weight.data_type) for weight in graph.initializer}
    return types | {
        sparse.values.name: tensor_text(sparse.values.data_type) for sparse in graph.sparse_initializer
    }


def result_types(
    node: "onnx.NodeProto",
    opsets: Mapping[str, int],
    types: Mapping[str, str],
    inner: Sequence[Mapping[str, str]],
) -> Iterator[tuple[str, str]]:
    """Yield as ``output_types``; an operator that is not ONNX's has the type of its first float input."""
    schema = schema_of(node, opsets)
    if schema is not None:
        yield from output_types(node, schema, types, inner)
    else:
        first = next((types[name] for name in node.input if types.get(name) in FLOAT_TYPES), "")
        yield from ((name, first) for name in node.output if name)


def output_types(
    node: "onnx.NodeProto",
    schema: "onnx.defs.OpSchema",
    types: Mapping[str, str],
    inner: Sequence[Mapping[str, str]],
) -> Iterator[tuple[str, str]]:
    """Yield the name and the type of each output of a node.

    ``types`` are those of its inputs by name, ``inner`` those of the values in each of its bodies.
    """
    given = [types.get(name, "") for name in node.input]
    variables = {formal_of(schema.inputs, index).type_str: text for index, text in enumerate(given) if text}
    for index, name in enumerate(node.output):
        if not name:
            continue
        formal = formal_of(schema.outputs, index)
        if inner:
            text = _of_bodies(node, index, inner)
        elif len(formal.types) == 1:
            (text,) = formal.types
        else:
            text = (
                _of_attributes(node) or variables.get(formal.type_str) or _related(node, formal.types, given)
            )
        yield name, text


def _of_bodies(node: "onnx.NodeProto", index: int, inner: Sequence[Mapping[str, str]]) -> str:
    """Return the type of an output of If, Loop or Scan, from a body; Loop's first one is its condition."""
    for body, types in zip(bodies(node), inner, strict=True):
        at = index + (node.op_type == "Loop")
        if at < len(body.output) and types.get(body.output[at].name):
            return types[body.output[at].name]
    return ""


def _of_attributes(node: "onnx.NodeProto") -> str:
    for attribute in node.attribute:
        if attribute.name in TYPE_ATTRIBUTES and attribute.i:
            text = tensor_text(attribute.i)
            return f"seq({text})" if node.op_type == "SequenceEmpty" else text
        if attribute.type == attribute.TYPE_PROTO:
            return f"optional({_type_text(attribute.tp)})"
        if node.op_type in {"Constant", "ConstantOfShape"}:
            return _of_constant(attribute)
    if node.op_type in FLOAT32_BY_DEFAULT:
        return "seq(tensor(float))" if node.op_type == "SequenceEmpty" else "tensor(float)"
    return "tensor(float)" if node.op_type == "ConstantOfShape" else ""


def _of_constant(attribute: "onnx.AttributeProto") -> str:
    if attribute.name == "value":
        return tensor_text(attribute.t.data_type)
    if attribute.name == "sparse_value":
        return tensor_text(attribute.sparse_tensor.values.data_type)
    kinds = {"value_float": "float", "value_int": "int64", "value_string": "string"}
    kind = kinds.get(attribute.name.removesuffix("s"), "")
    return f"tensor({kind})" if kind else ""


def _related(node: "onnx.NodeProto", allowed: AbstractSet[str], given: Sequence[str]) -> str:
    """Return the type of an output that depends on the type of the first input."""
    first = next(iter(given), "")
    if node.op_type in {"CastLike", "DequantizeLinear"}:
        return given[1]
    if node.op_type in _LIKE_ITS_INPUT:
        return first
    for kind in ("seq", "optional"):
        if first and f"{kind}({first})" in allowed:
            return f"{kind}({first})"
        if first.startswith(f"{kind}(") and first[len(kind) + 1 : -1] in allowed:
            return first[len(kind) + 1 : -1]
    return ""

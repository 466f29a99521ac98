"""The types of a model's values, as far as ONNX's schemas and the model itself tell.

onnx's own type inference is native code, which some models crash; this one reads schemas, and runs nothing.
Types are texts as schemas spell them: ``tensor(float)``, ``seq(tensor(int64))``; empty where not known.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from harness.corpus.element_types import ELEMENT_TYPES, NUMBERS

if TYPE_CHECKING:
    import onnx
    import onnx.defs

TYPE_ATTRIBUTES = frozenset({"dtype", "output_datatype", "output_dtype", "to"})
"""Attributes that say of which element type an output is; 0 leaves it to the inputs."""

FLOAT32_BY_DEFAULT: dict[str, str] = {
    "BlackmanWindow": "output_datatype",
    "HammingWindow": "output_datatype",
    "HannWindow": "output_datatype",
    "MelWeightMatrix": "output_datatype",
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    "SequenceEmpty": "dtype",
}
"""Operators of one output, which is float32 where such an attribute is left out."""

_LIKE_ITS_INPUT = frozenset({"Bernoulli", "EyeLike", "RandomNormalLike", "RandomUniformLike"})
"""Operators that take their input's type where no attribute names another."""

_SPELLED = {NUMBERS["float32"]: "float", NUMBERS["float64"]: "double"}


def domain_of(named: "onnx.NodeProto | onnx.OperatorSetIdProto") -> str:
    """The domain of a node or an opset; ONNX's own is empty."""
    return "" if named.domain == "ai.onnx" else named.domain


def bodies(node: "onnx.NodeProto") -> "Iterator[onnx.GraphProto]":
    """The branches and bodies of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def tensor_text(number: int) -> str:
    """The type of tensors of an element type, by its ``TensorProto.DataType``."""
    spelled = _SPELLED.get(number) or ELEMENT_TYPES.get(number)
    return f"tensor({spelled})" if spelled else ""


def type_text(declared: "onnx.TypeProto") -> str:
    """A declared type."""
    kind = declared.WhichOneof("value")
    if kind == "tensor_type":
        return tensor_text(declared.tensor_type.elem_type)
    if kind == "map_type":
        item = type_text(declared.map_type.value_type)
        key = tensor_text(declared.map_type.key_type)[len("tensor(") : -1]
        return f"map({key}, {item})" if item and key else ""
    if kind in {"sequence_type", "optional_type"}:
        item = type_text(getattr(declared, kind).elem_type)
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({item})" if item else ""
    return ""


def formal_of(
    formals: "Sequence[onnx.defs.OpSchema.FormalParameter]", index: int
) -> "onnx.defs.OpSchema.FormalParameter":
    """What a schema says about an input or output; the last one may stand for several.

    Raises:
        ValueError: A node has more of them than its operator.
    """
    if not formals or (index >= len(formals) and formals[-1].option != _variadic()):
        raise ValueError("a node has more inputs or outputs than its operator")
    return formals[min(index, len(formals) - 1)]


def output_types(
    node: "onnx.NodeProto",
    schema: "onnx.defs.OpSchema",
    types: Mapping[str, str],
    inner: Sequence[Mapping[str, str]],
) -> Iterator[tuple[str, str]]:
    """Name and type of each output of a node.

    Args:
        node: The node.
        schema: Of its operator.
        types: Name -> type of what it may read.
        inner: The same for each of its bodies.
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


def _variadic() -> "onnx.defs.OpSchema.FormalParameterOption":
    import onnx.defs

    return onnx.defs.OpSchema.FormalParameterOption.Variadic


def _of_bodies(node: "onnx.NodeProto", index: int, inner: Sequence[Mapping[str, str]]) -> str:
    """The type of an output of If, Loop or Scan: that of a body's output; Loop's first is its condition."""
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
            return f"optional({type_text(attribute.tp)})"
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
    """The type of an output that has something to do with that of the first input."""
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

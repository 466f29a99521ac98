"""The nodes of a model: domains, attributes, and the bodies of control flow."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from harness.corpus.model.port import model_text

if TYPE_CHECKING:
    import onnx

_DEFAULT_DOMAIN = "ai.onnx"
"""The long spelling of ONNX's own domain; the short one is empty."""


def domain_of(named: "onnx.NodeProto | onnx.OperatorSetIdProto | onnx.FunctionProto") -> str:
    """Return the domain of a node, an opset or a function; ONNX's own is empty."""
    return "" if named.domain == _DEFAULT_DOMAIN else named.domain


FunctionKey = tuple[str, str, str]
"""Domain (empty for ONNX's own), name and overload of a function, by which a node calls it."""


def local_functions(model: "onnx.ModelProto") -> "dict[FunctionKey, onnx.FunctionProto]":
    """Return the functions that a model brings itself."""
    return {(domain_of(one), one.name, one.overload): one for one in model.functions}


def called_by(node: "onnx.NodeProto") -> FunctionKey:
    """Return the function that a node calls, if the model has it; else it is an operator."""
    return domain_of(node), node.op_type, node.overload


def operator_set(names: str) -> frozenset[str]:
    """Return a set of operators from a text of names separated by blanks."""
    return frozenset(names.split())


def operator_name(domain: str, op_type: str) -> str:
    """Return the name of an operator; a domain other than ONNX's own comes first: ``com.microsoft.Gelu``."""
    return f"{domain}.{op_type}" if domain else op_type


def opsets_of(imports: "onnx.ModelProto | onnx.FunctionProto") -> dict[str, int]:
    """Return the opset versions that a model or a function imports, by domain."""
    return {domain_of(one): one.version for one in imports.opset_import}


def named_opsets(model: "onnx.ModelProto") -> dict[str, int]:
    """Return the opset versions that a model imports; ONNX's own domain is ``ai.onnx``."""
    return {model_text(one.domain) or _DEFAULT_DOMAIN: one.version for one in model.opset_import}


def bodies(node: "onnx.NodeProto") -> "Iterator[onnx.GraphProto]":
    """Yield the branches and bodies of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_nodes(nodes: "Iterable[onnx.NodeProto]") -> "Iterator[onnx.NodeProto]":
    """Yield nodes, each followed by those in its bodies."""
    for node in nodes:
        yield node
        for body in bodies(node):
            yield from all_nodes(body.node)


def taken_from_outside(body: "onnx.GraphProto") -> set[str]:
    """Return the names that a branch or body reads from the graphs around it."""
    made = {port.name for port in body.input} | weight_names(body)
    made |= {name for node in body.node for name in node.output}
    read = {name for node in body.node for name in node.input} | {port.name for port in body.output}
    inner = (taken_from_outside(one) for node in body.node for one in bodies(node))
    return read.union(*inner) - made - {""}


def number_of(node: "onnx.NodeProto", name: str, default: float) -> float:
    """Return a numeric attribute of a node."""
    return next((float(one.f or one.i) for one in node.attribute if one.name == name), default)


def constant_of(node: "onnx.NodeProto") -> "onnx.TensorProto | None":
    """Return the tensor that a ``Constant`` holds; None if it holds texts or is sparse."""
    from onnx import TensorProto, helper

    kinds = {"float": TensorProto.FLOAT, "int": TensorProto.INT64}
    for one in node.attribute:
        if one.name == "value":
            value: TensorProto = one.t
            return value
        kind = kinds.get(one.name.removeprefix("value_").removesuffix("s"))
        if kind is not None:
            listed = one.name.endswith("s")
            numbers = [*one.floats, *one.ints] if listed else [one.f if kind == TensorProto.FLOAT else one.i]
            made: TensorProto = helper.make_tensor("", kind, [len(numbers)] if listed else [], numbers)
            return made
    return None


def weight_names(graph: "onnx.GraphProto") -> set[str]:
    """Return the names of the initializers of a graph, sparse ones included."""
    return {one.name for one in graph.initializer} | {one.values.name for one in graph.sparse_initializer}


def tensors_in(declared: "onnx.TypeProto") -> "Iterator[onnx.TypeProto.Tensor | onnx.TypeProto.SparseTensor]":
    """Yield the tensor types within a declared type."""
    kind = declared.WhichOneof("value")
    if kind in {"tensor_type", "sparse_tensor_type"}:
        yield getattr(declared, kind)
    elif kind in {"sequence_type", "optional_type"}:
        yield from tensors_in(getattr(declared, kind).elem_type)
    elif kind == "map_type":
        yield from tensors_in(declared.map_type.value_type)


def replace_nodes(graph: "onnx.GraphProto", nodes: "Iterable[onnx.NodeProto]") -> None:
    """Replace all nodes of a graph by other nodes, which may be made from these."""
    made = list(nodes)
    del graph.node[:]
    graph.node.extend(made)

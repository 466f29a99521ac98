"""A reduced model as a fault publishes it: its nodes, its tensors, and a fingerprint that ignores names."""

import hashlib
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Literal

import msgspec

from harness.annex.triage.subject import Subject
from harness.core.records.fault import GraphNode, GraphTensor, ReducedModel, Signature
from harness.core.records.scenario import PLAIN
from harness.core.text.errors import one_line
from harness.corpus.model.element_types import ELEMENT_TYPES
from harness.corpus.model.nodes import domain_of, named_opsets

if TYPE_CHECKING:
    import onnx

NODES_SHOWN = 200
"""Largest number of nodes that are drawn for a model that could not be made small: a larger drawing helps
nobody."""

TEXT_CHARS = 60


def drawn(subject: Subject, before: Subject, guilty: Collection[str]) -> ReducedModel:
    """Return the description of a reduced model.

    ``before`` is the model of the cell; ``guilty`` are the names of the nodes where the failure is.
    """
    model = subject.proto()
    return ReducedModel(
        nodes=tuple(_node(node, guilty) for node in model.graph.node[:NODES_SHOWN]),
        tensors=tuple(_tensors(model.graph)),
        bytes=len(subject.model),
        nodes_before=len(before.proto().graph.node),
        bytes_before=len(before.model),
        opsets=named_opsets(model),
    )


def fingerprint(
    reduced: ReducedModel,
    signature: Signature,
    provider: str,
    options: Collection[str] = (),
    scenario: str = PLAIN,
) -> str:
    """Return the id of a fault: ``F`` and ten hexadecimal digits.

    It is equal for equal operators, attributes, element types and connections, whatever names and sizes are.
    ``options`` are those without which the failure is not known to appear; the ``scenario`` is one that it
    needs: weights that are mixed up among sessions, and weights that are read from the wrong file, are two
    faults of one operator.
    """
    numbers: dict[str, int] = {}
    roles = {tensor.name: (tensor.role, tensor.dtype) for tensor in reduced.tensors}
    parts: list[object] = [provider, msgspec.to_builtins(signature), sorted(reduced.opsets)]
    parts += [sorted(options)] if options else []
    parts += [scenario] if scenario != PLAIN else []
    for node in reduced.nodes:
        ports = [
            numbers.setdefault(name, len(numbers)) if name else -1 for name in (*node.inputs, *node.outputs)
        ]
        kinds = [roles.get(name, ("inner", "")) for name in node.inputs]
        parts.append((node.domain, node.op_type, sorted(node.attributes.items()), ports, kinds))
    return "F" + hashlib.sha256(repr(parts).encode()).hexdigest()[:10]


def _node(node: "onnx.NodeProto", guilty: Collection[str]) -> GraphNode:
    name = node.name or next((output for output in node.output if output), "")
    return GraphNode(
        name=name,
        op_type=node.op_type,
        domain=domain_of(node),
        inputs=tuple(node.input),
        outputs=tuple(node.output),
        attributes={one.name: attribute_text(one) for one in node.attribute},
        guilty=name in guilty,
    )


def attribute_text(attribute: "onnx.AttributeProto") -> str:
    """Return the value of an attribute in one short line."""
    import onnx

    if attribute.HasField("g") or attribute.graphs:
        return f"{len(attribute.g.node)} nodes"
    if attribute.HasField("t"):
        dtype = ELEMENT_TYPES.get(attribute.t.data_type, "")
        return f"{dtype} {shape_text(attribute.t.dims)}".strip()
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, float):
        value = f"{value:g}"
    return one_line(value, TEXT_CHARS)


def shape_text(sizes: Collection[int]) -> str:
    """Return a shape as ``1x3x8``; empty for a scalar."""
    return "x".join(map(str, sizes))


def _tensors(graph: "onnx.GraphProto") -> Iterator[GraphTensor]:
    constants = {one.name for one in graph.initializer}
    yield from (_declared(one, "input") for one in graph.input if one.name not in constants)
    yield from (_declared(one, "output") for one in graph.output)
    for one in graph.initializer:
        dtype = ELEMENT_TYPES.get(one.data_type, "")
        yield GraphTensor(name=one.name, role="initializer", dtype=dtype, shape=shape_text(one.dims))
    yield from (_declared(one, "inner") for one in graph.value_info)


def _declared(info: "onnx.ValueInfoProto", role: Literal["input", "output", "inner"]) -> GraphTensor:
    tensor = info.type.tensor_type
    sizes = [
        str(one.dim_value) if one.HasField("dim_value") else one.dim_param or "?" for one in tensor.shape.dim
    ]
    dtype, shape = ELEMENT_TYPES.get(tensor.elem_type, ""), one_line("x".join(sizes), TEXT_CHARS)
    return GraphTensor(name=info.name, role=role, dtype=dtype, shape=shape)

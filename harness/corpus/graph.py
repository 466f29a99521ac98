"""The structure of a graph: its nodes, and the tensors between them. Weights are not read."""

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from harness.core.records.graph_levels import OperatorType
from harness.core.text.errors import UsageError, one_line
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.model_file import parse_model
from harness.corpus.model.nodes import (
    all_nodes,
    bodies,
    domain_of,
    named_opsets,
    taken_from_outside,
    weight_names,
)
from harness.corpus.model.port import model_text
from harness.corpus.suites.suite import Suite

if TYPE_CHECKING:
    import onnx


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One node.

    Attributes:
        inputs: Names of the tensors that it reads, including those that its subgraphs read from outside.
        outputs: Names of the tensors that it writes; empty for an omitted output.
        attributes: Digest of its attributes.
    """

    operator: OperatorType
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: bytes


class Graph(msgspec.Struct, frozen=True, kw_only=True):
    """A model's main graph.

    Attributes:
        nodes: In the order of the model, which is topological.
        operators: Operator -> number of nodes, including those of subgraphs (bodies of If, Loop, Scan).
        inputs, outputs, constants: Names.
        nested: Nodes in subgraphs.
        op_types: Names of all operators, those in the bodies of local functions included.
        opsets: Domain -> version that the model imports; ONNX's own domain is ``ai.onnx``.
    """

    nodes: tuple[Node, ...]
    operators: dict[OperatorType, int]
    inputs: frozenset[str]
    outputs: frozenset[str]
    constants: frozenset[str]
    nested: int
    op_types: frozenset[str]
    opsets: dict[str, int]

    @property
    def total(self) -> int:
        """All nodes, those in subgraphs included."""
        return sum(self.operators.values())


def read_graph(content: bytes) -> Graph:
    """Return the structure of a serialized model; files with its weights need not exist.

    A ``Constant`` node counts as a constant, not as a node: every level of optimization first turns these
    nodes into initializers.

    Raises:
        ValueError: It is not an ONNX model.
    """
    model = parse_model(content)
    graph = model.graph
    constants = weight_names(graph)
    constants |= {name for node in graph.node if _is_constant(node) for name in node.output}
    counts = Counter(_operator(node) for node in all_nodes(graph.node) if not _is_constant(node))
    inner = (node for function in model.functions for node in all_nodes(function.node))
    nodes = tuple(_node(node) for node in graph.node if not _is_constant(node))
    op_types = {model_text(node.op_type) for node in inner if not _is_constant(node)}
    return Graph(
        nodes=nodes,
        operators=dict(counts),
        inputs=frozenset(model_text(port.name) for port in graph.input),
        outputs=frozenset(model_text(port.name) for port in graph.output),
        constants=frozenset(map(model_text, constants)),
        nested=counts.total() - len(nodes),
        op_types=frozenset(op_types | {operator.op_type for operator in counts}),
        opsets=named_opsets(model),
    )


def graph_in(suite: Suite, model: str) -> Graph:
    """Return the structure of a suite's model.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        return read_graph(suite.model_path(model).read_bytes())
    except (ModelError, OSError, ValueError) as error:
        raise UsageError.at(model, f"cannot be read: {one_line(error)}") from error


def _node(node: "onnx.NodeProto") -> Node:
    digest = hashlib.sha256()
    for attribute in sorted(node.attribute, key=lambda one: one.name):
        digest.update(attribute.SerializeToString(deterministic=True))
    outside = {name for body in bodies(node) for name in taken_from_outside(body)}
    return Node(
        operator=_operator(node),
        inputs=tuple(map(model_text, (*node.input, *sorted(outside)))),
        outputs=tuple(map(model_text, node.output)),
        attributes=digest.digest(),
    )


def _operator(node: "onnx.NodeProto") -> OperatorType:
    return OperatorType(model_text(domain_of(node)), model_text(node.op_type))


def _is_constant(node: "onnx.NodeProto") -> bool:
    return node.op_type == "Constant" and not domain_of(node)

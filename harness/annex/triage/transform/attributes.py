"""Attributes at their defaults."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import node_of
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.corpus.model.nodes import all_nodes
from harness.corpus.model.schema_types import schema_of

if TYPE_CHECKING:
    import onnx

AttributePlace = tuple[int, int, str]
"""Index of a node in the main graph, number of a node below it, name of an attribute."""


def default_attributes(net: Net, context: Context) -> Search:  # noqa: ARG001 - all are called alike
    """Drop attributes that may be omitted, so that the operator's default applies."""
    places = [
        (index, number, name)
        for index, node in enumerate(net.nodes)
        for number, inner in enumerate(all_nodes([node.proto()]))
        for name in _optional(inner, net)
    ]

    def build(kept: tuple[AttributePlace, ...]) -> NetCandidate:
        gone: dict[int, set[tuple[int, str]]] = {}
        for index, number, name in set(places) - set(kept):
            gone.setdefault(index, set()).add((number, name))
        nodes = list(net.nodes)
        for index, attributes in gone.items():
            proto = nodes[index].proto()
            for number, inner in enumerate(list(all_nodes([proto]))):
                _drop(inner, {name for at, name in attributes if at == number})
            nodes[index] = node_of(proto)
        return net.changed(nodes=tuple(nodes))

    yield from minimise(places, build)


def _optional(node: "onnx.NodeProto", net: Net) -> Iterator[str]:
    """Return attributes that the operator does not require; all of them if ONNX has no schema for it."""
    schema = schema_of(node, net.opsets)
    required = {name for name, one in schema.attributes.items() if one.required} if schema else set[str]()
    for attribute in node.attribute:
        if attribute.name not in required and not attribute.HasField("g") and not attribute.graphs:
            yield attribute.name


def _drop(node: "onnx.NodeProto", names: set[str]) -> None:
    for index in reversed(range(len(node.attribute))):
        if node.attribute[index].name in names:
            del node.attribute[index]

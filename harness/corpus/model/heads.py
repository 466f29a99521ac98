"""The operators that compute the outputs of a network: its heads.

They distinguish scores of classes from other numbers.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.corpus.model.nodes import domain_of, weight_names
from harness.corpus.model.port import model_text
from harness.operators.book import operators_by, operators_with
from harness.operators.row import Head

if TYPE_CHECKING:
    import onnx

Heads = dict[str, Head]
"""Output -> its head."""

_LAYERS = operators_with(lambda row: row.layer)
_WITHIN = operators_with(lambda row: row.layer in {"attributes", "classifier"})
"""Layers with their weights in attributes."""

_PASSING = operators_with(lambda row: row.passes_scores == "moves")
_POOLING = operators_with(lambda row: row.passes_scores == "pools")
_HEADS: Mapping[str, Head] = operators_by(lambda row: row.head)
_ADDING = operators_with(lambda row: row.adds_bias)
_PROBABILITIES: tuple[Head, ...] = ("softmax", "log_softmax", "sigmoid")


def heads_of(model: "onnx.ModelProto") -> Heads:
    """Return the head of each output of a network; nothing for any other model.

    A network computes from weights in at least two layers, or in one layer before a softmax or a sigmoid. A
    model of one operator has no task, whatever the operator is.
    """
    if len(model.graph.node) < 2 or not any(node.op_type in _LAYERS for node in model.graph.node):  # noqa: PLR2004
        return {}  # most tests of operators
    graph = _Graph(model.graph)
    heads: Heads = {model_text(port.name): graph.head(port.name) for port in model.graph.output}
    enough = 1 if any(head in _PROBABILITIES for head in heads.values()) else 2
    return heads if graph.layers >= enough else {}


class _Graph:
    """The main graph of a model by its tensors, and the tensors that depend on no input."""

    def __init__(self, graph: "onnx.GraphProto") -> None:
        self.makers = {name: node for node in graph.node for name in node.output if name}
        self.constants = weight_names(graph)
        self.known: dict[str, tuple[onnx.NodeProto | None, bool]] = {}
        """Tensor -> the node that computes its values, behind nodes that move or store them, and whether
        one of these pools."""
        self.layers = 0
        for node in graph.node:  # in topological order, as ONNX asks for
            given = [name for name in node.input if name]
            if all(name in self.constants for name in given):
                self.constants.update(node.output)
            elif self._is_layer(node):
                self.layers += 1

    def head(self, output: str) -> Head:
        """Return the operator that computes an output, behind nodes that move or store it."""
        node, pooled = self._source(output)
        return "" if node is None else self._of(node, pooled=pooled)

    def _source(self, output: str) -> "tuple[onnx.NodeProto | None, bool]":
        """Return a part of ``known``. All tensors on the way become known: outputs may share a long chain."""
        way: list[tuple[str, bool]] = []
        name, seen = output, set[str]()  # a broken model may have a loop
        found: tuple[onnx.NodeProto | None, bool] = (None, False)
        while name not in self.known:
            if name in seen or name not in self.makers:
                break
            seen.add(name)
            node = self.makers[name]
            moving = not domain_of(node) and node.op_type in _PASSING | _POOLING
            if moving and node.input:
                way.append((name, node.op_type in _POOLING))
                name = node.input[0]
            elif layer := self._behind(node):
                way.append((name, False))
                name = layer
            else:
                self.known[name] = found = (node, False)
        found = self.known.get(name, found)
        for before, pools in reversed(way):
            found = self.known[before] = (found[0], found[1] or pools)
        return found

    def _of(self, node: "onnx.NodeProto", *, pooled: bool) -> Head:
        op = node.op_type
        head = _HEADS.get(op, "")
        if pooled:
            return "linear" if head == "image" else ""
        needs_weights = head == "linear" or (head == "image" and op in _LAYERS)
        return "" if needs_weights and not self._is_layer(node) else head

    def _is_layer(self, node: "onnx.NodeProto") -> bool:
        if node.op_type in _WITHIN:
            return True
        return node.op_type in _LAYERS and any(name in self.constants for name in node.input if name)

    def _behind(self, node: "onnx.NodeProto") -> str:
        """Return the tensor that a bias is added to, or integers that are scaled.

        Empty for any other node.
        """
        if node.op_type == "Mul":
            return self._scaled(node)
        if node.op_type not in _ADDING:
            return ""
        names = [name for name in node.input[:2] if name and name not in self.constants]
        return names[0] if len(names) == 1 else ""

    def _scaled(self, node: "onnx.NodeProto") -> str:
        """Return the integers that a dynamic quantization's scales turn into floats; empty without any."""
        for name in node.input[:2]:
            cast = self.makers.get(name)
            if cast is not None and cast.op_type == "Cast" and cast.input:
                layer = self.makers.get(cast.input[0])
                if layer is not None and layer.op_type in {"MatMulInteger", "ConvInteger"}:
                    return str(cast.input[0])
        return ""

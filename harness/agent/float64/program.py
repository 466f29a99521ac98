"""Nodes in order, of a graph, a body or a function, and the values that can be dropped after each of them."""

from __future__ import annotations

from typing import Any

from harness.agent.float64.array_budget import ArrayBudget
from harness.agent.float64.scope import Scope, ScopeValue


class NodeProgram:
    """Nodes in order, with the names that can be dropped after each.

    Args:
        nodes: ``NodeProto``; ONNX keeps them in topological order.
        weights: Name -> tensor.
        inputs: Names of inputs.
        outputs: Names of outputs.
        opsets: Domain -> version.
        operators: Finds the computation of a node.
    """

    def __init__(
        self,
        nodes: Any,
        weights: dict[str, Any],
        names: tuple[list[str], list[str]],
        opsets: dict[str, int],
        operators: Any,
    ) -> None:
        self.inputs, self.outputs = names
        self._weights = weights
        self.steps = [operators.step(node, opsets) for node in nodes]
        self._dropped = _last_reads(nodes, self.outputs)

    @classmethod
    def of_graph(cls, graph: Any, opsets: dict[str, int], operators: Any) -> NodeProgram:
        """Return the program of a ``GraphProto``."""
        weights = {one.name: one for one in graph.initializer}
        weights.update({one.values.name: one for one in graph.sparse_initializer})
        names = [one.name for one in graph.input], [one.name for one in graph.output]
        return cls(graph.node, weights, names, opsets, operators)

    @classmethod
    def of_function(cls, function: Any, nodes: Any, operators: Any) -> NodeProgram:
        """Return the program of a ``FunctionProto``.

        ``nodes`` are its nodes with the attributes of a call.
        """
        opsets = {opset_domain(one): one.version for one in function.opset_import}
        return cls(nodes, {}, (list(function.input), list(function.output)), opsets, operators)

    def run(
        self, given: dict[str, ScopeValue], outer: Scope | None, budget: ArrayBudget | None = None
    ) -> list[ScopeValue]:
        """Return the outputs; ``outer`` has the values around a body, and is None for a function."""
        shared = budget if outer is None else outer.budget
        assert shared is not None  # noqa: S101 - a function comes with it
        scope = Scope(shared, self._weights, outer)
        try:
            for name, value in given.items():
                scope.put(name, value)
            for step, dropped in zip(self.steps, self._dropped):
                step.run(scope)
                scope.drop(dropped)
            return [scope.value(name) for name in self.outputs]
        finally:
            scope.close()


def _last_reads(nodes: Any, outputs: list[str]) -> list[list[str]]:
    """Return for each node the names that no later node reads."""
    seen = set(outputs)
    dropped: list[list[str]] = []
    for node in reversed(nodes):
        names = set(node.output) | _read(node)
        dropped.append(sorted(names - seen))
        seen |= names
    return dropped[::-1]


def _read(node: Any) -> set[str]:
    """Return the names that a node reads, including those of its bodies."""
    names = set(node.input)
    for attribute in node.attribute:
        for graph in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            names.update(one.name for one in graph.output)
            for inner in graph.node:
                names |= _read(inner)
    return names


def opset_domain(named: Any) -> str:
    """Return the domain of an opset or a function; ONNX's own is empty."""
    return "" if named.domain == "ai.onnx" else str(named.domain)

"""A whole model in float64: its graph, bodies and functions, step by step."""

from __future__ import annotations

import collections
from typing import Any

from harness.agent.float64.array_budget import ArrayBudget
from harness.agent.float64.node_kernels import NodeKernels
from harness.agent.float64.program import NodeProgram, opset_domain
from harness.agent.float64.scope import Scope, ScopeValue, fed


class Model:
    """A model that can be run.

    Args:
        proto: The ``ModelProto``, with its external data.
        trusted: Operators for which ``onnx.reference`` is known to be right, as ``Conv-11``.
        target: The target of the agent, whose CPU provider computes single nodes.
    """

    def __init__(self, proto: Any, trusted: frozenset[str], target: Any) -> None:
        self._operators = NodeKernels(proto, trusted, target)
        opsets = {opset_domain(one): one.version for one in proto.opset_import}
        self._program = NodeProgram.of_graph(proto.graph, opsets, self._operators)
        self.outputs = [one.name for one in proto.graph.output]

    def run(self, feeds: dict[str, Any], budget: ArrayBudget) -> list[Any]:
        """Return the outputs for inputs by name; floats are float64.

        Raises:
            MemoryError: It exceeds the memory limit.
            UnsupportedError: No operator known to be right computes a node.
        """
        outer = Scope(budget, {})
        values = {name: fed(data) for name, data in feeds.items() if data is not None}
        values |= {name: ScopeValue(None, "") for name, data in feeds.items() if data is None}
        return [value.data for value in self._program.run(values, outer)]

    def counted(self) -> dict[str, int]:
        """Return the number of nodes of the graph by operator."""
        return dict(collections.Counter(step.node.op_type for step in self._program.steps))

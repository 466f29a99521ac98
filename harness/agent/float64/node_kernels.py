"""The computation of a node: by an own operator, a trusted one of ``onnx.reference``, or a CPU EP kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.float64 import casts, control, reference_operators, table
from harness.agent.float64.kernels import Kernels
from harness.agent.float64.kinds import kind_of, output_kind, widened
from harness.agent.float64.program import NodeProgram
from harness.agent.float64.scope import Scope, ScopeValue
from harness.agent.float64.versioned_node import VersionedNode
from harness.agent.safe_text import clean
from harness.agent.target_errors import UnsupportedError

Compute = Callable[[VersionedNode, list[Any]], Any]
"""A node and its inputs -> its outputs, or its only one."""

Special = Callable[["NodeStep", list[ScopeValue], Scope], list[ScopeValue]]
"""The same for nodes with bodies, or whose result depends on the original types."""


class NodeStep:
    """One node, ready to run."""

    def __init__(self, node: VersionedNode, schema: Any, operators: NodeKernels) -> None:
        self.node = node
        self.schema = schema
        self.operators = operators
        self.programs: dict[str, Any] = {}
        self._compute: Compute | None = None

    def run(self, scope: Scope) -> None:
        """Compute the outputs and add them to a scope."""
        node = self.node
        given = [scope.value(name) for name in node.inputs]
        special = self.operators.special(node)
        found = special(self, given, scope) if special is not None else self._plain(given, scope)
        for name, value in zip(node.outputs, found):
            if name:
                scope.put(name, value)

    def body(self, name: str) -> Any:
        """Return the program of a body, by the name of its attribute."""
        if name not in self.programs:
            graph = self.node.get(name)
            self.programs[name] = NodeProgram.of_graph(graph, self.node.opsets, self.operators)
        return self.programs[name]

    def _plain(self, given: list[ScopeValue], scope: Scope) -> list[ScopeValue]:
        node = self.node
        if self._compute is None:
            self._compute = self.operators.compute(node, self.schema, given)
        node.budget = scope.budget
        try:
            found = self._compute(node, [value.data for value in given])
        except (UnsupportedError, MemoryError):
            raise
        except Exception as error:
            raise UnsupportedError("%s in float64: %s" % (node.name, clean(error))) from error
        outputs = found if isinstance(found, tuple) else (found,)
        kinds = [value.kind for value in given]
        return [self._typed(index, data, kinds) for index, data in enumerate(outputs)]

    def _typed(self, index: int, data: Any, kinds: list[str]) -> ScopeValue:
        if isinstance(data, (np.generic, float, int)):
            data = np.asarray(data)
        kind = kind_of(data)
        if kind in ("float64", "float32", "float16", "bfloat16"):
            kind = output_kind(self.node, self.schema, index, kinds)
        return ScopeValue(widened(data), kind)


class NodeKernels:
    """Finds the computation of a node.

    Args:
        proto: The model, whose functions take precedence.
        trusted: Operators for which ``onnx.reference`` is known to be right, as ``Conv-11``.
        target: The target of the agent.
    """

    def __init__(self, proto: Any, trusted: frozenset[str], target: Any) -> None:
        self._functions = {control.key_of(one): one for one in proto.functions}
        self._trusted = trusted
        self._kernels = Kernels(target, proto.ir_version)

    def step(self, proto: Any, opsets: dict[str, int]) -> NodeStep:
        """Return a node as a step of a program."""
        schema = reference_operators.onnx_schema(proto, opsets)
        return NodeStep(
            VersionedNode(proto, 0 if schema is None else schema.since_version, opsets), schema, self
        )

    def special(self, node: VersionedNode) -> Special | None:
        """Return the computation of a node that depends on more than its inputs; None for any other."""
        function = self._functions.get(control.key_of(node.proto))
        if function is not None:
            return lambda step, given, scope: control.call(step, given, scope, function)
        return casts.CASTS.get(node.name) or control.CONTROL_OPERATORS.get(node.name)

    def compute(self, node: VersionedNode, schema: Any, given: list[ScopeValue]) -> Compute:
        """Return the computation of a node.

        Raises:
            UnsupportedError: No operator known to be right computes it.
        """
        own = table.OWN.get(node.name)
        if own is not None:
            return lambda node, inputs: own(node, *inputs)
        if "%s-%d" % (node.name, node.since) in self._trusted and reference_operators.takes_doubles(
            schema, given
        ):
            return reference_operators.computed_by_reference(node)
        kernel = self._kernels.find(node, [value.data for value in given])
        if kernel is not None:
            return kernel
        raise UnsupportedError(
            "nothing that is known to be right computes %s of version %d in float64" % (node.name, node.since)
        )

"""The walk through a graph with trial sizes: collects the demands of all its nodes."""

import contextlib
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, NamedTuple

from harness.corpus.inputs.fitting.demands import Demand, demands_of
from harness.corpus.inputs.fitting.known_tensors import NOTHING, KnownTensor, results_of, weight
from harness.corpus.model.nodes import bodies, called_by, domain_of, local_functions
from harness.corpus.work.size import SIZE_ERRORS

if TYPE_CHECKING:
    import onnx

_DEEPEST = 8
"""Depth of nested bodies and functions that are entered."""

_MOST_NODES = 20_000
"""Largest number of nodes in one walk: functions may call each other any number of times."""

_Scope = MutableMapping[str, KnownTensor]
DemandsByPlace = dict[str, Demand]
"""Place in the graph -> demand, in the order of the nodes."""


class _Step(NamedTuple):
    """A node of the main graph; ``inner`` is whether it has bodies, or calls a function."""

    place: str
    node: "onnx.NodeProto"
    inputs: tuple[str, ...]
    inner: bool


class Walk:
    """Walks a graph any number of times.

    Weights, and tensors computed from weights alone, are evaluated once.
    """

    def __init__(self, model: "onnx.ModelProto") -> None:
        self.visited = 0
        """Number of nodes in all walks."""
        self._opsets = {domain_of(one): one.version for one in model.opset_import}
        self._functions = local_functions(model)
        self._left = _MOST_NODES
        self._found: DemandsByPlace = {}
        self._weights: dict[str, dict[str, KnownTensor]] = {}
        """Place of a body -> its weights."""
        self._constant = {one.name: weight(one) for one in model.graph.initializer}
        self._steps: list[_Step] = []
        for step in self._steps_of(model.graph.node, ""):
            given = [self._constant.get(name, NOTHING) if name else None for name in step.inputs]
            if not step.inner and all(one is None or one.fixed for one in given):
                for name, one in zip(
                    step.node.output, results_of(step.node, given, self._opsets), strict=False
                ):
                    if one.dims is not None:
                        self._constant[name] = one._replace(fixed=True)
            if any(name and name not in self._constant for name in step.node.output):
                self._steps.append(step)

    def demands(self, inputs: Mapping[str, KnownTensor]) -> DemandsByPlace:
        """Return the demands for these inputs."""
        self._found, self._left = {}, _MOST_NODES
        with contextlib.suppress(*SIZE_ERRORS, RecursionError):  # a model that no runtime accepts either
            self._walk(self._steps, {**self._constant, **inputs}, _DEEPEST)
        self.visited += _MOST_NODES - self._left
        return self._found

    def _steps_of(self, nodes: "Iterable[onnx.NodeProto]", at: str) -> Iterator[_Step]:
        for number, node in enumerate(nodes):
            inner = called_by(node) in self._functions or next(bodies(node), None) is not None
            yield _Step(f"{at}/{number}", node, tuple(node.input), inner)

    def _walk(self, steps: Iterable[_Step], scope: _Scope, depth: int) -> None:
        for place, node, inputs, inner in steps:
            self._left -= 1
            if self._left < 0:
                return
            given = [scope.get(name, NOTHING) if name else None for name in inputs]
            for name, demand in demands_of(node, given):
                self._found[f"{place} {name}"] = demand
            made = self._inner(node, given, scope, place, depth) if inner and depth else []
            for name, known in zip(node.output, made or results_of(node, given, self._opsets), strict=False):
                if name:
                    scope[name] = known

    def _nodes(self, nodes: "Iterable[onnx.NodeProto]", scope: _Scope, at: str, depth: int) -> None:
        self._walk(self._steps_of(nodes, at), scope, depth)

    def _inner(
        self, node: "onnx.NodeProto", given: list[KnownTensor | None], scope: _Scope, place: str, depth: int
    ) -> list[KnownTensor]:
        """Walk the function that a node calls, or its bodies; return the known facts of its results."""
        function = self._functions.get(called_by(node))
        if function is not None:
            inner: _Scope = dict(zip(function.input, (one or NOTHING for one in given), strict=False))
            self._nodes(function.node, inner, place, depth - 1)
            return [inner.get(name, NOTHING) for name in function.output]
        if node.op_type == "If":
            return self._branches(node, given, scope, place, depth)
        for number, body in enumerate(bodies(node)):
            inner = self._own(body, scope, f"{place} {number}")
            if node.op_type == "Loop":
                # In the first iteration; later states may have other numbers.
                for port, known in zip(body.input[2:], given[2:], strict=False):
                    inner[port.name] = (known or NOTHING)._replace(numbers=None)
            self._nodes(body.node, inner, place, depth - 1)
            if node.op_type == "Loop":
                return _states(body, inner, given)
        return []

    def _own(self, body: "onnx.GraphProto", scope: _Scope, at: str) -> _Scope:
        """Return the scope of the body at a place: its weights, then the visible tensors around it."""
        own = self._weights.get(at)
        if own is None:
            own = self._weights[at] = {one.name: weight(one) for one in body.initializer}
        return ChainMap({port.name: NOTHING for port in body.input}, own, scope)

    def _branches(
        self, node: "onnx.NodeProto", given: list[KnownTensor | None], scope: _Scope, place: str, depth: int
    ) -> list[KnownTensor]:
        condition = given[0].numbers if given and given[0] is not None else None
        by_name = {one.name: one.g for one in node.attribute}
        names = ("then_branch", "else_branch")
        if condition is not None and condition.size:
            names = names[:1] if condition.reshape(-1)[0] else names[1:]  # type: ignore[assignment]
        results = []
        for name in names:
            if name in by_name:
                at = f"{place} {name}"
                inner = self._own(by_name[name], scope, at)
                self._nodes(by_name[name].node, inner, at, depth - 1)
                results.append([inner.get(port.name, NOTHING) for port in by_name[name].output])
        first, *others = results or [[]]
        if not others:
            return first
        return [
            _if_alike(known, [one[at] for one in others if len(one) > at]) for at, known in enumerate(first)
        ]


def _if_alike(known: KnownTensor, others: list[KnownTensor]) -> KnownTensor:
    """Return the shape of a tensor if all branches agree on it."""
    return KnownTensor(known.dims) if all(one.dims == known.dims for one in others) else NOTHING


def _states(body: "onnx.GraphProto", inner: _Scope, given: list[KnownTensor | None]) -> list[KnownTensor]:
    """Return the known facts of a loop's last states: the shapes of those that do not change."""
    pairs = zip(given[2:], body.output[1:], strict=False)
    last = [(first or NOTHING, inner.get(port.name, NOTHING)) for first, port in pairs]
    found = [KnownTensor(first.dims) if first.dims == after.dims else NOTHING for first, after in last]
    return found + [NOTHING] * (len(body.output) - 1 - len(found))

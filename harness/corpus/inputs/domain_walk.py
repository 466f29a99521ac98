"""The walk from graph inputs to the operators that restrict their values."""

from collections import ChainMap
from collections.abc import Iterable, Iterator, MutableMapping
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.inputs.axis_counts import AxisCounts
from harness.corpus.model.node_use import Use
from harness.corpus.model.nodes import (
    FunctionKey,
    bodies,
    called_by,
    constant_of,
    domain_of,
    local_functions,
    number_of,
    operator_name,
)
from harness.corpus.model.port import model_text
from harness.corpus.model.symbols import axis_name
from harness.operators.book import find_operator, operators_with
from harness.operators.value_domains import Domain, Extent, Extents

if TYPE_CHECKING:
    import onnx

_KEEPS_VALUES = operators_with(lambda row: row.keeps_values)
_JOINS_VALUES = operators_with(lambda row: row.joins_values)
_KEEPS_SHAPE = operators_with(lambda row: row.restricts_as_first)

_DEEPEST = 16
"""Depth of nested bodies and functions that are entered."""

_MOST_ORIGINS = 64
"""Largest number of graph inputs whose values one tensor may hold; beyond it, values are not followed."""

_BOOL = 9


class _Origin(msgspec.Struct, frozen=True):
    """A graph input whose values a tensor holds; ``moved``: its elements are at other places."""

    name: str
    moved: bool = False


def domains_of(model: "onnx.ModelProto") -> dict[str, Domain]:
    """Return the values that inputs may hold, by name; inputs without restriction are left out.

    Bodies of control flow and local functions are entered. Values are followed through operators that only
    move them.
    """
    walk = _Walk(model)
    graph = model.graph
    scope = _Scope()
    for port in graph.input:
        scope.origins[port.name] = frozenset({_Origin(port.name)})
    walk.graph(graph, scope, 0)
    return {model_text(name): domain for name, domain in walk.found.items()}


class _Scope:
    """Known facts of tensors by name; an inner scope sees those of the outer one."""

    def __init__(self, outer: "_Scope | None" = None) -> None:
        self.origins: MutableMapping[str, frozenset[_Origin]] = ChainMap({}, outer.origins if outer else {})
        self.shapes: MutableMapping[str, Extents] = ChainMap({}, outer.shapes if outer else {})
        self.constants: MutableMapping[str, onnx.TensorProto] = ChainMap({}, outer.constants if outer else {})
        self.counts: AxisCounts = AxisCounts(outer.counts if outer else None)

    def fact(self, name: str) -> "_Fact":
        """Return the known facts of a tensor."""
        origins, constant = self.origins.get(name, frozenset()), id(self.constants.get(name))
        return origins, self.shapes.get(name), constant, self.counts.fact(name)

    def alias(self, name: str, outer: "_Scope", of: str) -> None:
        """Give a name the facts that another scope has under another name."""
        self.origins[name] = outer.origins.get(of, frozenset())
        if of in outer.shapes:
            self.shapes[name] = outer.shapes[of]
        if of in outer.constants:
            self.constants[name] = outer.constants[of]
        self.counts.alias(name, outer.counts, of)


_Fact = tuple[frozenset[_Origin], Extents | None, int, tuple[Extents | None, Extent | None]]
"""All that is known of a tensor: graph inputs whose values it holds, its shape, the ``id`` of its value, and
what it counts."""


class _Walk:
    def __init__(self, model: "onnx.ModelProto") -> None:
        self.found: dict[str, Domain] = {}
        self._functions = local_functions(model)
        self._called: dict[tuple[FunctionKey, int, tuple[_Fact, ...]], _Scope] = {}
        """Results of calls by their facts: functions may call each other any number of times."""
        self._moved: dict[frozenset[_Origin], frozenset[_Origin]] = {}
        self._taken: set[tuple[frozenset[_Origin], Domain]] = set()

    def graph(self, graph: "onnx.GraphProto", scope: _Scope, depth: int) -> None:
        for infos, fed in ((graph.input, depth == 0), (graph.value_info, False)):
            for info in infos:
                if info.type.tensor_type.HasField("shape"):
                    # The caller's shape of a body's input takes precedence.
                    scope.shapes.setdefault(info.name, _declared(info, fed=fed))
        for weight in graph.initializer:
            scope.constants[weight.name] = weight
            scope.shapes[weight.name] = tuple(weight.dims)
        self.nodes(graph.node, scope, depth)

    def nodes(self, nodes: "Iterable[onnx.NodeProto]", scope: _Scope, depth: int) -> None:
        for node in nodes:
            function = self._functions.get(called_by(node))
            if function is not None:
                self._call(function, node, scope, depth)
                continue
            use = Use(
                node=node,
                shapes=scope.shapes,
                constants=scope.constants,
                counts=scope.counts.positions,
            )
            self._restrict(node, use, scope)
            self._follow(node, scope)
            if not domain_of(node):
                scope.counts.follow(node, use)
            if depth < _DEEPEST:
                for body in bodies(node):
                    inner = _Scope(scope)
                    for name, given in _fed(node, body):
                        inner.alias(name, scope, given)
                    self.graph(body, inner, depth + 1)

    def _call(
        self, function: "onnx.FunctionProto", node: "onnx.NodeProto", scope: _Scope, depth: int
    ) -> None:
        if depth >= _DEEPEST:
            return
        fed = [*zip(function.input, node.input, strict=False)]
        key = (called_by(node), depth, tuple(scope.fact(given) for _, given in fed))
        inner = self._called.get(key)
        if inner is None:
            # keeps the constants alive, so that no other one gets their id
            inner = self._called[key] = _Scope()
            for name, given in fed:
                inner.alias(name, scope, given)
            self.nodes(function.node, inner, depth + 1)
        for name, made in zip(node.output, function.output, strict=False):
            if name:
                scope.alias(name, inner, made)

    def _restrict(self, node: "onnx.NodeProto", use: Use, scope: _Scope) -> None:
        """Restrict the graph inputs whose values an operator reads."""
        row = find_operator(operator_name(domain_of(node), node.op_type))
        for index, rule in row.values.items() if row else ():
            name = node.input[index] if index < len(node.input) else ""
            origins = scope.origins.get(name, frozenset()) if name else frozenset()
            if not origins:
                continue
            wanted = rule if isinstance(rule, Domain) else rule(use)
            if wanted is not None and (origins, wanted) not in self._taken:
                self._taken.add((origins, wanted))
                for origin in sorted(origins, key=lambda one: (one.name, one.moved)):
                    self._take(origin, wanted)

    def _take(self, origin: _Origin, wanted: Domain) -> None:
        if origin.moved and (wanted.distinct is not None or wanted.tuples):
            # The axis along which values must differ is unknown: so all of them differ.
            limits = wanted.extents or wanted.tuples
            wanted = msgspec.structs.replace(wanted, extents=limits, tuples=(), distinct=None)
        known = self.found.get(origin.name)
        self.found[origin.name] = wanted if known is None else known.within(wanted)

    def _follow(self, node: "onnx.NodeProto", scope: _Scope) -> None:
        """Note which results hold values of graph inputs, and their shapes."""
        if domain_of(node) or not node.output:
            return
        if node.op_type == "Constant":
            _take_constant(node, scope)
        elif node.input and node.op_type in _KEEPS_SHAPE and node.input[0] in scope.shapes:
            scope.shapes[node.output[0]] = scope.shapes[node.input[0]]
        held = {scope.origins.get(name, frozenset()) for name in _whose_values(node)}
        # Reuse the set if there is only one: chains of nodes are long, and sets may be large.
        origins = held.pop() if len(held) == 1 else frozenset[_Origin]().union(*held)
        if len(origins) > _MOST_ORIGINS:
            return
        if origins and node.op_type not in _KEEPS_SHAPE:
            origins = self._as_moved(origins)
        for name in node.output if "Split" in node.op_type else node.output[:1]:
            if origins and name:
                scope.origins[name] = origins

    def _as_moved(self, origins: frozenset[_Origin]) -> frozenset[_Origin]:
        found = self._moved.get(origins)
        if found is None:
            found = frozenset(_Origin(one.name, moved=True) for one in origins)
            self._moved[origins] = self._moved[found] = found
        return found


def _take_constant(node: "onnx.NodeProto", scope: _Scope) -> None:
    value = constant_of(node)
    if value is not None:
        scope.constants[node.output[0]] = value
        scope.shapes[node.output[0]] = tuple(value.dims)


def _whose_values(node: "onnx.NodeProto") -> "Iterable[str]":
    """Return the inputs of a node whose values appear in its results."""
    if node.op_type in _JOINS_VALUES:
        return tuple(node.input[node.op_type == "Where" :])
    keeps = node.op_type in _KEEPS_VALUES and number_of(node, "to", 0) != _BOOL
    return tuple(node.input[:1]) if keeps else ()


def _declared(info: "onnx.ValueInfoProto", *, fed: bool) -> Extents:
    """Return a declared shape; an axis without a name has a known size only in inputs that are fed."""
    return tuple(
        (dim.dim_value if dim.dim_value > 0 else None)
        if dim.HasField("dim_value")
        else dim.dim_param or (axis_name(axis) if fed else None)
        for axis, dim in enumerate(info.type.tensor_type.shape.dim)
    )


def _fed(node: "onnx.NodeProto", body: "onnx.GraphProto") -> Iterator[tuple[str, str]]:
    """Yield the inputs of a body, each with the tensor that feeds it first. The branches of If have none."""
    # The inputs of Loop's body are iteration, condition, states; the node's are trips, condition, states.
    start = {"Loop": 2, "Scan": 0}.get(node.op_type, len(body.input))
    for port, given in zip(body.input[start:], node.input[start:], strict=False):
        yield port.name, given

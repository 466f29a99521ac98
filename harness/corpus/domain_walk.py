"""The walk from graph inputs to the operators that restrict what values they may hold."""

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from harness.corpus.domains import Domain, Extent, rules_of
from harness.corpus.port import model_text
from harness.corpus.protos import tensor_value
from harness.corpus.schema_types import bodies, domain_of
from harness.corpus.sizes import axis_name

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    import onnx

KEEPS_VALUES = frozenset(
    {
        *("Cast", "CastLike", "DepthToSpace", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Pad"),
        *("Reshape", "SequenceAt", "Slice", "SpaceToDepth", "Split", "SplitToSequence", "Squeeze", "Tile"),
        *("Transpose", "Unsqueeze"),
    }
)
"""Operators whose results hold nothing but values of their first input, and zeros for ``Pad``."""

JOINS_VALUES = frozenset({"Concat", "ConcatFromSequence", "SequenceConstruct", "Where"})
"""Operators whose result holds values of several inputs."""

KEEPS_SHAPE = frozenset({"Cast", "CastLike", "DequantizeLinear", "Dropout", "Identity"})
"""Operators whose first result has the shape of their first input."""

SMALL_CONSTANT = 64
"""Elements of a constant that a rule may look at."""

DEEPEST = 16
"""Bodies and functions within one another that are entered; a broken model may call itself."""

_BOOL = 9
_Shape = tuple[Extent | None, ...]


class _Origin(msgspec.Struct, frozen=True):
    """A graph input whose values a tensor holds; ``moved`` where its elements lie elsewhere by now."""

    name: str
    moved: bool = False


def domains_of(model: "onnx.ModelProto") -> dict[str, Domain]:
    """Input -> the values that it may hold; inputs that nothing restricts are left out.

    Bodies of control flow and local functions are entered. Values are followed through operators that
    compute nothing from them.
    """
    walk = _Walk(model)
    graph = model.graph
    scope = _Scope()
    for port in graph.input:
        scope.origins[port.name] = frozenset({_Origin(port.name)})
    walk.graph(graph, scope, 0)
    return {model_text(name): domain for name, domain in walk.found.items()}


class _Scope:
    """What is known of tensors by name; an inner scope sees what an outer one knows."""

    def __init__(self, outer: "_Scope | None" = None) -> None:
        self.origins: MutableMapping[str, frozenset[_Origin]] = {}
        self.shapes: MutableMapping[str, _Shape] = {}
        self.constants: MutableMapping[str, onnx.TensorProto] = {}
        if outer is not None:
            self.origins = ChainMap({}, outer.origins)
            self.shapes = ChainMap({}, outer.shapes)
            self.constants = ChainMap({}, outer.constants)

    def alias(self, name: str, outer: "_Scope", of: str) -> None:
        """Let a name stand for what another scope knows by another name."""
        self.origins[name] = outer.origins.get(of, frozenset())
        if of in outer.shapes:
            self.shapes[name] = outer.shapes[of]
        if of in outer.constants:
            self.constants[name] = outer.constants[of]


class _Walk:
    def __init__(self, model: "onnx.ModelProto") -> None:
        self.found: dict[str, Domain] = {}
        self._functions = {(one.domain, one.name): one for one in model.functions}
        self._opsets = {domain_of(one): one.version for one in model.opset_import}

    def graph(self, graph: "onnx.GraphProto", scope: _Scope, depth: int) -> None:
        for infos, fed in ((graph.input, depth == 0), (graph.value_info, False)):
            for info in infos:
                if info.type.tensor_type.HasField("shape"):
                    # What a caller knows of the shape of a body's input stands.
                    scope.shapes.setdefault(info.name, _declared(info, fed=fed))
        for weight in graph.initializer:
            scope.constants[weight.name] = weight
            scope.shapes[weight.name] = tuple(weight.dims)
        self.nodes(graph.node, scope, depth)

    def nodes(self, nodes: "Iterable[onnx.NodeProto]", scope: _Scope, depth: int) -> None:
        for node in nodes:
            function = self._functions.get((node.domain, node.op_type))
            if function is not None:
                self._call(function, node, scope, depth)
                continue
            self._restrict(node, scope)
            self._follow(node, scope)
            if depth < DEEPEST:
                for body in bodies(node):
                    inner = _Scope(scope)
                    for name, given in _fed(node, body):
                        inner.alias(name, scope, given)
                    self.graph(body, inner, depth + 1)

    def _call(
        self, function: "onnx.FunctionProto", node: "onnx.NodeProto", scope: _Scope, depth: int
    ) -> None:
        if depth >= DEEPEST:
            return
        inner = _Scope()
        for name, given in zip(function.input, node.input, strict=False):
            inner.alias(name, scope, given)
        self.nodes(function.node, inner, depth + 1)
        for name, made in zip(node.output, function.output, strict=False):
            if name:
                scope.alias(name, inner, made)

    def _restrict(self, node: "onnx.NodeProto", scope: _Scope) -> None:
        """Take what an operator demands of the graph inputs whose values it reads."""
        domain = domain_of(node)
        rules = rules_of(domain, node.op_type)
        use = _Node(node, scope, self._opsets.get(domain, 1))
        for index, rule in rules.items():
            name = node.input[index] if index < len(node.input) else ""
            origins = scope.origins.get(name, frozenset()) if name else frozenset()
            if not origins:
                continue
            wanted = rule if isinstance(rule, Domain) else rule(use)
            if wanted is None:
                continue
            for origin in sorted(origins, key=lambda one: (one.name, one.moved)):
                self._take(origin, wanted)

    def _take(self, origin: _Origin, wanted: Domain) -> None:
        if origin.moved and (wanted.distinct is not None or wanted.tuples):
            # Where along an axis values have to differ is no longer known: let all of them differ.
            limits = wanted.extents or wanted.tuples
            wanted = msgspec.structs.replace(wanted, extents=limits, tuples=(), distinct=None)
        known = self.found.get(origin.name)
        self.found[origin.name] = wanted if known is None else known.within(wanted)

    def _follow(self, node: "onnx.NodeProto", scope: _Scope) -> None:
        """Note which of the results hold values of graph inputs, and what is known of their shapes."""
        if domain_of(node) or not node.output:
            return
        if node.op_type == "Constant":
            _take_constant(node, scope)
        elif node.input and node.op_type in KEEPS_SHAPE and node.input[0] in scope.shapes:
            scope.shapes[node.output[0]] = scope.shapes[node.input[0]]
        held = [scope.origins.get(name, frozenset()) for name in _whose_values(node)]
        origins = frozenset[_Origin]().union(*held)
        if origins and node.op_type not in KEEPS_SHAPE:
            origins = frozenset(_Origin(one.name, moved=True) for one in origins)
        for name in node.output if "Split" in node.op_type else node.output[:1]:
            if origins and name:
                scope.origins[name] = origins


class _Node:
    """A node with its scope, as ``harness.corpus.domains.Use``."""

    def __init__(self, node: "onnx.NodeProto", scope: _Scope, opset: int) -> None:
        self._node = node
        self._scope = scope
        self.opset = opset

    def number(self, attribute: str, default: float) -> float:
        return _number(self._node, attribute, default)

    def shape(self, index: int) -> _Shape | None:
        return self._scope.shapes.get(self._name(index))

    def constant(self, index: int) -> tuple[float, ...]:
        proto = self._scope.constants.get(self._name(index))
        count = 1
        for extent in proto.dims if proto is not None else ():
            count *= extent
        if proto is None or count > SMALL_CONSTANT:
            return ()
        try:
            return tuple(map(float, tensor_value(proto).array.reshape(-1)))
        except (ValueError, TypeError):  # external, a text, or of a type without numbers
            return ()

    def _name(self, index: int) -> str:
        return self._node.input[index] if index < len(self._node.input) else ""


def _take_constant(node: "onnx.NodeProto", scope: _Scope) -> None:
    for attribute in node.attribute:
        if attribute.name == "value":
            scope.constants[node.output[0]] = attribute.t
            scope.shapes[node.output[0]] = tuple(attribute.t.dims)


def _whose_values(node: "onnx.NodeProto") -> "Iterable[str]":
    """The inputs of a node whose values are those of its results."""
    if node.op_type in JOINS_VALUES:
        return tuple(node.input[node.op_type == "Where" :])
    keeps = node.op_type in KEEPS_VALUES and _number(node, "to", 0) != _BOOL
    return tuple(node.input[:1]) if keeps else ()


def _declared(info: "onnx.ValueInfoProto", *, fed: bool) -> _Shape:
    """A declared shape; only inputs that are fed have a size where an axis has no name."""
    return tuple(
        (dim.dim_value if dim.dim_value > 0 else None)
        if dim.HasField("dim_value")
        else dim.dim_param or (axis_name(axis) if fed else None)
        for axis, dim in enumerate(info.type.tensor_type.shape.dim)
    )


def _number(node: "onnx.NodeProto", attribute: str, default: float) -> float:
    for one in node.attribute:
        if one.name == attribute:
            return float(one.f if one.type == one.FLOAT else one.i)
    return default


def _fed(node: "onnx.NodeProto", body: "onnx.GraphProto") -> Iterator[tuple[str, str]]:
    """Input of a body -> what feeds it first. Those of If have none."""
    if node.op_type == "Loop":  # the body's are iteration, condition, states; the node's trips, condition, ..
        names: Mapping[int, int] = {index: index for index in range(2, len(body.input))}
    elif node.op_type == "Scan":
        names = {index: index for index in range(len(body.input))}
    else:
        names = {}
    for index, given in names.items():
        if given < len(node.input):
            yield body.input[index].name, node.input[given]

"""Names that reveal nothing about a model's source, by the order in which they first appear."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import NetWeight, copied, node_of, weight_of
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.corpus.model.nodes import all_nodes, bodies, domain_of, tensors_in

if TYPE_CHECKING:
    import onnx

NameKind = Literal["node", "tensor", "dimension", "function", "domain"]

_KINDS: tuple[NameKind, ...] = ("node", "tensor", "dimension", "function", "domain")

NewNames = dict[str, str]


def anonymous_names(net: Net, context: Context) -> Search:  # noqa: ARG001 - all are called alike
    """Name nodes ``n0``, tensors ``t0``, dimensions ``d0``, functions ``f0`` and so on."""

    def build(kept: tuple[NameKind, ...]) -> NetCandidate:
        return anonymised(net, [kind for kind in _KINDS if kind not in kept])

    yield from minimise(_KINDS, build)


def anonymised(net: Net, kinds: Collection[NameKind]) -> Net:
    """Return a net with new names of some kinds; no name is lost, and equal ones stay equal."""
    new = {kind: _NUMBERED[kind](net) if kind in kinds else {} for kind in _KINDS}
    if not any(old != name for names in new.values() for old, name in names.items()):
        return net
    renaming = _Renaming(net, new)
    domains = new["domain"]
    return net.changed(
        header=renaming.header(net.header),
        opsets={domains.get(domain, domain): version for domain, version in net.opsets.items()},
        nodes=tuple(node_of(renaming.node(node.proto())) for node in net.nodes),
        functions=tuple(map(renaming.function, net.functions)),
        inputs=renaming.declarations(net.inputs),
        outputs=renaming.declarations(net.outputs),
        infos=renaming.declarations(net.infos),
        weights={one.name: one for one in map(renaming.weight, net.weights.values())},
        sparse={one.values.name: one for one in map(renaming.sparse, net.sparse.values())},
        annotations={one.tensor_name: one for one in map(renaming.annotation, net.annotations.values())},
        fed={renaming.tensors.get(name, name): value for name, value in net.fed.items()},
        origins=_origins(net, new["node"]),
    )


def tellings(net: Net) -> int:
    """Return how many names may reveal something."""
    return sum(old != name for kind in _KINDS for old, name in _NUMBERED[kind](net).items())


def _origins(net: Net, names: NewNames) -> NewNames:
    """Return the original name of each node; names that stayed keep their facts."""
    return {
        name: origin
        for old, name in (names or {name: name for name in net.origins}).items()
        if (origin := net.origins.get(old, old)) != name
    }


def _every_node(net: Net) -> "Iterator[onnx.NodeProto]":
    for node in net.nodes:
        yield from all_nodes([node.proto()])
    for function in net.functions:
        yield from all_nodes(function.node)


def _numbered(names: Iterable[str], letter: str) -> NewNames:
    return {name: f"{letter}{number}" for number, name in enumerate(dict.fromkeys(filter(None, names)))}


def _nodes(net: Net) -> NewNames:
    return _numbered((node.name for node in _every_node(net)), "n")


def _tensors(net: Net) -> NewNames:
    return _numbered(_tensor_names(net), "t")


def _tensor_names(net: Net) -> Iterator[str]:
    yield from net.inputs
    yield from net.weights
    yield from net.sparse
    for node in _every_node(net):
        yield from (*node.input, *node.output)
        for body in bodies(node):
            yield from (one.name for one in (*body.input, *body.output, *body.initializer, *body.value_info))
            yield from (one.values.name for one in body.sparse_initializer)
    for function in net.functions:
        yield from (*function.input, *function.output)
    yield from net.outputs
    yield from net.infos


def _dimensions(net: Net) -> NewNames:
    declared = [*net.inputs.values(), *net.outputs.values(), *net.infos.values()]
    for node in _every_node(net):
        for body in bodies(node):
            declared += (*body.input, *body.output, *body.value_info)
    return _numbered((dim.dim_param for info in declared for dim in _dims(info.type)), "d")


def _dims(declared: Any) -> Iterator[Any]:
    for tensor in tensors_in(declared):
        yield from tensor.shape.dim


def _functions(net: Net) -> NewNames:
    return _numbered((function.name for function in net.functions), "f")


def _domains(net: Net) -> NewNames:
    """Return the domains that contain only functions of the model."""
    own = dict.fromkeys((domain_of(one), one.name) for one in net.functions)
    foreign = {domain_of(node) for node in _every_node(net) if (domain_of(node), node.op_type) not in own}
    return _numbered((domain for domain, _ in own if domain not in foreign), "local")


_NUMBERED = {
    "node": _nodes,
    "tensor": _tensors,
    "dimension": _dimensions,
    "function": _functions,
    "domain": _domains,
}


class _Renaming:
    """New names, put into copies of messages."""

    def __init__(self, net: Net, new: Mapping[NameKind, NewNames]) -> None:
        self.new = new
        self.tensors = new["tensor"]
        self.calls = {(domain_of(one), one.name) for one in net.functions}

    def node(self, node: "onnx.NodeProto") -> "onnx.NodeProto":
        """Rename in place; the caller owns the node."""
        if (domain_of(node), node.op_type) in self.calls:
            node.op_type = self.new["function"].get(node.op_type, node.op_type)
            node.domain = self.new["domain"].get(node.domain, node.domain)
        node.name = self.new["node"].get(node.name, node.name)
        self.texts(node.input)
        self.texts(node.output)
        for body in bodies(node):
            body.name = "g"
            for info in (*body.input, *body.output, *body.value_info):
                info.CopyFrom(self.declaration(info))
            for one in (*body.initializer, *(sparse.values for sparse in body.sparse_initializer)):
                one.name = self.tensors.get(one.name, one.name)
            for inner in body.node:
                self.node(inner)
        return node

    def function(self, function: "onnx.FunctionProto") -> "onnx.FunctionProto":
        renamed: onnx.FunctionProto = copied(function)
        renamed.name = self.new["function"].get(function.name, function.name)
        renamed.domain = self.new["domain"].get(function.domain, function.domain)
        for opset in renamed.opset_import:
            opset.domain = self.new["domain"].get(opset.domain, opset.domain)
        renamed.ClearField("doc_string")
        self.texts(renamed.input)
        self.texts(renamed.output)
        for info in renamed.value_info:
            info.CopyFrom(self.declaration(info))
        for node in renamed.node:
            self.node(node)
        return renamed

    def texts(self, names: Any) -> None:
        for index, name in enumerate(names):
            names[index] = self.tensors.get(name, name)

    def declarations(self, infos: Mapping[str, Any]) -> dict[str, Any]:
        return {one.name: one for one in map(self.declaration, infos.values())}

    def declaration(self, info: Any) -> Any:
        renamed = copied(info)
        renamed.name = self.tensors.get(info.name, info.name)
        renamed.ClearField("doc_string")
        for dim in _dims(renamed.type):
            if dim.dim_param:
                dim.dim_param = self.new["dimension"].get(dim.dim_param, dim.dim_param)
        return renamed

    def weight(self, weight: NetWeight) -> NetWeight:
        import onnx

        name = self.tensors.get(weight.name, weight.name)
        if name == weight.name:
            return weight
        proto = onnx.TensorProto.FromString(weight.wire)
        proto.name = name
        return weight_of(proto)

    def sparse(self, sparse: Any) -> Any:
        renamed = copied(sparse)
        renamed.values.name = self.tensors.get(sparse.values.name, sparse.values.name)
        return renamed

    def annotation(self, annotation: Any) -> Any:
        renamed = copied(annotation)
        renamed.tensor_name = self.tensors.get(annotation.tensor_name, annotation.tensor_name)
        for one in renamed.quant_parameter_tensor_names:
            one.value = self.tensors.get(one.value, one.value)
        return renamed

    def header(self, header: bytes) -> bytes:
        import onnx

        model = onnx.ModelProto.FromString(header)
        for opset in model.opset_import:
            opset.domain = self.new["domain"].get(opset.domain, opset.domain)
        changed: bytes = model.SerializeToString()
        return changed

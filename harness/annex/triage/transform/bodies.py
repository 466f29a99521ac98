"""Fewer nodes in the bodies of If, Loop and Scan."""

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harness.annex.triage.context import Context
from harness.annex.triage.cut import pruned
from harness.annex.triage.net import Net
from harness.annex.triage.net_node import node_of, replaced_names
from harness.annex.triage.net_tensors import NUMBERS_SEED, shape_of
from harness.annex.triage.outline import inferred
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.core.values.value import Tensor
from harness.corpus.inputs.generated_inputs import generate
from harness.corpus.model.nodes import bodies, replace_nodes, taken_from_outside
from harness.corpus.model.port import Port, value_type
from harness.corpus.model.protos import tensor_proto

if TYPE_CHECKING:
    import onnx

BodyPlace = tuple[int, ...]
"""Index of a node in the main graph, of one of its bodies, of a node in that, and so on."""


def fewer_body_nodes(net: Net, context: Context) -> Search:
    """Search for the fewest nodes in bodies.

    A result of such a node is replaced by one of its inputs with the same type and shape, or else by a
    constant with invented values.
    """
    typed = inferred(net)
    if typed is None:
        return
    places = [
        (index, *place)
        for index, node in enumerate(net.nodes)
        if len(node.operators) > 1
        for place, inner in _inner_nodes(node.proto())
        if not context.stays(net, [inner.name, *(one.name for _, one in _inner_nodes(inner))])
    ]

    def build(kept: tuple[BodyPlace, ...]) -> NetCandidate:
        gone = set(places) - set(kept)
        return _without(net, gone, typed, context)

    yield from minimise(places, build)


def _inner_nodes(node: "onnx.NodeProto") -> "Iterator[tuple[BodyPlace, onnx.NodeProto]]":
    for number, body in enumerate(bodies(node)):
        for index, inner in enumerate(body.node):
            yield (number, index), inner
            for place, deeper in _inner_nodes(inner):
                yield (number, index, *place), deeper


def _without(
    net: Net, gone: Collection[BodyPlace], typed: "onnx.ModelProto", context: Context
) -> NetCandidate:
    types = dict(context.known(net).types)
    nodes = list(net.nodes)
    for index in {place[0] for place in gone}:
        proto = net.nodes[index].proto()
        below = {place[1:] for place in gone if place[0] == index}
        if not _thin(proto, typed.graph.node[index], below, types):
            return None
        nodes[index] = node_of(proto)
    return pruned(net.changed(nodes=tuple(nodes)))


def _thin(
    node: "onnx.NodeProto", typed: "onnx.NodeProto", gone: set[BodyPlace], types: Mapping[str, Any]
) -> bool:
    """Remove nodes from the bodies of a node, in place; return whether that was possible."""
    for number, (body, model) in enumerate(zip(bodies(node), bodies(typed), strict=True)):
        inside = dict(types)
        for info in (*model.value_info, *model.input, *model.output):
            inside[info.name] = info.type
        for weight in body.initializer:
            inside[weight.name] = _type_of(weight)
        direct = {place[1] for place in gone if place[0] == number and len(place) == 2}  # noqa: PLR2004
        for index, inner in enumerate(body.node):
            deeper = {place[2:] for place in gone if place[:2] == (number, index) and len(place) > 2}  # noqa: PLR2004
            if deeper and index not in direct and not _thin(inner, model.node[index], deeper, inside):
                return False
        if direct and not _remove(body, direct, inside):
            return False
    return True


def _remove(body: "onnx.GraphProto", gone: set[int], types: Mapping[str, Any]) -> bool:
    """Remove nodes of one body, in place; return whether each of their results could be replaced."""
    names: dict[str, str] = {}
    removed = [node for index, node in enumerate(body.node) if index in gone]
    left = [node for index, node in enumerate(body.node) if index not in gone]
    for node in removed:
        for name in filter(None, node.output):
            same = [one for one in node.input if one and _equal(types.get(one), types.get(name))]
            if same:
                names[name] = names.get(same[0], same[0])
            elif not _made_up(body, name, types.get(name)):
                return False
    made = {name for node in left for name in node.output} | {one.name for one in body.initializer}
    for node in left:
        replaced_names(node, names)
    for info in body.output:
        info.name = names.get(info.name, info.name)
    replace_nodes(body, left)
    del body.value_info[:]
    ends = [info.name for info in body.output]
    # A body returns only its own results, each tensor once: onnxruntime refuses anything else.
    return bool(left) and len(set(ends)) == len(ends) and all(name in made for name in ends) and _tidy(body)


def _tidy(body: "onnx.GraphProto") -> bool:
    """Drop initializers that nothing reads."""
    read = {info.name for info in body.output}
    for node in body.node:
        read.update(node.input)
        for inner in bodies(node):
            read |= taken_from_outside(inner)
    kept = [one for one in body.initializer if one.name in read]
    if len(kept) < len(body.initializer):
        copies = [type(one).FromString(one.SerializeToString()) for one in kept]
        del body.initializer[:]
        body.initializer.extend(copies)
    return True


def _made_up(body: "onnx.GraphProto", name: str, declared: Any) -> bool:
    """Give a tensor of a body invented values; return whether enough is known about it."""
    shape = shape_of(declared)
    if shape is None or not all(isinstance(size, int) for size in shape):
        return False
    try:
        value = generate("", Port(name=name, type=value_type(declared, {})), NUMBERS_SEED)
    except ValueError:
        return False
    if not isinstance(value, Tensor):
        return False
    proto = tensor_proto(value)
    proto.name = name
    body.initializer.append(proto)
    return True


def _equal(one: Any, other: Any) -> bool:
    shapes = shape_of(one), shape_of(other)
    if shapes[0] is None or None in shapes[0] or shapes[0] != shapes[1]:
        return False
    return bool(one.tensor_type.elem_type == other.tensor_type.elem_type)


def _type_of(weight: "onnx.TensorProto") -> Any:
    import onnx.helper

    return onnx.helper.make_tensor_type_proto(weight.data_type, tuple(weight.dims))

"""The content of a body in place of the node that has it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from harness.annex.triage.cut import with_initializers
from harness.annex.triage.net import Net, renamed_nodes
from harness.annex.triage.net_node import NetNode, NetWeight, copied, node_of, weight_of
from harness.core.values.value import Tensor, Value
from harness.corpus.model.nodes import bodies

if TYPE_CHECKING:
    import onnx


def inlined(
    net: Net,
    index: int,
    body: "onnx.GraphProto",
    bound: Mapping[str, str],
    results: Sequence[str],
    *,
    weights: Sequence[NetWeight] = (),
    inputs: Mapping[str, tuple[Any, Value]] | None = None,
) -> Net | None:
    """Return a net in which a body, run once, replaces the node with an index.

    Args:
        net: The net.
        index: Index of the node.
        body: One of its bodies.
        bound: Input of the body -> tensor of the graph.
        results: For each output of the body the tensor that it becomes; empty if nothing reads it.
        weights: Initializers that are added.
        inputs: Graph inputs that are added, with their values.

    Returns:
        Return None if the body cannot replace the node.
    """
    if body.sparse_initializer or len(results) != len(body.output):
        return None
    graph = copied(body)
    taken = all_tensor_names(net)
    names = dict(bound) | {name: fresh(name, taken) for name in _own_names(graph)}
    through = _bind_results(graph, results, names)
    if through.keys() & net.outputs.keys():
        return None
    for node in graph.node:
        _rename(node, names)
    more = [*weights]
    for proto in graph.initializer:
        proto.name = names[proto.name]
        more.append(weight_of(proto))
    after = renamed_nodes(net.nodes[index + 1 :], through)
    changed = net.changed(
        nodes=(*net.nodes[:index], *map(node_of, graph.node), *after),
        inputs=net.inputs | {name: info for name, (info, _) in (inputs or {}).items()},
        fed=net.fed | {name: value for name, (_, value) in (inputs or {}).items()},
    )
    return with_initializers(changed, more)


def fresh(name: str, taken: set[str]) -> str:
    """Return an unused name of a tensor, and reserve it."""
    number = 0
    found = name
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    taken.add(found)
    return found


def body_of(node: NetNode, attribute: str) -> "onnx.GraphProto":
    """Return a body of a node.

    Raises:
        ValueError: It has none of this name.
    """
    for one in node.proto().attribute:
        if one.name == attribute and one.HasField("g"):
            graph: onnx.GraphProto = one.g
            return graph
    raise ValueError(f"{node.op_type} without {attribute}")


def slice_of(value: Value, axis: int, *, last: bool) -> Tensor | None:
    """Return the first or the last slice of a tensor along an axis; None if it has none."""
    if not isinstance(value, Tensor) or not -value.array.ndim <= axis < value.array.ndim:
        return None
    if not value.array.shape[axis]:
        return None
    import numpy as np

    # take returns a bare element, not an array, if no dimension is left.
    return Tensor(dtype=value.dtype, array=np.asarray(value.array.take(-1 if last else 0, axis)))


def _bind_results(graph: "onnx.GraphProto", results: Sequence[str], names: dict[str, str]) -> dict[str, str]:
    """Make nodes of a body compute the results under their outer names.

    Return result -> tensor that replaces it, if the body returns an input or returns something twice.
    """
    made = {name for node in graph.node for name in node.output if name}
    direct: list[tuple[str, str]] = []
    for result, info in zip(results, graph.output, strict=True):
        if result and info.name in made:
            names[info.name] = result
            made.discard(info.name)
        elif result:
            direct.append((result, info.name))
    return {result: names.get(source, source) for result, source in direct}


def _rename(node: "onnx.NodeProto", names: Mapping[str, str]) -> None:
    """Give the tensors of a node and its bodies their outer names; no body hides an outer name."""
    for index, name in enumerate(node.input):
        node.input[index] = names.get(name, name)
    for index, name in enumerate(node.output):
        node.output[index] = names.get(name, name)
    for body in bodies(node):
        for inner in body.node:
            _rename(inner, names)
        for info in (*body.input, *body.output, *body.value_info, *body.initializer):
            info.name = names.get(info.name, info.name)


def _own_names(graph: "onnx.GraphProto") -> list[str]:
    """Return the names that a graph and its nested graphs declare, in order.

    Without the graph's own inputs.
    """
    found = [one.name for one in graph.initializer]
    for node in graph.node:
        found += filter(None, node.output)
        for body in bodies(node):
            found += [one.name for one in body.input]
            found += _own_names(body)
    return list(dict.fromkeys(found))


def all_tensor_names(net: Net) -> set[str]:
    """Return the names of all tensors of a net, those in bodies included."""
    names = net.inputs.keys() | net.weights.keys() | net.sparse.keys() | net.read_names()
    for node in net.nodes:
        names.update(node.outputs)
        if len(node.names) > 1 or len(node.operators) > 1:
            for body in bodies(node.proto()):
                names.update(one.name for one in body.input)
                names.update(_own_names(body))
    return names

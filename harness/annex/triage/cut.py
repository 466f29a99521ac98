"""Part of a net: some of its nodes, fed with the results of the others."""

from collections.abc import Collection, Iterable
from typing import Any

from harness.annex.triage.net import IR_WEIGHTS_ALONE, Net
from harness.annex.triage.net_node import NetNode, NetWeight, new_weight
from harness.annex.triage.net_tensors import NetTensors, dense_type
from harness.core.values.value import Tensor


def cut(net: Net, kept: Collection[int], known: NetTensors, *, frozen: bool = False) -> Net | None:
    """Return the net of the nodes with some indices.

    A tensor that they read from others is an input or an initializer.

    A tensor that others read from them becomes an output. A tensor that depends on no graph input always
    becomes an initializer, because an EP may already treat it as a constant; with ``frozen`` all of them do.

    Returns:
        Return None if no node stays, or if a needed value or type is not available.
    """
    nodes = [net.nodes[index] for index in sorted(kept)]
    if not nodes:
        return None
    made = {name for node in nodes for name in node.made}
    reads = set().union(*(node.reads for node in nodes))
    outside = reads - made - net.inputs.keys() - net.weights.keys() - net.sparse.keys()
    inputs, weights, fed = dict(net.inputs), list[NetWeight](), dict(net.fed)
    boundary = _in_order(outside, net.nodes)
    values = known.values(boundary)
    for name in boundary:
        if name not in values:
            return None
        value = values[name]
        declared = known.declaration(name, value)
        if declared is None:
            return None
        if isinstance(value, Tensor) and (frozen or name in known.constants):
            weights.append(new_weight(name, value))
        else:
            inputs[name], fed[name] = declared, value
    outputs = _outputs(net, nodes, made, known)
    if not outputs:
        return None
    part = net.replace(nodes=tuple(nodes), inputs=inputs, fed=fed, outputs=outputs)
    return pruned(with_initializers(part, weights))


def with_initializers(net: Net, weights: Iterable[NetWeight]) -> Net:
    """Return a net with more initializers; before IR 4 each is also declared as a graph input."""
    import onnx.helper

    added = {weight.name: weight for weight in weights}
    inputs = dict(net.inputs)
    if net.ir_version < IR_WEIGHTS_ALONE:
        for weight in added.values():
            declared = dense_type(weight.dtype, weight.shape)
            inputs[weight.name] = onnx.helper.make_value_info(weight.name, declared)
    return net.replace(weights=net.weights | added, inputs=inputs)


def pruned(net: Net) -> Net:
    """Return a net without inputs, initializers and declarations that nothing reads."""
    reads = net.read_names() | net.outputs.keys()
    made = {name for node in net.nodes for name in node.made}
    inputs = {name: info for name, info in net.inputs.items() if name in reads}
    weights: dict[str, NetWeight] = {name: one for name, one in net.weights.items() if name in reads}
    sparse = {name: one for name, one in net.sparse.items() if name in reads}
    there = made | inputs.keys() | weights.keys()
    return net.replace(
        inputs=inputs,
        weights=weights,
        sparse=sparse,
        fed={name: value for name, value in net.fed.items() if name in inputs},
        infos={name: info for name, info in net.infos.items() if name in made and name not in net.outputs},
        annotations={name: one for name, one in net.annotations.items() if name in there},
    )


def needed(net: Net, outputs: Iterable[str]) -> set[int]:
    """Return the indices of the nodes on which outputs depend."""
    makers = net.makers()
    found: set[int] = set()
    pending = [makers[name] for name in outputs if name in makers]
    while pending:
        index = pending.pop()
        if index not in found:
            found.add(index)
            pending.extend(makers[name] for name in net.nodes[index].reads if name in makers)
    return found


def _outputs(net: Net, nodes: list[NetNode], made: set[str], known: NetTensors) -> dict[str, Any] | None:
    """Return tensors of nodes that are outputs or are read elsewhere; if there are none, the last node's."""
    staying = {id(node) for node in nodes}
    read = set().union(*(node.reads for node in net.nodes if id(node) not in staying))
    wanted = [name for name in net.outputs if name in made]
    wanted += [name for node in nodes for name in node.made if name in read and name not in net.outputs]
    outputs: dict[str, Any] = {}
    for name in wanted or nodes[-1].made[:1]:
        info = net.outputs.get(name) or known.output(name)
        if info is None:
            return None
        outputs[name] = info
    return outputs


def _in_order(names: Collection[str], nodes: Iterable[NetNode]) -> list[str]:
    """Return names in the order in which nodes make them, so that equal nets give equal models."""
    order = [name for node in nodes for name in node.made if name in names]
    return order if len(order) == len(names) else [*order, *sorted(set(names) - set(order))]

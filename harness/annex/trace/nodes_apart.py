"""Nodes of a model side by side in one model, each on golden inputs: no error reaches another node.

One session then shows what each of many nodes makes by itself. A tensor between two of them is an output of
the one, and under another name an input for the other.
"""

from collections.abc import Iterable
from typing import Any

from harness.annex.triage.cut import pruned, with_initializers
from harness.annex.triage.net import Net, renamed_nodes
from harness.annex.triage.net_node import NetNode, NetWeight, new_weight
from harness.annex.triage.net_tensors import NetTensors
from harness.core.values.value import Tensor, Value

_GOLDEN = ".golden"


def nodes_apart(net: Net, numbers: Iterable[int], known: NetTensors) -> Net | None:
    """Return a net of some nodes without edges between them; None if a value or a type is not known.

    A tensor that depends on no graph input becomes an initializer, because an EP may need it to be constant.
    """
    nodes = [net.nodes[number] for number in sorted(numbers)]
    made = {name for node in net.nodes for name in node.made}
    inner = sorted(made & set().union(*(node.reads for node in nodes)))
    values = known.values(inner)
    inputs: dict[str, Any] = dict(net.inputs)
    fed: dict[str, Value] = dict(net.fed)
    weights: list[NetWeight] = []
    names: dict[str, str] = {}
    for name in inner:
        value = values.get(name)
        if value is None:
            return None
        new = names[name] = _unused(name, made | net.inputs.keys() | net.weights.keys())
        if isinstance(value, Tensor) and name in known.constants:
            weights.append(new_weight(new, value))
            continue
        declared = known.declaration(name, value)
        if declared is None:
            return None
        declared.name = new
        inputs[new], fed[new] = declared, value
    outputs = {name: known.output(name) for node in nodes for name in read_results(net, node)}
    if None in outputs.values():
        return None
    apart = net.changed(
        nodes=renamed_nodes(nodes, names), inputs=inputs, fed=fed, outputs=outputs, infos={}, annotations={}
    )
    return pruned(with_initializers(apart, weights))


def read_results(net: Net, node: NetNode) -> tuple[str, ...]:
    """Return the results of a node that something reads; the first one if nothing does.

    An output that nothing reads may make a kernel compute in another way.
    """
    reads = net.outputs.keys() | net.read_names()
    return tuple(name for name in node.made if name in reads) or node.made[:1]


def _unused(name: str, taken: set[str]) -> str:
    new = name + _GOLDEN
    while new in taken:
        new += _GOLDEN
    return new

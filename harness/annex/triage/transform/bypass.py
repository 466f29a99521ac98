"""A node replaced by one of its inputs."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.annex.triage.context import Context
from harness.annex.triage.net import Net, renamed_nodes
from harness.annex.triage.net_node import copied
from harness.annex.triage.net_tensors import NetTensors
from harness.annex.triage.search import NetCandidate, Search, minimise
from harness.annex.triage.transform.fewer_nodes import quantized_units
from harness.annex.triage.transform.outputs import restricted

BypassPath = tuple[tuple[int, ...], tuple[str, ...], str]
"""Nodes that are removed, their tensors that others read, and the tensor that replaces them."""


def bypassed_nodes(net: Net, context: Context) -> Search:
    """Replace nodes by an input of the same type and shape, QuantizeLinear with its DequantizeLinear."""
    ways = [
        way
        for unit in quantized_units(net)
        if not any(context.must_stay(net, net.nodes[index]) for index in unit)
        for way in _ways(net, unit, context.known(net))
    ]

    def build(kept: tuple[BypassPath, ...]) -> NetCandidate:
        # Two ways around one node exclude each other: the first that is not kept counts.
        gone = [way for way in reversed(ways) if way not in kept]
        return _without(net, {unit: (made, source) for unit, made, source in gone}, context)

    yield from minimise(ways, build)


def _ways(net: Net, unit: tuple[int, ...], known: NetTensors) -> Iterator[BypassPath]:
    makers, first = set(unit), net.nodes[unit[0]]
    others = set().union(*(node.reads for index, node in enumerate(net.nodes) if index not in makers))
    others |= net.outputs.keys()
    used = tuple(name for index in unit for name in net.nodes[index].made if name in others)
    signatures = {known.signature(name) for name in used}
    if len(signatures) != 1 or None in signatures:
        return
    for source in dict.fromkeys(filter(None, first.inputs)):
        if known.signature(source) in signatures:
            yield unit, used, source


def _without(
    net: Net, chosen: Mapping[tuple[int, ...], tuple[tuple[str, ...], str]], context: Context
) -> NetCandidate:
    gone = {index for unit in chosen for index in unit}
    direct = {name: source for used, source in chosen.values() for name in used}
    names = {made: _end(made, direct) for made in direct}
    nodes = renamed_nodes((node for index, node in enumerate(net.nodes) if index not in gone), names)
    made = {name for node in nodes for name in node.made}
    outputs: dict[str, Any] = {}
    for name, info in net.outputs.items():
        source = names.get(name, name)
        if source in made and source not in outputs:
            outputs[source] = copied(info)
            outputs[source].name = source
    if not outputs:
        return None
    return restricted(net.changed(nodes=nodes, outputs=outputs), outputs.keys(), context)


def _end(name: str, direct: Mapping[str, str]) -> str:
    """Return the tensor that replaces one after all nodes are removed; a graph has no circles."""
    while name in direct:
        name = direct[name]
    return name

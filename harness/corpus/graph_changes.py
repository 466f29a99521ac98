"""The changes of a graph: which nodes replaced which others, derived from the tensors between them.

onnxruntime keeps the name of every tensor that survives an optimization. So if a tensor between nodes has
vanished, these nodes were changed together. The nodes that now compute their surviving results replace them.
Names of nodes and known fusions are not used for guesses.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harness.core.records.graph_levels import GraphChange, GraphChangeKind, OperatorCounts, OperatorType
from harness.corpus.graph import Graph, Node

_IDENTITY = OperatorType("", "Identity")


def changes(before: Graph, after: Graph) -> tuple[GraphChange, ...]:
    """Return how one graph became the other, most frequent changes first, else in the order of the graph.

    Only the main graphs are compared, not the bodies of If, Loop and Scan.
    """
    survivors = _tensors(after)
    found: list[tuple[GraphChangeKind, OperatorCounts, OperatorCounts]] = []
    left, renamed = [], dict[str, str]()
    kept = {_key(node): node for node in before.nodes if survivors.intersection(node.outputs)}
    for node in before.nodes:
        plain = _renamed(node, renamed)
        gone = not survivors.intersection(plain.outputs)
        twin = kept.get(_key(plain))
        if gone and plain.operator == _IDENTITY:
            renamed[plain.outputs[0]] = plain.inputs[0]
            found.append(("removed", _counted([plain]), ()))
        elif gone and twin is not None and len(twin.outputs) == len(plain.outputs):
            renamed.update(zip(plain.outputs, twin.outputs, strict=True))
            found.append(("merged", _counted([twin, plain]), ()))
        else:
            left.append(plain)
    for old, new in _groups(left, after, before):
        if _counted(old) != _counted(new):
            found.append((_kind(old, new, after), _counted(old), _counted(new)))
    times = Counter(found)
    return tuple(
        GraphChange(kind=kind, before=old, after=new, times=count)
        for (kind, old, new), count in sorted(times.items(), key=lambda item: -item[1])
    )


def _groups(left: Sequence[Node], after: Graph, before: Graph) -> Iterator[tuple[list[Node], list[Node]]]:
    """Yield groups of nodes that belong together: those of the first graph, and those of the second."""
    nodes = [*left, *after.nodes]
    first_new = len(left)
    parent = list(range(len(nodes)))

    def root(number: int) -> int:
        while parent[number] != number:
            parent[number] = parent[parent[number]]
            number = parent[number]
        return number

    shared = _tensors(before) & _tensors(after)
    old_makers, new_makers = _makers(left, 0), _makers(after.nodes, first_new)
    for makers, part, start in ((old_makers, left, 0), (new_makers, after.nodes, first_new)):
        for number, node in enumerate(part, start):
            for name in node.inputs:
                if name in makers and name not in shared:
                    parent[root(number)] = root(makers[name])
    for name in old_makers.keys() & new_makers.keys():
        parent[root(old_makers[name])] = root(new_makers[name])
    members: dict[int, tuple[list[Node], list[Node]]] = {}
    for number, node in enumerate(nodes):
        members.setdefault(root(number), ([], []))[number >= first_new].append(node)
    yield from members.values()


def _makers(nodes: Iterable[Node], start: int) -> dict[str, int]:
    return {name: number for number, node in enumerate(nodes, start) for name in node.outputs if name}


def _tensors(graph: Graph) -> frozenset[str]:
    return graph.inputs | graph.constants | {name for node in graph.nodes for name in node.outputs if name}


def _kind(old: Sequence[Node], new: Sequence[Node], after: Graph) -> GraphChangeKind:
    if not old:
        return "added"
    if not new:
        constant = any(name in after.constants for node in old for name in node.outputs)
        return "folded" if constant else "removed"
    return "fused" if len(new) < len(old) else "replaced"


def _key(node: Node) -> tuple[OperatorType, bytes, tuple[str, ...]]:
    """Return a key that is equal for nodes that compute the same."""
    return node.operator, node.attributes, node.inputs


def _renamed(node: Node, names: dict[str, str]) -> Node:
    inputs = tuple(names.get(name, name) for name in node.inputs)
    return node if inputs == node.inputs else msgspec.structs.replace(node, inputs=inputs)


def _counted(nodes: Iterable[Node]) -> OperatorCounts:
    return tuple(Counter(node.operator for node in nodes).items())

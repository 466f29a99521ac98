"""The partitions of a model on an EP, as far as the counts of a placement show them."""

from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from harness.annex.triage.net import Net
from harness.core.records.facts import Placement


def partitions_of(net: Net, numbers: Sequence[int], placement: Placement | None) -> dict[int, int]:
    """Return the number of the partition of each node; nothing if the counts do not show it.

    A record has the operators on each side, and the number of partitions. An EP that compiles takes connected
    nodes together, or all nodes that wait for no node on the CPU EP. If there are as many such groups as
    partitions, these are the partitions. An EP of kernels has as many partitions as nodes: each node is then
    its own unit.
    """
    if placement is None or placement.is_unknown or placement.partitions == placement.ep_nodes:
        return {}
    if placement.cpu_ops.keys() & placement.ep_ops.keys():
        return {}
    # A placement has operators without their domains.
    on_cpu = placement.cpu_ops.keys()
    taken = {number for number in numbers if net.nodes[number].op_type.rpartition(".")[2] not in on_cpu}
    edges = _edges(net, numbers)
    for groups in _groupings(edges, taken):
        names = {one: index for index, one in enumerate(dict.fromkeys(groups.values()))}
        if len(names) == placement.partitions and _has_order(edges, groups):
            return {number: names[group] for number, group in groups.items()}
    return {}


def _groupings(edges: Mapping[int, Sequence[int]], taken: set[int]) -> Iterator[dict[int, int]]:
    """Yield the ways to group the nodes that the EP takes; equal numbers are one group."""
    stages = _stages(edges, taken)
    yield _connected(edges, dict.fromkeys(stages, 0))
    yield _connected(edges, stages)
    yield stages


def _edges(net: Net, numbers: Sequence[int]) -> dict[int, list[int]]:
    """Return for each node, in the model's order, those whose results it reads."""
    makers, known = net.makers(), set(numbers)
    return {
        number: sorted({makers[name] for name in net.nodes[number].reads if name in makers} & known)
        for number in sorted(numbers)
    }


def _stages(edges: Mapping[int, Sequence[int]], taken: set[int]) -> dict[int, int]:
    """Return for each node that the EP takes how often the way to it leaves the EP at most."""
    stages: dict[int, int] = {}
    for number, sources in edges.items():
        leaves = number not in taken
        stages[number] = max((stages[one] + (leaves and one in taken) for one in sources), default=0)
    return {number: stage for number, stage in stages.items() if number in taken}


def _has_order(edges: Mapping[int, Sequence[int]], groups: Mapping[int, int]) -> bool:
    """Whether groups can run one after another: none waits for a node that waits for the group itself."""
    order = TopologicalSorter[tuple[bool, int]]()

    def unit(number: int) -> tuple[bool, int]:
        return number in groups, groups.get(number, number)

    for number, sources in edges.items():
        order.add(unit(number), *({unit(one) for one in sources} - {unit(number)}))
    try:
        order.prepare()
    except CycleError:
        return False
    return True


def _connected(edges: Mapping[int, Sequence[int]], stages: Mapping[int, int]) -> dict[int, int]:
    """Return connected nodes of one stage as groups."""
    root = {number: number for number in stages}

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for number in stages:
        for one in edges[number]:
            if one in root and stages[one] == stages[number]:
                root[find(one)] = find(number)
    return {number: find(number) for number in stages}

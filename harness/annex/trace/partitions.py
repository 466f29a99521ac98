"""The partitions of a model on an EP, as far as the counts of a placement show them."""

from collections.abc import Sequence

from harness.annex.triage.net import Net
from harness.core.facts import Placement


def partitions_of(net: Net, numbers: Sequence[int], placement: Placement | None) -> dict[int, int]:
    """Return the number of the partition of each node; nothing if the counts do not show it.

    A record has the operators on each side, and the number of partitions. An EP that compiles takes connected
    nodes together. If their number is that of the partitions, these are the partitions. An EP of kernels has
    as many partitions as nodes: each node is then its own unit.
    """
    if placement is None or placement.is_unknown or placement.partitions == placement.ep_nodes:
        return {}
    if placement.cpu_ops.keys() & placement.ep_ops.keys():
        return {}
    on_cpu = placement.cpu_ops.keys()
    taken = [number for number in numbers if net.nodes[number].op_type not in on_cpu]
    makers = net.makers()
    root = {number: number for number in taken}

    def find(number: int) -> int:
        while root[number] != number:
            root[number] = root[root[number]]
            number = root[number]
        return number

    for number in taken:
        for name in net.nodes[number].reads:
            if (maker := makers.get(name)) in root:
                root[find(maker)] = find(number)
    names = {one: index for index, one in enumerate(dict.fromkeys(map(find, taken)))}
    if len(names) != placement.partitions:
        return {}
    return {number: names[find(number)] for number in taken}

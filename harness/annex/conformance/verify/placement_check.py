"""Check the counts of a placement: their required values, and how many nodes a model can become."""

from collections.abc import Iterator

from harness.annex.conformance.profiles.profile import ProfileCase
from harness.core.records.facts import CPU_PROVIDER, Placement

_ROUNDING = 1e-6

MOST_NODES_EACH = 128
"""Largest number of nodes that one node of a model can become.

onnxruntime replaces operators that ONNX defines as functions by their bodies, and adds casts and transposes.
In 60,000 real records no node became more than 29.
"""


def placement_faults(placement: Placement, provider: str) -> Iterator[str]:
    """Yield contradictions."""
    counts = (*placement.ep_ops.values(), *placement.cpu_ops.values())
    if min(placement.ep_nodes, placement.cpu_nodes, placement.partitions, *counts, 0) < 0:
        yield "a negative count"
    for name, nodes, ops in (
        ("ep", placement.ep_nodes, placement.ep_ops),
        ("cpu", placement.cpu_nodes, placement.cpu_ops),
    ):
        # A log may have only the number of nodes after changes; its operators are the model's.
        number_alone = placement.source == "log" and nodes > 0
        if nodes != sum(ops.values()) and not number_alone:
            yield f"{name}_nodes is {nodes}, and {name}_ops has {sum(ops.values())}"
    if placement.is_unknown and (placement.ep_nodes or placement.cpu_nodes):
        yield "nodes of an unknown placement"
    if placement.partitions > placement.ep_nodes or (placement.ep_nodes and not placement.partitions):
        yield f"{placement.partitions} partitions of {placement.ep_nodes} nodes"
    if not set(placement.shape_ops) <= placement.cpu_ops.keys():
        yield "shape_ops that are not on the CPU"
    if provider == CPU_PROVIDER and placement.cpu_nodes:
        yield "nodes on the CPU beside the CPU provider"
    if placement.chain_ops.keys() - placement.providers.keys():
        yield "operators of a provider without nodes"
    if placement.providers and sum(placement.providers.values()) != placement.ep_nodes + placement.cpu_nodes:
        yield "the nodes by provider do not add up"
    yield from _share_faults(placement)


def _share_faults(placement: Placement) -> Iterator[str]:
    """Yield what contradicts the counts in the share of the compute.

    A share of work goes by the names of nodes, which no record has. One of nodes follows from the counts.
    """
    share, counted = placement.ep_share, placement.share_of
    if share is None:
        if counted:
            yield f"share_of is {counted!r}, and there is no ep_share"
        return
    if not 0 <= share <= 1 or counted not in ("work", "nodes"):
        yield f"ep_share is {share} of {counted!r}, not 0 to 1 of 'work' or 'nodes'"
        return
    compute = sum(count for op, count in placement.cpu_ops.items() if op not in placement.shape_ops)
    if not placement.ep_nodes or not compute:
        yield f"ep_share is {share}, and all of the compute is on one side"
    elif counted == "nodes" and abs(share - placement.ep_nodes / (placement.ep_nodes + compute)) > _ROUNDING:
        yield f"ep_share is {share} of the nodes: {placement.ep_nodes} on the EP, {compute} on the CPU"


def has_too_many(placement: Placement, case: ProfileCase) -> bool:
    """Return whether no model of these operators can become so many nodes.

    Fewer nodes prove nothing: optimizers fold and fuse.
    """
    return placement.ep_nodes + placement.cpu_nodes > MOST_NODES_EACH * max(1, sum(case.ops.values()))

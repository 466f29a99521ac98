"""Fewer graph outputs, and only the nodes on which they depend."""

from collections.abc import Collection

from harness.annex.triage.context import Context
from harness.annex.triage.cut import needed, pruned
from harness.annex.triage.net import Net
from harness.annex.triage.search import NetCandidate, Search, minimise


def fewer_outputs(net: Net, context: Context) -> Search:
    """Search for the smallest set of outputs with which the failure appears."""

    def build(kept: tuple[str, ...]) -> NetCandidate:
        return restricted(net, kept, context)

    yield from minimise(tuple(net.outputs), build)


def restricted(net: Net, outputs: Collection[str], context: Context) -> Net | None:
    """Return the net of the nodes on which outputs depend, and of those that must stay.

    Returns:
        None if no node or no output is left.
    """
    wanted = set(outputs)
    for node in net.nodes:
        if context.must_stay(net, node):
            wanted.update(node.made)
    indices = needed(net, wanted)
    kept = tuple(node for index, node in enumerate(net.nodes) if index in indices)
    left = {name: info for name, info in net.outputs.items() if name in outputs}
    return pruned(net.replace(nodes=kept, outputs=left)) if kept and left else None

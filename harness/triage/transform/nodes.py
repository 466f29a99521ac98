"""Fewer nodes: any part of the graph, fed with what the rest made."""

from harness.triage.context import Context
from harness.triage.net import Net
from harness.triage.search import Search
from harness.triage.units import fewest_units


def fewer_nodes(net: Net, context: Context) -> Search:
    """Search for the smallest set of nodes; what they read of others becomes a graph input."""
    yield from fewest_units(net, context, frozen=False)

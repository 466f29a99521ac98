"""Fewer nodes, where what the rest made must be a constant: weights, shapes, frozen branches."""

from harness.triage.context import Context
from harness.triage.net import Net
from harness.triage.search import Search
from harness.triage.units import fewest_units


def frozen_branches(net: Net, context: Context) -> Search:
    """Search for the smallest set of nodes; what they read of others becomes an initializer."""
    yield from fewest_units(net, context, frozen=True)

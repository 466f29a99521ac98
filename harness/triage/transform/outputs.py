"""Fewer graph outputs, and only the nodes that these depend on."""

from harness.triage.context import Context
from harness.triage.live import restricted
from harness.triage.net import Net
from harness.triage.search import Candidate, Search, minimise


def fewer_outputs(net: Net, context: Context) -> Search:
    """Search for the smallest set of outputs with which the failure appears."""

    def build(kept: tuple[str, ...]) -> Candidate:
        return restricted(net, kept, context)

    yield from minimise(tuple(net.outputs), build)

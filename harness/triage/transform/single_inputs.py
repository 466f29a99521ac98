"""Graph inputs that are fed one value."""

from harness.triage.context import Context
from harness.triage.net import Net
from harness.triage.plain_values import SINGLE, single
from harness.triage.replaced import replaced_inputs
from harness.triage.search import Search


def single_inputs(net: Net, context: Context) -> Search:  # noqa: ARG001 - all transformations are called alike
    """Feed graph inputs one value in all elements."""
    yield from replaced_inputs(net, single, SINGLE)

"""Initializers of one value."""

from harness.triage.context import Context
from harness.triage.net import Net
from harness.triage.plain_values import SINGLE, single
from harness.triage.replaced import replaced_weights
from harness.triage.search import Search


def single_weights(net: Net, context: Context) -> Search:
    """Give all elements of an initializer one value within its range, unless weights are kept."""
    if not context.settings.keep_weights:
        yield from replaced_weights(net, single, SINGLE)

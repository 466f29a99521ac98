"""Initializers with seeded random numbers, so that a proprietary model can be shared."""

from harness.triage.context import Context
from harness.triage.net import Net
from harness.triage.plain_values import RANDOM, randomised
from harness.triage.replaced import replaced_weights
from harness.triage.search import Search


def random_weights(net: Net, context: Context) -> Search:
    """Give initializers random numbers of the same range, signs, shape and type, unless weights are kept."""
    if not context.settings.keep_weights:
        yield from replaced_weights(net, randomised, RANDOM)

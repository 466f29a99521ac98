"""Graph inputs that are fed seeded random numbers."""

from harness.triage.context import Context
from harness.triage.net import Net
from harness.triage.plain_values import RANDOM, randomised
from harness.triage.replaced import replaced_inputs
from harness.triage.search import Search


def random_inputs(net: Net, context: Context) -> Search:  # noqa: ARG001 - all transformations are called alike
    """Feed graph inputs random numbers of the same range, signs, shape and type."""
    yield from replaced_inputs(net, randomised, RANDOM)

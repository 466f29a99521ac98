"""Graph inputs that are fed small integers."""

from harness.triage.context import Context
from harness.triage.net import Net
from harness.triage.plain_values import SMALL_INTEGERS, small_integers
from harness.triage.replaced import replaced_inputs
from harness.triage.search import Search


def integer_inputs(net: Net, context: Context) -> Search:  # noqa: ARG001 - all transformations are called alike
    """Feed graph inputs integers from -3 to 3."""
    yield from replaced_inputs(net, small_integers, SMALL_INTEGERS)

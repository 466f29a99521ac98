"""Names that tell nothing of where a model comes from."""

from harness.triage.anonymous import KINDS, Kind, anonymised
from harness.triage.context import Context
from harness.triage.net import Net
from harness.triage.search import Candidate, Search, minimise


def anonymous_names(net: Net, context: Context) -> Search:  # noqa: ARG001 - all are called alike
    """Call nodes ``n0``, tensors ``t0``, dimensions ``d0``, functions ``f0`` and so on."""

    def build(kept: tuple[Kind, ...]) -> Candidate:
        return anonymised(net, [kind for kind in KINDS if kind not in kept])

    yield from minimise(KINDS, build)

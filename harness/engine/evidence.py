"""What a result is held against."""

from collections.abc import Mapping

import msgspec

from harness.core.spread import Spread
from harness.golden.golden import Golden


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of the CPU provider, as far as a judgement needs them.

    Attributes:
        golden: What the CPU provider of the harness's own runtime makes of the model as it was run.
        reference: What the CPU provider of the *target's* runtime makes of it; often the golden.
        converted: Whether the model was converted to another precision.
        full: The golden of the model as it came, where it was converted and has run.
        spread: The rounding noise of the model, or why it has none; None where nobody has asked.
        revealed: The golden with what its positions were chosen by; None where nobody has asked.
        witnesses: What others make of it, by the kind of question; empty where nobody has asked.
    """

    golden: Golden
    reference: Golden
    converted: bool = False
    full: Golden | None = None
    spread: Spread | str | None = None
    revealed: Golden | None = None
    witnesses: Mapping[str, Golden] = {}

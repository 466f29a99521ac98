"""The answers that a cell is measured against."""

from collections.abc import Mapping

import msgspec

from harness.core.spread import Spread
from harness.engine.question import Kind
from harness.golden.golden import Golden


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of the CPU provider, as far as they are known; None where nobody has asked.

    Attributes:
        golden: Of a cell that ran: what the CPU provider of the harness's own runtime makes of the model.
        full: The golden of the model as it came, where it was converted and has run.
        own: What the CPU provider of the *target's* runtime makes of it.
        spread: The rounding noise of the model, or why it has none.
        revealed: The golden with what its positions were chosen by.
        undefined: Output -> why ONNX leaves its values undefined for this input.
        unnoticed: Operators of nodes whose results could be zeros without being noticed.
        unrepeatable: Why the golden cannot be repeated; empty where another process gives it, too.
        references: What others make of the model, by the kind of question.
        doubts: Kind of question -> why its answer is not believed alone.
        answered: What has been asked: values of ``harness.core.missing.Need``.
    """

    golden: Golden | None = None
    full: Golden | None = None
    own: Golden | None = None
    spread: Spread | str | None = None
    revealed: Golden | None = None
    undefined: Mapping[str, str] | None = None
    unnoticed: tuple[str, ...] | None = None
    unrepeatable: str | None = None
    references: Mapping[Kind, Golden] | None = None
    doubts: Mapping[Kind, str] = {}
    answered: tuple[str, ...] = ()

"""What holds for the values of one cell: tolerances, noise, repetitions."""

from collections.abc import Callable

import msgspec

from harness.core.cell import Cell
from harness.core.precision import IN_MODEL
from harness.core.spread import NoiseLimits
from harness.core.tolerance import EXACT, FLOORS, Tolerance, computing_precision, default_tolerance
from harness.corpus.case import Case
from harness.plan.plan import Plan
from harness.plan.repeat_entry import RepeatSettings

ToleranceFor = Callable[[str], Tolerance]
"""Element type of an output -> tolerance."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What a judgement goes by.

    Attributes:
        precision: What the cell computes in: a key of ``harness.core.tolerance.DEFAULTS``.
        tolerance_for: Element type of an output -> tolerance.
        steps: Steps that an output of quantized values may be off beside its tolerance.
        exact_inputs: Whether the provider has to work on the inputs as they are, and may not round them.
        noise: Limits in multiples of the model's rounding noise; None where ``tolerance_for`` judges.
        noise_precision: Whose rounding makes that noise.
        repeat: How the cell is repeated; None where it is not.
    """

    precision: str = "float32"
    tolerance_for: ToleranceFor
    steps: float = 0.0
    exact_inputs: bool = True
    noise: NoiseLimits | None = None
    noise_precision: str = "float32"
    repeat: RepeatSettings | None = None


def rule_of(plan: Plan, cell: Cell, case: Case) -> Rule:
    """The rule of one cell: the matrix's entry, else the default of what computes.

    Args:
        plan: Where the cell is from.
        cell: The cell.
        case: Its model, converted where the cell's precision asks for that.
    """
    mode = plan.target(cell.target).mode_at(cell)
    computes = IN_MODEL.get(cell.axis("precision"), mode.computes if mode else "float32")
    precision = computing_precision(case.facts.float_types, computes)
    chosen = plan.tolerance(cell)
    granted = chosen.noise_precision if chosen else ""

    def tolerance_for(dtype: str) -> Tolerance:
        default = default_tolerance(dtype, granted or precision)
        # A matrix entry speaks about rounding; what has one right answer keeps it.
        if chosen is None or chosen.fixed is None or default == EXACT:
            return default
        return chosen.fixed

    return Rule(
        precision=precision,
        tolerance_for=tolerance_for,
        steps=chosen.steps if chosen else 0.0,
        exact_inputs=FLOORS[computes] == "float32" and (chosen is None or chosen.fixed is None),
        noise=chosen.noise if chosen else None,
        noise_precision=granted or precision,
        repeat=plan.repeat(cell),
    )

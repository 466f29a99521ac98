"""What holds for the values of one cell: tolerances, noise, repetitions."""

import msgspec

from harness.core.cell import Cell
from harness.core.policy import Policy
from harness.core.precision import IN_MODEL
from harness.core.tolerance import FLOORS, computing_precision
from harness.corpus.case import Case
from harness.plan.plan import Plan
from harness.plan.runs_entry import RepeatSettings
from harness.plan.tolerance_entry import policy_of


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """What a cell is measured and judged by.

    Attributes:
        policy: Tolerances, limits of noise, steps.
        delivers: Coarser precisions that the provider may compute in by its own default.
        exact_inputs: Whether the provider has to work on the inputs as they are, and may not round them.
        repeat: How the cell is repeated; None where it is not.
    """

    policy: Policy = Policy()
    delivers: tuple[str, ...] = ()
    exact_inputs: bool = True
    repeat: RepeatSettings | None = None


def rule_of(plan: Plan, cell: Cell, case: Case) -> Rule:
    """The rule of one cell: the matrix's entry, else the default of what computes.

    Args:
        plan: Where the cell is from.
        cell: The cell.
        case: Its model, converted where the cell's precision asks for that.
    """
    mode = plan.target(cell.target).mode_at(cell)
    precision_axis = cell.axis("precision")
    computes = IN_MODEL.get(precision_axis, mode.computes if mode else "float32")
    precision = computing_precision(case.facts.float_types, computes)
    return Rule(
        policy=policy_of(plan.tolerance(cell), precision, converted=precision_axis in IN_MODEL),
        delivers=plan.target(cell.target).delivers(cell) if precision == "float32" else (),
        exact_inputs=FLOORS[computes] == "float32",
        repeat=plan.repeat(cell),
    )

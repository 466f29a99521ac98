"""Fixed sizes: whether a symbolic dimension keeps nodes off the EP.

One more session is created, and nothing is run. The check is left out if a run of the model is too much work
to repeat: a simulator compiles a large model for minutes.
"""

from collections.abc import Callable, Mapping

import msgspec

from harness.core.records.facts import Facts
from harness.core.records.fixed_sizes import FixedSizes
from harness.core.records.run_work import Unchecked, runs_of, too_much
from harness.core.records.scenario import PLAIN
from harness.core.records.verdict import Phase
from harness.corpus.case import Case
from harness.corpus.derived.symbolic_sizes import fixed_sizes
from harness.engine.answers.cases import Cases
from harness.engine.steps.effect_step import Lose
from harness.engine.tasks.measurement import Measurement
from harness.engine.tasks.outcome import Outcome, Ran
from harness.engine.tasks.task import CellTask, FixedTask
from harness.plan.plan import Plan

FIXED_SIZES = "fixed sizes"
"""Name of the check in the record, where it is left out."""


Decide = Callable[[CellTask, Measurement, Outcome | None], None]


class FixedStep:
    """Tries cells with fixed sizes before they are decided; ``put`` is called with each task for that."""

    def __init__(
        self, plan: Plan, cases: Cases, put: Callable[[FixedTask], None], decide: Decide, lose: Lose
    ) -> None:
        self._plan = plan
        self._cases = cases
        self._put = put
        self._decide = decide
        self._lose = lose

    def then(self, task: CellTask, measured: Measurement, outcome: Outcome | None) -> None:
        """Decide a cell: at once, or when it is known whether a symbolic dimension keeps nodes off the EP."""
        facts = measured.facts
        case = self._cases.of(task.about) if outcome is not None and may_be_fixed(facts) else None
        if not isinstance(case, Case) or outcome is None or task.first is not None:
            self._decide(task, measured, outcome)
            return
        limit = self._plan.target(task.cell.target).work_limit
        sizes = sizes_to_fix(case) if task.about.scenario == PLAIN else {}
        if sizes and runs_of(case.work, limit) > 1:
            self._put(
                FixedTask(cell=task.cell, cell_task=task, measured=measured, outcome=outcome, sizes=sizes)
            )
            return
        if sizes:
            measured = measured.but(without_fixed(facts, case, limit))
        self._decide(task, measured, outcome)

    def take(self, task: FixedTask, outcome: object) -> None:
        """Decide a cell with the outcome of its task; None if there is none."""
        facts = with_fixed(task.measured.facts, outcome, task.sizes)
        try:
            self._decide(task.cell_task, task.measured.but(facts), task.outcome)
        except Exception as error:  # noqa: BLE001 - it costs this cell alone
            self._lose(task.cell_task, error)


def may_be_fixed(facts: Facts) -> bool:
    """Return whether the EP left compute nodes to the CPU, or refused the model while loading it."""
    if facts.is_cpu:
        return False
    if facts.ended is not None:
        return facts.ended.how == "raised" and facts.ended.refused and facts.phase is Phase.CREATE
    placed = facts.placement
    return placed is not None and not placed.cpu_ops.keys() <= set(placed.shape_ops)


def sizes_to_fix(case: Case) -> dict[str, int]:
    """Return sizes for the symbolic dimensions of a model; empty if none is free."""
    return {} if case.fixed or case.frozen is not None else fixed_sizes(case)


def with_fixed(facts: Facts, outcome: object, sizes: Mapping[str, int]) -> Facts:
    """Return facts with the placement at fixed sizes, if the EP then takes more nodes."""
    if not isinstance(outcome, Ran):
        return facts
    placed, before = outcome.placement, facts.placement
    if placed.ep_nodes <= (before.ep_nodes if before is not None else 0):
        return facts
    found = FixedSizes(sizes=dict(sizes), ep_nodes=placed.ep_nodes, cpu_nodes=placed.cpu_nodes)
    return msgspec.structs.replace(facts, fixed=found)


def without_fixed(facts: Facts, case: Case, limit: float) -> Facts:
    """Return facts with a note that fixed sizes were not tried because that is too much work."""
    left = Unchecked(check=FIXED_SIZES, because=too_much(case.work, limit))
    return msgspec.structs.replace(facts, unchecked=(*facts.unchecked, left))

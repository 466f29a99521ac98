"""The step of a cell after its facts: compares its outputs with those without the options in question."""

from collections.abc import Callable

import msgspec

from harness.core.records.cell import Cell
from harness.core.verdicts.decide import verdict_of
from harness.engine.answers.cases import NoCase
from harness.engine.questions.next_step import OpenOutcome
from harness.engine.steps.effects import (
    BaselineKey,
    Effects,
    WaitingCell,
    baseline_of,
    can_tell,
    outputs_digest,
    with_effect,
)
from harness.engine.tasks.measurement import Measurement
from harness.engine.tasks.outcome import Outcome, Ran
from harness.engine.tasks.task import CellTask

GoOn = Callable[[CellTask, Measurement, OpenOutcome], None]
Lose = Callable[[CellTask, Exception], None]


class EffectStep:
    """Holds cells until the outputs without their options are known.

    ``put`` is called with a cell whose baseline has to be run, ``go_on`` with what each cell measures that
    waits no longer.
    """

    def __init__(
        self,
        effects: Effects,
        put: Callable[[Cell], None],
        go_on: GoOn,
        lose: Lose,
        *,
        gives_outputs: bool,
    ) -> None:
        self.effects = effects
        self._put = put
        self._go_on = go_on
        self._lose = lose
        self._gives_outputs = gives_outputs
        self._waiting: dict[BaselineKey, list[WaitingCell]] = {}

    def then(self, task: CellTask, measured: Measurement, outcome: OpenOutcome) -> None:
        """Go on with a cell: at once, or when its outputs can be compared with its baseline's."""
        cell, facts = task.cell, measured.facts
        # A baseline is of the first inputs.
        doubt = None if task.draw else self.effects.doubt(cell)
        if (
            doubt is None
            or not isinstance(outcome, Ran)
            or not can_tell(facts, verdict_of(facts, measured.policy), outcome)
        ):
            self._go_on(task, measured, outcome)
            return
        baseline, own = baseline_of(doubt.without, cell), outputs_digest(outcome)
        digest = self.effects.digest(baseline)
        if digest is not None:
            self._go_on(task, measured.but(with_effect(facts, doubt, own, digest)), outcome)
            return
        if baseline not in self._waiting and not self.effects.is_coming(baseline):
            self._put(cell)
        if not self._gives_outputs:  # the baseline may be a cell of another target, and run much later
            outcome = msgspec.structs.replace(outcome, outputs=())
        self._waiting.setdefault(baseline, []).append(WaitingCell(task, measured, outcome, doubt, own))

    def take(self, cell: Cell, outcome: Outcome | NoCase | None) -> None:
        """Process the outcome of the baseline that was queued for a cell."""
        doubt = self.effects.doubt(cell)
        if doubt is not None:
            self._settle(baseline_of(doubt.without, cell), outcome)

    def serve(self, cell: Cell, outcome: Outcome | NoCase | None) -> None:
        """Process the outcome of a cell that may be the baseline of others."""
        if (baseline := self.effects.serves(cell)) is not None:
            self._settle(baseline, outcome)

    def lose(self, cell: Cell) -> None:
        """Note that a cell ended without an outcome, unless it had one before."""
        baseline = self.effects.serves(cell)
        if baseline is not None and self.effects.is_coming(baseline):
            self._settle(baseline, None)

    def _settle(self, baseline: BaselineKey, outcome: Outcome | NoCase | None) -> None:
        """Keep a baseline, and continue the cells that waited for it."""
        digest = self.effects.keep(baseline, outcome)
        for waiting in self._waiting.pop(baseline, ()):
            try:
                measured = waiting.measured
                facts = with_effect(measured.facts, waiting.doubt, waiting.digest, digest)
                self._go_on(waiting.task, measured.but(facts), waiting.outcome)
            except Exception as error:  # noqa: BLE001 - it costs this cell alone
                self._lose(waiting.task, error)

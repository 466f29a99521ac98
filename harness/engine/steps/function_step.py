"""The step of a cell between its facts and its record: the matrix's own functions compare its answers."""

from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.core.agreement.agreement import Agreement
from harness.core.records.facts import Facts
from harness.core.records.scenario import GENERATE
from harness.core.text.errors import UsageError
from harness.corpus.case import Case
from harness.engine.measuring.agreement_measure import functions_of
from harness.engine.measuring.own_agreement import MOST_CELLS_WAITING, Call, OwnFunctions
from harness.engine.questions.next_step import NextStep, OpenOutcome
from harness.engine.steps.effect_step import GoOn, Lose
from harness.engine.tasks.events import Event, Warned
from harness.engine.tasks.measurement import Measurement
from harness.engine.tasks.outcome import Ran
from harness.engine.tasks.task import CellTask


class FunctionStep:
    """Holds cells until the functions that the matrix names for their models have returned."""

    def __init__(
        self, next_step: NextStep, post: Callable[..., None], announce: Callable[[Event], None]
    ) -> None:
        self._next_step = next_step
        folder = Path(next_step.plan.matrix.path).absolute().parent
        self._functions = OwnFunctions(folder, post, lambda text: announce(Warned(message=text)))

    @property
    def waiting(self) -> int:
        """Number of cells that wait for a function."""
        return self._functions.waiting

    @property
    def is_behind(self) -> bool:
        """Return whether so many cells wait that no further ones should start: they hold their outputs."""
        return self.waiting >= MOST_CELLS_WAITING

    def close(self) -> None:
        """Kill the running function."""
        self._functions.close()

    def then(
        self,
        task: CellTask,
        case: Case,
        measured: Measurement,
        outcome: OpenOutcome,
        go_on: GoOn,
        lose: Lose,
    ) -> None:
        """Call ``go_on`` with what a cell measures: at once, or when its functions have been called."""
        facts = measured.facts
        calls = self._calls(task, case, facts, outcome)
        if not calls:
            go_on(task, measured, outcome)
            return

        def on_end(figures: tuple[Agreement, ...]) -> None:
            try:
                told = msgspec.structs.replace(facts, agreement=(*facts.agreement, *figures))
                go_on(task, measured.but(told), outcome)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - it costs this cell alone
                lose(task, error)

        self._functions.ask(calls, on_end)

    def _calls(self, task: CellTask, case: Case, facts: Facts, outcome: OpenOutcome) -> tuple[Call, ...]:
        """Return the calls for a cell that ran; none for a case of a profile, nor for generated text."""
        names = () if case.frozen is not None else tuple(functions_of(case))
        if not names or not isinstance(outcome, Ran) or task.about.scenario == GENERATE:
            return ()
        answers = self._next_step.goldens(task.about, case, facts)
        if not answers:
            return ()
        return tuple(Call(function=name, golden=answers, actual=outcome.outputs) for _, name in names)

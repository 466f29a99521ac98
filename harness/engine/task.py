"""A task: one model to run on one configuration, for a cell or for a question."""

from functools import cached_property

import msgspec

from harness.core.cell import Cell
from harness.core.precision import AS_IS, made_for
from harness.core.scenario import PLAIN
from harness.engine.events import Finished
from harness.engine.outcome import Asked
from harness.engine.question import Question


class Task(msgspec.Struct, kw_only=True, dict=True):
    """One model to run on one configuration. ``dict`` lets what it is about be said only once.

    Attributes:
        suite: The model's suite.
        model: The model.
        cell: Whose result this is; None for a question.
        compared: The cell for whose baseline is asked: its target's outputs without some options.
        question: What is asked where it is about neither.
        wanted: Whether the answer itself is what somebody waits for.
        attempt: Counts from 1.
        started: UTC time of the handing over, ISO 8601.
        first: The result of the first try, where this is a further one.
        expected_ms: What it took the last time; 0 where nobody knows.
        nbytes: Size of its inputs, once they are handed over.
        asked: What its result has to have, once it is handed over.
    """

    suite: str
    model: str
    cell: Cell | None = None
    compared: Cell | None = None
    question: Question | None = None
    wanted: bool = False
    attempt: int = 1
    started: str = ""
    first: Finished | None = None
    expected_ms: float = 0.0
    nbytes: int = 0
    asked: Asked | None = None

    @cached_property
    def about(self) -> Question:
        """Which model this is about, with which data; for a cell as a question that nobody need ask."""
        cell = self.cell or self.compared
        if cell is None:
            return self.question or Question(suite=self.suite, model=self.model)
        axes = dict(cell.axes)
        return Question(
            suite=self.suite,
            model=self.model,
            scenario=axes.get("scenario", PLAIN),
            precision=made_for(axes.get("precision", AS_IS)),
        )

    @property
    def scenario(self) -> str:
        """What is done with the session."""
        return self.about.scenario

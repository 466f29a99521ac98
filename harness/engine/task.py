"""Tasks: each is one model to run on one configuration."""

from functools import cached_property

import msgspec

from harness.core.cell import Cell
from harness.core.precision import AS_IS, made_for
from harness.core.scenario import PLAIN
from harness.engine.events import Finished
from harness.engine.outcome import Asked
from harness.engine.question import Question


class _Handed(msgspec.Struct, kw_only=True, dict=True):
    """What is known of any task. ``dict`` is for the cached property ``about``.

    Attributes:
        attempt: Counts from 1.
        started: UTC time at which a worker got it, ISO 8601.
        expected_ms: Time that it took in an earlier run; 0 if unknown.
        nbytes: Size of its inputs, once a worker has them.
        asked: What its result must have, once a worker has it.
    """

    attempt: int = 1
    started: str = ""
    expected_ms: float = 0.0
    nbytes: int = 0
    asked: Asked | None = None


class CellTask(_Handed):
    """A cell.

    Attributes:
        cell: The cell.
        first: The result of the first attempt, if this is a further one.
    """

    cell: Cell
    first: Finished | None = None

    @cached_property
    def about(self) -> Question:
        """The model and its data, as the question for the CPU provider's answer."""
        return _about(self.cell)


class BaselineTask(_Handed):
    """A cell once more, on its target without the options that are compared.

    Attributes:
        cell: The first cell that needs this baseline.
    """

    cell: Cell

    @cached_property
    def about(self) -> Question:
        """The model and its data, as the question for the CPU provider's answer."""
        return _about(self.cell)


class QuestionTask(_Handed):
    """A question.

    Attributes:
        about: The question.
        for_caller: Whether the caller of the engine asked it. Otherwise cells wait for its answer.
    """

    about: Question
    for_caller: bool = False


Task = CellTask | BaselineTask | QuestionTask


def _about(cell: Cell) -> Question:
    axes = dict(cell.axes)
    return Question(
        suite=cell.suite,
        model=cell.model,
        scenario=axes.get("scenario", PLAIN),
        precision=made_for(axes.get("precision", AS_IS)),
    )

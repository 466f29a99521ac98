"""Open questions: asked to the CPU provider and not answered yet, with the outcomes that wait for them."""

from collections.abc import Callable

import msgspec

from harness.core.records.precision import AS_IS
from harness.core.records.scenario import PLAIN, SCENARIOS
from harness.corpus.case import Case
from harness.engine.answers.cases import Cases
from harness.engine.answers.references import References
from harness.engine.questions.next_step import OpenOutcome
from harness.engine.tasks.outcome import Ran
from harness.engine.tasks.task import CellTask, Question, QuestionKind, Task

MOST_WAITING = 2048
"""Number of outcomes that wait for answers from which on only questions run: a device can be faster than
the CPU provider, and waiting outcomes hold their outputs."""

MOST_WAITING_BYTES = 256 << 20
"""The same in bytes of these outputs."""


class OpenQuestions(msgspec.Struct, eq=False):
    """Asks each question once, before a cell runs or when its outcome needs the answer."""

    cases: Cases
    references: References
    put: Callable[[Question], None]
    waiting: dict[Question, list[tuple[CellTask, OpenOutcome]]] = {}
    count: int = 0
    """Number of waiting outcomes."""
    nbytes: int = 0
    failed: dict[Question, Exception] = {}
    """Questions that an exception of our own left without an answer while no outcome waited for them."""

    @property
    def is_behind(self) -> bool:
        """Return whether so much waits that only questions should run."""
        return self.count >= MOST_WAITING or self.nbytes >= MOST_WAITING_BYTES

    def awaits(self, task: Task) -> bool:
        """Return whether the data of a cell depend on a question, and ask it now."""
        question = self._for_data(task)
        if question is not None:
            self._ask(question)
        return question is not None

    def foresee(self, task: Task) -> bool:
        """Ask for the golden of a cell that is about to run, so that it is known when the outcome comes.

        Returns:
            Return whether an answer is still to come.
        """
        if not isinstance(task, CellTask):
            return False
        question = self._for_data(task)
        if question is None and isinstance(self.cases.of(task.about), Case):
            goldens = dict.fromkeys((task.about.for_golden(), self.cases.given(task.about)))
            question = next((golden for golden in goldens if not self._is_answered(golden)), None)
        if question is not None:
            self._ask(question)
        return question is not None

    def hold(self, question: Question, task: CellTask, outcome: OpenOutcome) -> None:
        """Let an outcome wait for an answer, and ask for it."""
        self._raise_failure(question)
        self._ask(question)
        self.waiting[question].append((task, outcome))
        self.count += 1
        self.nbytes += _nbytes(outcome)

    def close(self, question: Question) -> list[tuple[CellTask, OpenOutcome]]:
        """Return the outcomes that waited for a question."""
        waiting = self.waiting.pop(question, [])
        self.count -= len(waiting)
        self.nbytes -= sum(_nbytes(outcome) for _, outcome in waiting)
        return waiting

    def fail(self, question: Question, error: Exception) -> list[tuple[CellTask, OpenOutcome]]:
        """Close a question that an exception left without an answer.

        If no outcome waits for it, the next cell that needs it gets the exception.
        """
        waiting = self.close(question)
        if not waiting:
            self.failed[question] = error
        return waiting

    def _ask(self, question: Question) -> None:
        if question not in self.waiting:
            self.waiting[question] = []
            self.put(question)

    def _for_data(self, task: Task) -> Question | None:
        """Return the question to be answered before a cell's data are known; None for nearly all cells."""
        if not isinstance(task, CellTask):
            return None
        about = task.about
        given = self.cases.given(about)
        plain = given if given.scenario == PLAIN else msgspec.structs.replace(given, scenario=PLAIN)
        made = about
        if about.precision != AS_IS:
            made = msgspec.structs.replace(about, kind=QuestionKind.MADE, scenario=PLAIN)
        if self.failed:
            for question in (plain, given, made):
                self._raise_failure(question)
        if self._tries_inputs(plain):
            return plain
        # Shapes that the CPU provider refuses are left out, and a model that it refuses is not converted.
        if about.precision != AS_IS and not self._is_answered(plain):
            return plain
        if SCENARIOS[about.scenario].tries_shapes and not self._is_answered(given):
            return given
        return None if self.cases.is_made(about) else made

    def _tries_inputs(self, plain: Question) -> bool:
        """Return whether generated inputs have to be tried on the CPU provider, one attempt at a time."""
        if self.waiting and plain in self.waiting:
            return self.cases.tries(plain)
        return not self.cases.has_inputs(plain)

    def _is_answered(self, question: Question) -> bool:
        """Return whether the answer is known, or whether nothing can be asked."""
        if self.failed and question in self.failed:
            return True
        case = self.cases.of(question)
        return not isinstance(case, Case) or self.references.find(question, case) is not None

    def _raise_failure(self, question: Question) -> None:
        """Raise, once, the exception that left a question without an answer."""
        error = self.failed.pop(question, None)
        if error is not None:
            raise error


def _nbytes(outcome: OpenOutcome) -> int:
    return outcome.nbytes if isinstance(outcome, Ran) else 0

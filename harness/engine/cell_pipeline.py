"""The cell pipeline: from outcomes to records.

An outcome waits here for the CPU provider's answers that its verdict needs, and for the outputs without the
options whose effect is in question.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec

from harness.core.comparison.policy import Policy
from harness.core.records.cell import Cell
from harness.core.records.cell_end import CellEnd
from harness.core.records.facts import Facts
from harness.core.records.record import Decision
from harness.core.records.scenario import GENERATE, SCENARIOS
from harness.core.records.verdict import Cause, Family, Verdict
from harness.core.text.errors import UncontainedError, UsageError, one_line
from harness.core.verdicts.decide import decide
from harness.core.verdicts.own_error import OwnError, lost_record, own_error
from harness.corpus.case import Case
from harness.corpus.decoders.generation_case import GenerationSupport
from harness.corpus.model.model_errors import MendedError
from harness.engine.answers.cases import LoadedCase, NoCase, NoInput, why_no_model
from harness.engine.measuring.cell_record import CellAttempt, record_of
from harness.engine.measuring.early_end import ended, without_case
from harness.engine.measuring.measure import with_shapes
from harness.engine.questions.answer import NOT_REQUESTED, golden_of, keep_answer
from harness.engine.questions.next_step import NextStep, OpenOutcome
from harness.engine.questions.open_questions import OpenQuestions
from harness.engine.steps.effect_step import EffectStep
from harness.engine.steps.effects import Effects
from harness.engine.steps.fixed_size_step import FixedStep
from harness.engine.steps.function_step import FunctionStep
from harness.engine.steps.further_tries import UNTRIED, next_try, with_tries_reason, with_try
from harness.engine.steps.input_draws import windows_beyond_data
from harness.engine.tasks.events import Answered, Event, Finished, NotRun, Warned
from harness.engine.tasks.measurement import Measurement
from harness.engine.tasks.outcome import Ending, Made, Outcome, Ran, Rejected, Unavailable
from harness.engine.tasks.task import (
    BaselineTask,
    CellTask,
    FixedTask,
    Question,
    QuestionKind,
    QuestionTask,
    Task,
)
from harness.engine.workers.agent_environments import Environments

_MOST_REPEATS = 3
"""Largest number of repeats of a cell or question because the cache lost its files."""

_RIGHT = frozenset({Family.PASSED, Family.UNTESTED})
"""Families of cells with a right answer."""


class CellPipeline:
    """Keeps every task from its submission to its record.

    ``put`` is called with each task that has to run: a question, a baseline, or a cell once more. Its outcome
    comes to ``conclude``.
    """

    def __init__(
        self,
        next_step: NextStep,
        effects: Effects,
        put: Callable[[Task], None],
        announce: Callable[[Event], None],
        *,
        gives_outputs: bool = False,
        post: Callable[..., None] = lambda call, *arguments: call(*arguments),
    ) -> None:
        self.next_step = next_step
        self.put = put
        self.announce = announce
        self.gives_outputs = gives_outputs
        self.open = 0
        """Tasks that are not concluded yet."""
        self.repeated = Counter[str]()
        """How often cells and questions were repeated with files that the cache lost and that were made
        again."""
        self.environments = Environments(next_step.plan, announce, next_step.fingerprints)
        self.questions = OpenQuestions(next_step.cases, next_step.references, self._put_question)
        """Questions to the CPU provider."""
        self.functions = FunctionStep(next_step, post, announce)
        self.fixed = FixedStep(next_step.plan, next_step.cases, self._put_fixed, self._decide, self.lose)
        self.effects = EffectStep(
            effects, self._put_baseline, self.fixed.then, self.lose, gives_outputs=gives_outputs
        )

    def case(self, task: Task) -> LoadedCase:
        """Return the task's model with the data of its scenario, or what is wrong with it."""
        return self.next_step.cases.of(task.about)

    def generation(self, task: Task, case: Case) -> GenerationSupport | None:
        """Return the part of a case that a task's process plays; None unless its scenario is ``generate``.

        Raises:
            ModelError: The model has changed meanwhile.
        """
        plays = not isinstance(task, QuestionTask) or task.about.kind is QuestionKind.PLAYED
        return self.next_step.cases.generation(case) if plays and task.about.scenario == GENERATE else None

    def declare(self, cell: Cell, reason: str) -> None:
        """Record a cell that its target declares to lack; nothing is tried."""
        self.open += 1
        task = CellTask(cell=cell, attempt=0)
        try:
            facts = Facts(ended=CellEnd(how="declared", message=one_line(reason)))
            self._decide(task, Measurement(facts), None)
        except Exception as error:  # noqa: BLE001 - it costs this cell alone
            self.lose(task, error)

    def conclude(self, task: Task, outcome: Ending | NoCase) -> None:
        """Process the outcome of a task: the answer to a question, or a cell to be judged.

        Raises:
            UsageError: The user has to fix something, such as a full disk.
        """
        try:
            self._conclude(task, outcome)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - it costs this cell alone
            self.lose(task, error)

    def abandon(self, task: Task, reason: str) -> None:
        """Take back a task that no place can run: a cell without a first result gets no record."""
        match task:
            case CellTask(first=Finished() as first):
                self.open -= 1
                self.announce(with_tries_reason(first))
            case CellTask():
                self.effects.serve(task.cell, None)
                self.open -= 1
                self.announce(NotRun(cell=task.cell.id, reason=reason))
            case BaselineTask():
                self._conclude_baseline(task, None)
            case FixedTask():
                self._conclude_fixed(task, None)
            case QuestionTask():
                self.conclude(task, Unavailable(cause=Cause.NO_DEVICE, reason=reason))

    def lose(self, task: Task, error: Exception) -> None:
        """Process an exception of our own in place of a task's outcome.

        Only one of the cells that wait for an answer is lost; the others ask again.

        Raises:
            UncontainedError: Another exception followed: the run might never end.
        """
        try:
            self._lose(task, error)
        except Exception as further:
            raise UncontainedError(f"while containing {error!r}") from further

    def _lose(self, task: Task, error: Exception) -> None:
        match task:
            case QuestionTask(for_caller=True):
                self._announce_answer(task, problem=own_error(error).reason)
            case QuestionTask():
                self.open -= 1
                waiting = self.questions.fail(task.about, error)
                if waiting:
                    self.lose(waiting[0][0], error)
                for cell_task, outcome in waiting[1:]:
                    self.conclude(cell_task, outcome)
            case BaselineTask():
                self._conclude_baseline(task, None)
            case FixedTask():
                self._conclude_fixed(task, None)
            case CellTask():
                self.effects.lose(task.cell)
                changed = self.next_step.cases.look(task.about, fails=True)
                if changed is None:
                    self._lose_cell(task, own_error(error))
                else:
                    self._decide(task, Measurement(without_case(changed)), None)

    def _lose_cell(self, task: CellTask, error: OwnError) -> None:
        cell = task.cell
        self.open -= 1
        if task.first is not None:  # the first verdict stands, whatever a further try gives
            self.announce(Warned(message=f"{cell.id}: {error.reason}"))
            self.announce(task.first)
            return
        record = lost_record(cell, self.next_step.plan.target(cell.target).provider[0], task.started, error)
        self.announce(Finished(record=record, traceback=error.traceback))

    def _conclude(self, task: Task, outcome: Ending | NoCase) -> None:
        if isinstance(task, QuestionTask) and not task.for_caller:
            self._answer(task, outcome)
            return
        if isinstance(outcome, Made):
            raise TypeError(NOT_REQUESTED)
        match task:
            case QuestionTask():
                self._answer_caller(task, outcome)
            case BaselineTask():
                self._conclude_baseline(task, outcome)
            case FixedTask():
                self._conclude_fixed(task, outcome)
            case CellTask():
                self._conclude_cell(task, outcome)

    # --- questions ---

    def _put_question(self, question: Question) -> None:
        self.open += 1
        self.put(QuestionTask(about=question))

    def _answer(self, task: QuestionTask, outcome: Ending | NoCase) -> None:
        """Keep an answer, and conclude the cells that waited for it."""
        # Before the answer is kept: an answer about other files must not outlive them.
        changed = self.next_step.cases.look(task.about, fails=not isinstance(outcome, Ran | Made))
        is_mended = isinstance(changed, MendedError) or self._is_gone(task, outcome)
        is_mended = is_mended and self._may_repeat(repr(task.about))
        if changed is None and not is_mended:
            self._keep(task, outcome)
        self.open -= 1
        for cell_task, its_outcome in self.questions.close(task.about):
            # Once the files are restored, a cell asks again.
            self.conclude(cell_task, its_outcome if is_mended else changed or its_outcome)

    def _is_gone(self, task: QuestionTask, outcome: Ending | NoCase) -> bool:
        return not isinstance(outcome, Ran | Made) and self.next_step.cases.is_gone(task.about)

    def _may_repeat(self, what: str) -> bool:
        """Return whether a cell or a question may be tried again because the cache was cleaned meanwhile."""
        self.repeated[what] += 1
        return self.repeated[what] <= _MOST_REPEATS

    def _keep(self, task: QuestionTask, outcome: Ending | NoCase) -> None:
        try:
            keep_answer(task.about, self.case(task), outcome, self.next_step.cases, self.next_step.references)
        except UsageError as error:
            self.announce(Warned(message=str(error)))

    def _answer_caller(self, task: QuestionTask, outcome: Outcome | NoCase) -> None:
        """Announce an answer that the engine's caller asked for."""
        changed = self.next_step.cases.look(task.about, fails=not isinstance(outcome, Ran))
        case = changed or self.case(task)
        if isinstance(outcome, NoCase):
            self._announce_answer(task, problem=why_no_model(outcome))
        elif not isinstance(case, Case):  # its file has disappeared meanwhile
            self._announce_answer(task, problem=why_no_model(case))
        elif isinstance(outcome, Unavailable | Rejected):
            self._announce_answer(task, case=case, problem=golden_of(outcome, case).message)
        else:
            self._announce_answer(task, case=case, golden=golden_of(outcome, case))

    def _announce_answer(self, task: QuestionTask, **found: Any) -> None:
        self.open -= 1
        self.announce(Answered(suite=task.about.suite, model=task.about.model, **found))

    # --- cells ---

    def _conclude_cell(self, task: CellTask, outcome: Outcome | NoCase) -> None:
        self.effects.serve(task.cell, outcome)
        if isinstance(outcome, NoCase):
            self._decide(task, Measurement(without_case(outcome)), None)
        elif isinstance(outcome, OpenOutcome):
            self._judge(task, outcome)
        else:
            self.fixed.then(task, Measurement(ended(outcome)), outcome)

    def _judge(self, task: CellTask, outcome: OpenOutcome) -> None:
        case, cell = self.case(task), task.cell
        if not isinstance(case, Case):  # the file changed during the run
            self.conclude(task, case)
            return
        found = self.next_step.of(task.about, cell, case, outcome)
        if isinstance(found, Question):
            self.questions.hold(found, task, outcome)
            return
        if SCENARIOS[task.about.scenario].other_data and task.about.scenario != GENERATE:
            refused = self.next_step.cases.refused(cell.suite, cell.model, task.about.scenario)
            found = found.but(with_shapes(found.facts, case, refused))
        self.functions.then(task, case, found, outcome, self.effects.then, self.lose)

    def _put_baseline(self, cell: Cell) -> None:
        self.open += 1
        self.put(BaselineTask(cell=cell))

    def _conclude_baseline(self, task: BaselineTask, outcome: Outcome | NoCase | None) -> None:
        self.open -= 1
        self.effects.take(task.cell, outcome)

    def _put_fixed(self, task: FixedTask) -> None:
        self.open += 1
        self.put(task)

    def _conclude_fixed(self, task: FixedTask, outcome: Outcome | NoCase | None) -> None:
        self.open -= 1
        self.fixed.take(task, outcome)

    def _decide(self, task: CellTask, measured: Measurement, outcome: Outcome | None) -> None:
        """Decide a cell; announce its record, or put it into its queue once more."""
        decision = self._decided(task, measured)
        if decision.verdict.family not in UNTRIED:
            fails = decision.verdict.family not in _RIGHT
            changed = self.next_step.cases.look(task.about, fails=fails)
            if isinstance(changed, MendedError) and self._may_repeat(task.cell.id):
                self.put(task)
                return
            if changed is not None:
                decision = decide(without_case(changed), Policy())
        # A cell that is tried again has failed, whatever the further try gives.
        untried = decision.verdict in (Verdict.UNAVAILABLE, Verdict.DECLARED) and task.first is None
        case = None if untried else self._shown(task)
        given = (
            self.next_step.cases.of(msgspec.structs.replace(task.about, kind=QuestionKind.MADE))
            if case
            else None
        )
        given = given.case if isinstance(given, NoInput) else given
        given = given if isinstance(given, Case) else None
        expectation = self.environments.expectation(
            task.cell, task.place, decision.outputs, decision.placement
        )
        process = getattr(outcome, "process", None)
        attempt = CellAttempt(task.attempt, task.started, process, task.place, expectation)
        plan = self.next_step.plan
        record = record_of(plan, task.cell, decision, attempt, case=case, given=given)
        if task.first is None:
            finished = Finished(
                record=record,
                printed=getattr(outcome, "printed", ""),
                case=case,
                outputs=outcome.outputs[0] if isinstance(outcome, Ran) and self.gives_outputs else (),
                graph=outcome.graph if isinstance(outcome, Ran) else b"",
            )
        else:
            retried = with_try(task, task.first.record, record)
            finished = msgspec.structs.replace(task.first, record=retried, case=case)
        again = next_try(task, finished, record, case, plan.target(record.target).retries)
        if again is not None:
            self.put(again)
            return
        self.open -= 1
        if task.draw:  # the inputs that the record is about
            finished = msgspec.structs.replace(finished, case=self._shown(CellTask(cell=task.cell)))
        self.announce(with_tries_reason(finished))

    def _decided(self, task: CellTask, measured: Measurement) -> Decision:
        """Decide a cell; if it fails, with what its generated inputs are too small for."""
        facts, policy = measured.facts, measured.policy
        decision = decide(facts, policy)
        if decision.verdict.family is Family.FAILED and (
            beyond := windows_beyond_data(facts, self.case(task))
        ):
            decision = decide(msgspec.structs.replace(facts, beyond=beyond), policy)
        return decision

    def _shown(self, task: Task) -> Case | None:
        """Return the model for the record and the artifacts.

        The model of a cell that was not tried need not be read.
        """
        case = self.case(task)
        if isinstance(case, NoInput):
            return case.case
        return case if isinstance(case, Case) else None

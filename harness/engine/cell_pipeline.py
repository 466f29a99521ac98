"""The pipeline: from outcomes to records, with the CPU provider's answers that this takes.

An outcome whose golden is not known yet waits here until the CPU provider has answered.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from harness.core.cell import Cell
from harness.core.decide import decide
from harness.core.errors import UsageError, one_line
from harness.core.facts import Facts
from harness.core.missing import Need
from harness.core.own_error import OwnError, UncontainedError, lost_record, own_error
from harness.core.policy import Policy
from harness.core.precision import AS_IS
from harness.core.record import Ended, Record
from harness.core.scenario import PLAIN, SCENARIOS
from harness.core.verdict import Family, Phase
from harness.corpus.case import Case
from harness.corpus.scenario import Inapplicable
from harness.engine.answer import golden_of
from harness.engine.cases import Cases, Found, NoInput, Untold, why_not
from harness.engine.effects import Baseline, Doubt, Effects, can_tell, outputs_digest, with_effect
from harness.engine.events import Answered, Event, Finished, Warned
from harness.engine.keeper import NOT_ASKED, Keeper
from harness.engine.measure import ended, untried, with_shapes
from harness.engine.next_step import Judged, NextStep
from harness.engine.outcome import Ending, Made, Outcome, Ran, Rejected, Unavailable
from harness.engine.question import Kind, Question
from harness.engine.recorded import Attempt, record_of
from harness.engine.references import References
from harness.engine.rule import rule_of
from harness.engine.task import BaselineTask, CellTask, QuestionTask, Task
from harness.plan.plan import Plan

MOST_WAITING = 2048
"""Outcomes from which on there should be no more of them until some have their answers: a device can be
faster than the CPU provider, and what waits is held with its outputs."""

MOST_WAITING_BYTES = 256 << 20
"""The same in bytes of these outputs."""


class CellPipeline:
    """Keeps every task from its submission to its record.

    Args:
        plan: Where the cells come from.
        cases: The models.
        references: The CPU provider's answers.
        effects: What options change.
        queue: Called with a task that is to run, a question or a cell once more; it has to come back through
            ``conclude``.
        announce: Called with each event.
        gives_outputs: Whether ``Finished`` events have the EP's outputs.
        needs: What may be asked about a cell before it is decided.
    """

    def __init__(
        self,
        plan: Plan,
        cases: Cases,
        references: References,
        effects: Effects,
        queue: Callable[[Task], None],
        announce: Callable[[Event], None],
        *,
        gives_outputs: bool = False,
        needs: frozenset[Need] = frozenset(Need),
    ) -> None:
        self.open = 0
        """Tasks that have not been concluded."""
        self._plan = plan
        self._cases = cases
        self._references = references
        self._effects = effects
        self._queue = queue
        self._announce = announce
        self._gives_outputs = gives_outputs
        self._next_step = NextStep(plan, cases, references, needs)
        self._keeper = Keeper(cases, references)
        self._waiting: dict[Question, list[tuple[CellTask, Judged]]] = {}
        self._held = 0
        """Outcomes that wait there."""
        self._held_bytes = 0
        self._compared: dict[Baseline, list[_Compared]] = {}
        self._broken: dict[Question, Exception] = {}
        """Questions that an exception of our own has left without an answer, and that nobody waited for."""

    @property
    def is_behind(self) -> bool:
        """Whether so much waits for answers that only questions should be asked."""
        return self._held >= MOST_WAITING or self._held_bytes >= MOST_WAITING_BYTES

    def case(self, task: Task) -> Found:
        """The task's model with the data of its scenario, or what is wrong with it."""
        return self._cases.of(task.about)

    def awaits(self, task: Task) -> bool:
        """Whether the data of a cell can only be known once a question is answered, which is asked now."""
        question = self._for_data(task)
        if question is not None:
            self._ask(question)
        return question is not None

    def foresee(self, task: Task) -> bool:
        """Ask for the golden of a cell that is about to run, so that it is there when the outcome is.

        Returns:
            Whether something is still to come.
        """
        if not isinstance(task, CellTask):
            return False
        question = self._for_data(task)
        if question is None and isinstance(self.case(task), Case):
            goldens = dict.fromkeys((task.about.for_golden(), task.about.for_golden(AS_IS)))
            question = next((golden for golden in goldens if not self._is_answered(golden)), None)
        if question is not None:
            self._ask(question)
        return question is not None

    def _for_data(self, task: Task) -> Question | None:
        """What has to be answered before the data of a cell are known; nothing for nearly all."""
        about = task.about
        if not isinstance(task, CellTask):
            return None
        given = about.for_golden(AS_IS)
        plain = msgspec.structs.replace(given, scenario=PLAIN)
        made = msgspec.structs.replace(about, kind=Kind.MADE, scenario=PLAIN)
        for question in (plain, given, made):
            self._raise_again(question)
        if self._tries_inputs(plain):
            return plain
        # Shapes that the CPU provider refuses are left out, and a model that it refuses is not converted.
        if about.precision != AS_IS and not self._is_answered(plain):
            return plain
        if SCENARIOS[about.scenario].tries_shapes and not self._is_answered(given):
            return given
        return None if self._cases.is_made(about) else made

    def _tries_inputs(self, plain: Question) -> bool:
        """Whether generated inputs have to be tried: on the CPU provider, one attempt after the other."""
        if plain in self._waiting:
            return self._cases.tries(plain)
        return not self._cases.has_inputs(plain)

    def _is_answered(self, question: Question) -> bool:
        """Whether the answer is known, or there is nothing that could be asked."""
        if question in self._broken:
            return True
        case = self._cases.of(question)
        return not isinstance(case, Case) or self._references.find(question, case) is not None

    def conclude(self, task: Task, outcome: Ending | Untold) -> None:
        """A task has its outcome: the answer to a question, or a cell to be judged.

        Raises:
            UsageError: Something is the user's to mend, such as a full disk.
        """
        try:
            self._conclude(task, outcome)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - it costs this cell alone
            self.lose(task, error)

    def lose(self, task: Task, error: Exception) -> None:
        """An exception of our own has cost a task its outcome; called in place of ``conclude``.

        Of the cells that wait for an answer only one is lost; the others ask again.

        Raises:
            UncontainedError: Not even that works; a run that went on might never end.
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
                self._lose_answer(task.about, error)
            case BaselineTask():
                self._compare(task.cell, None)
            case CellTask():
                baseline = self._effects.serves(task.cell)
                if baseline is not None and self._effects.is_coming(baseline):
                    self._settle(baseline, None)
                self._lose_cell(task, own_error(error))

    def _lose_answer(self, question: Question, error: Exception) -> None:
        self.open -= 1
        waiting = self._waiting.pop(question, [])
        if not waiting:
            self._broken[question] = error
            return
        for _, outcome in waiting:
            self._held -= 1
            self._held_bytes -= _nbytes(outcome)
        self.lose(waiting[0][0], error)
        for task, outcome in waiting[1:]:
            self.conclude(task, outcome)

    def _lose_cell(self, task: CellTask, told: OwnError) -> None:
        cell = task.cell
        self.open -= 1
        if task.first is not None:  # the first verdict stands, whatever comes of trying again
            self._announce(Warned(message=f"{cell.id}: {told.reason}"))
            self._announce(task.first)
            return
        record = lost_record(cell, self._plan.target(cell.target).provider[0], task.started, told)
        self._announce(Finished(record=record, traceback=told.traceback))

    def _raise_again(self, question: Question) -> None:
        """Raise what has left a question without an answer, once."""
        error = self._broken.pop(question, None)
        if error is not None:
            raise error

    def _conclude(self, task: Task, outcome: Ending | Untold) -> None:
        if isinstance(task, QuestionTask) and not task.for_caller:
            self._answer(task, outcome)
            return
        if isinstance(outcome, Made):
            raise TypeError(NOT_ASKED)
        match task:
            case QuestionTask():
                self._tell(task, outcome)
            case BaselineTask():
                self._compare(task.cell, outcome)
            case CellTask():
                self._conclude_cell(task, outcome)

    def _conclude_cell(self, task: CellTask, outcome: Outcome | Untold) -> None:
        if (baseline := self._effects.serves(task.cell)) is not None:
            self._settle(baseline, outcome)
        if isinstance(outcome, Untold):
            self._finish(task, _untold(outcome), None)
        elif isinstance(outcome, Judged):
            self._judge(task, outcome)
        else:
            self._finish(task, ended(outcome), outcome)

    def declare(self, cell: Cell, reason: str) -> None:
        """A cell that its target does not have; nothing is tried."""
        self.open += 1
        task = CellTask(cell=cell, attempt=0)
        try:
            self._finish(task, untried(Ended(how="declared", message=one_line(reason))), None)
        except Exception as error:  # noqa: BLE001 - it costs this cell alone
            self.lose(task, error)

    def _ask(self, question: Question) -> None:
        """Ask a question, unless it is under way."""
        if question not in self._waiting:
            self._waiting[question] = []
            self.open += 1
            self._queue(QuestionTask(about=question))

    def _hold(self, question: Question, task: CellTask, outcome: Judged) -> None:
        """Let an outcome wait for an answer."""
        self._raise_again(question)
        self._ask(question)
        self._waiting[question].append((task, outcome))
        self._held += 1
        self._held_bytes += _nbytes(outcome)

    def _answer(self, task: QuestionTask, outcome: Ending | Untold) -> None:
        question = task.about
        try:
            self._keeper.take(question, self.case(task), outcome)
        except UsageError as error:
            self._announce(Warned(message=str(error)))
        self.open -= 1
        for waiting, its_outcome in self._waiting.pop(question):
            self._held -= 1
            self._held_bytes -= _nbytes(its_outcome)
            self.conclude(waiting, its_outcome)

    def _tell(self, task: QuestionTask, outcome: Outcome | Untold) -> None:
        """Announce an answer that the caller of the engine asked for."""
        case = self.case(task)
        untold = outcome if isinstance(outcome, Untold) else case
        if isinstance(untold, Untold):  # a file can disappear before its turn
            self._announce_answer(task, problem=why_not(untold))
            return
        assert isinstance(case, Case) and not isinstance(outcome, Untold)  # noqa: S101, PT018 - seen above
        golden = golden_of(outcome, case)
        if isinstance(outcome, Unavailable | Rejected):
            self._announce_answer(task, case=case, problem=golden.message)
        else:
            self._announce_answer(task, case=case, golden=golden)

    def _announce_answer(self, task: QuestionTask, **found: Any) -> None:
        self.open -= 1
        self._announce(Answered(suite=task.about.suite, model=task.about.model, **found))

    def _judge(self, task: CellTask, outcome: Judged) -> None:
        case, cell = self.case(task), task.cell
        if not isinstance(case, Case):  # the file changed under the run
            self.conclude(task, case)
            return
        found = self._next_step.of(task.about, cell, case, outcome)
        if isinstance(found, Question):
            self._hold(found, task, outcome)
            return
        if SCENARIOS[task.about.scenario].other_data:
            refused = self._cases.refused(cell.suite, cell.model, task.about.scenario)
            found = with_shapes(found, case, refused)
        self._look_for_effect(task, found, outcome)

    def _policy(self, cell: Cell, case: Case | None) -> Policy:
        """What a cell is judged by; nothing of a cell that has no model depends on it."""
        return Policy() if case is None else rule_of(self._plan, cell, case).policy

    def _look_for_effect(self, task: CellTask, facts: Facts, outcome: Judged) -> None:
        """Where options should change the arithmetic, the outputs without them say whether they did."""
        cell = task.cell
        doubt = self._effects.doubt(cell)
        if doubt is None or not isinstance(outcome, Ran) or not self._can_tell(task, facts, outcome):
            self._finish(task, facts, outcome)
            return
        baseline, own = self._effects.baseline(cell, doubt), outputs_digest(outcome)
        digest = self._effects.digest(baseline)
        if digest is not None:
            self._finish(task, with_effect(facts, doubt, own, digest), outcome)
            return
        if baseline not in self._compared and not self._effects.is_coming(baseline):
            self.open += 1
            self._queue(BaselineTask(cell=cell))
        if not self._gives_outputs:  # the baseline may be a cell of another target, and far behind
            outcome = msgspec.structs.replace(outcome, outputs=())
        waiting = _Compared(task, facts, outcome, doubt, own)
        self._compared.setdefault(baseline, []).append(waiting)

    def _can_tell(self, task: CellTask, facts: Facts, outcome: Ran) -> bool:
        case = self.case(task)
        policy = self._policy(task.cell, case if isinstance(case, Case) else None)
        return can_tell(facts, decide(facts, policy).verdict, outcome)

    def _compare(self, cell: Cell, outcome: Outcome | Untold | None) -> None:
        doubt = self._effects.doubt(cell)
        self.open -= 1
        if doubt is not None:
            self._settle(self._effects.baseline(cell, doubt), outcome)

    def _settle(self, baseline: Baseline, outcome: Outcome | Untold | None) -> None:
        """A baseline has its outcome, and those who wait for it their answer."""
        digest = self._effects.keep(baseline, outcome)
        for waiting in self._compared.pop(baseline, ()):
            try:
                facts = with_effect(waiting.facts, waiting.doubt, waiting.digest, digest)
                self._finish(waiting.task, facts, waiting.outcome)
            except Exception as error:  # noqa: BLE001 - it costs this cell alone
                self.lose(waiting.task, error)

    def _finish(self, task: CellTask, facts: Facts, outcome: Outcome | None) -> None:
        cell, ran = task.cell, facts.ended is None
        policy_case = self.case(task) if ran else None
        decision = decide(facts, self._policy(cell, policy_case if isinstance(policy_case, Case) else None))
        # What is tried again has failed, whatever comes of that.
        case = self._shown(task, decision.verdict.family if task.first is None else Family.FAILED)
        given = self._cases.of(msgspec.structs.replace(task.about, kind=Kind.MADE)) if case else None
        given = given.case if isinstance(given, NoInput) else given
        record = record_of(
            self._plan,
            cell,
            facts,
            decision,
            Attempt(task.attempt, task.started, getattr(outcome, "process", None)),
            case=case,
            given=given if isinstance(given, Case) else None,
        )
        if task.first is None:
            finished = Finished(
                record=record,
                printed=getattr(outcome, "printed", ""),
                case=case,
                outputs=outcome.outputs[0] if isinstance(outcome, Ran) and self._gives_outputs else (),
                graph=outcome.graph if isinstance(outcome, Ran) else b"",
            )
        else:
            # The first verdict stands: a retry shows a flake, and never turns a failure into a pass.
            first = task.first.record
            tried = () if record.family is Family.SKIPPED else (record.verdict,)
            retried = msgspec.structs.replace(first, retries=(*first.retries, *tried))
            finished = msgspec.structs.replace(task.first, record=retried, case=case)
        if record.family is not Family.SKIPPED and self._try_again(finished.record):
            # With neither model nor inputs: there may be many such cells, and it is long until their turn.
            task.first, task.attempt = msgspec.structs.replace(finished, case=None), 1
            self._queue(task)
            return
        self.open -= 1
        self._announce(finished)

    def _try_again(self, record: Record) -> bool:
        """Whether a failure that nobody expects is to be tried again; one difference shows a flake."""
        unexpected = record.family is Family.FAILED and not record.expected
        return (
            unexpected and not record.flaky and len(record.retries) < self._plan.target(record.target).retries
        )

    def _shown(self, task: Task, family: Family) -> Case | None:
        """The model for the record and for whoever keeps artifacts; a skipped cell need not read it."""
        case = None if family is Family.SKIPPED else self.case(task)
        if isinstance(case, NoInput):
            return case.case
        return case if isinstance(case, Case) else None


def _untold(found: Untold) -> Facts:
    """The facts of a cell of a model that cannot be run."""
    reason = why_not(found)
    if isinstance(found, Inapplicable):
        return untried(Ended(how="declared", message=reason))
    if isinstance(found, NoInput):
        return untried(Ended(how="no_input", message=reason), Phase.RUN)
    return untried(Ended(how="broken_model", message=reason), Phase.CREATE)


class _Compared(NamedTuple):
    """A cell that waits for its baseline, with the digest of its own outputs."""

    task: CellTask
    facts: Facts
    outcome: Ran
    doubt: Doubt
    digest: str


def _nbytes(outcome: Judged) -> int:
    return outcome.nbytes if isinstance(outcome, Ran) else 0

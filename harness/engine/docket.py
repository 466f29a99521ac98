"""The docket: from outcomes to records, with the CPU provider's answers that this takes.

An outcome whose golden is not known yet waits here until the CPU provider has answered.
"""

from collections.abc import Callable, Mapping

import msgspec

from harness.core.cell import Cell
from harness.core.errors import UsageError, one_line
from harness.core.record import Record
from harness.core.verdict import Family, Phase, Verdict
from harness.corpus.case import Case, load_case
from harness.corpus.errors import ModelError
from harness.corpus.suites import Suite
from harness.engine.answer import golden_of
from harness.engine.effects import Baseline, Effects, can_tell, with_effect
from harness.engine.events import Event, Finished, Warned
from harness.engine.judge import Judgement, judge, judge_untried, record_of, tolerance_rule
from harness.engine.outcome import Outcome, Raised, Ran
from harness.engine.recent import Recent
from harness.engine.references import HOME, References
from harness.engine.worker import Task
from harness.plan.plan import Plan
from harness.plan.target import Runtime

CASES_KEPT = 256
"""Models kept in memory at most; targets come to the same model at about the same time."""


class Docket:
    """Keeps every task from its submission to its record.

    Args:
        plan: Where the cells come from.
        suites: Suite name -> suite.
        references: The CPU provider's answers.
        effects: What options change.
        queue: Called with a task that is to run, a question or a cell once more; it has to come back through
            ``conclude``.
        announce: Called with each event.
    """

    def __init__(
        self,
        plan: Plan,
        suites: Mapping[str, Suite],
        references: References,
        effects: Effects,
        queue: Callable[[Task], None],
        announce: Callable[[Event], None],
    ) -> None:
        self.open = 0
        """Tasks that have not been concluded."""
        self._plan = plan
        self._suites = suites
        self._references = references
        self._effects = effects
        self._queue = queue
        self._announce = announce
        self._cases: Recent[tuple[str, str], Case | ModelError] = Recent(CASES_KEPT)
        self._waiting: dict[tuple[Runtime, str, str], list[tuple[Task, Ran | Raised]]] = {}
        self._compared: dict[Baseline, list[tuple[Task, Cell, Judgement, Ran]]] = {}

    def case(self, task: Task) -> Case | ModelError:
        """The task's model, or what is wrong with it."""
        key = (task.suite, task.model)
        case = self._cases.get(key)
        if case is None:
            try:
                dimensions = self._plan.matrix.models.dimensions
                case = load_case(self._suites[task.suite], task.model, dimensions)
            except ModelError as error:
                case = error
            self._cases.put(key, case, case.nbytes if isinstance(case, Case) else 0)
        return case

    def foresee(self, task: Task) -> bool:
        """Ask for the golden of a cell that is about to run, so that it is there when the outcome is.

        Returns:
            Whether it is still to come.
        """
        case = self.case(task)
        if task.cell is None or isinstance(case, ModelError) or self._references.find(HOME, case) is not None:
            return False
        self._question(HOME, task)
        return True

    def conclude(self, task: Task, outcome: Outcome | ModelError) -> None:
        """A task has its outcome: the answer to a question, or a cell to be judged."""
        if task.compared is not None:
            self._compare(task.compared, outcome)
            return
        if task.cell is None:
            self._answer(task, outcome)
            return
        if (baseline := self._effects.serves(task.cell)) is not None:
            self._settle(baseline, outcome)
        if isinstance(outcome, ModelError):
            judgement = Judgement(verdict=Verdict.INVALID_MODEL, phase=Phase.CREATE, reason=one_line(outcome))
            self._finish(task, task.cell, judgement, None)
        elif isinstance(outcome, Ran | Raised):
            self._judge(task, task.cell, outcome)
        else:
            self._finish(task, task.cell, judge_untried(outcome), outcome)

    def declare(self, cell: Cell, reason: str) -> None:
        """A cell that its target does not have; nothing is tried."""
        self.open += 1
        task = Task(suite=cell.suite, model=cell.model, cell=cell, attempt=0)
        self._finish(task, cell, Judgement(verdict=Verdict.DECLARED, reason=one_line(reason)), None)

    def _question(self, runtime: Runtime, task: Task) -> list[tuple[Task, Ran | Raised]]:
        """Ask a runtime's CPU provider about a task's model, once; those who wait for the answer."""
        key = (runtime, task.suite, task.model)
        if key not in self._waiting:
            self._waiting[key] = []
            self.open += 1
            self._queue(Task(suite=task.suite, model=task.model, runtime=runtime))
        return self._waiting[key]

    def _answer(self, task: Task, outcome: Outcome | ModelError) -> None:
        self.open -= 1
        case = self.case(task)
        if isinstance(case, Case) and not isinstance(outcome, ModelError):
            try:
                self._references.keep(task.runtime, case, golden_of(outcome, case))
            except UsageError as error:
                self._announce(Warned(message=str(error)))
        for waiting, its_outcome in self._waiting.pop((task.runtime, task.suite, task.model)):
            self.conclude(waiting, its_outcome)

    def _judge(self, task: Task, cell: Cell, outcome: Ran | Raised) -> None:
        case = self.case(task)
        if isinstance(case, ModelError):  # the file changed under the run
            self.conclude(task, case)
            return
        # Only an error raises the question what the CPU EP of the *same* runtime says.
        runtime = self._plan.target(cell.target).runtime if isinstance(outcome, Raised) else HOME
        golden, reference = self._references.find(HOME, case), self._references.find(runtime, case)
        if golden is None:
            self._question(HOME, task).append((task, outcome))
        elif reference is None:
            self._question(runtime, task).append((task, outcome))
        else:
            rule = tolerance_rule(self._plan, cell, case)
            self._look_for_effect(task, cell, judge(outcome, case, golden, reference, rule), outcome)

    def _look_for_effect(self, task: Task, cell: Cell, judgement: Judgement, outcome: Ran | Raised) -> None:
        """Where options should change the arithmetic, the outputs without them say whether they did."""
        doubt = self._effects.doubt(cell)
        if doubt is None or not isinstance(outcome, Ran) or not can_tell(judgement, outcome):
            self._finish(task, cell, judgement, outcome)
            return
        baseline = self._effects.baseline(cell, doubt)
        digest = self._effects.digest(baseline)
        if digest is not None:
            self._finish(task, cell, with_effect(judgement, doubt, outcome, digest), outcome)
            return
        if baseline not in self._compared and not self._effects.is_coming(baseline):
            self.open += 1
            self._queue(Task(suite=cell.suite, model=cell.model, compared=cell))
        self._compared.setdefault(baseline, []).append((task, cell, judgement, outcome))

    def _compare(self, cell: Cell, outcome: Outcome | ModelError) -> None:
        self.open -= 1
        doubt = self._effects.doubt(cell)
        if doubt is not None:
            self._settle(self._effects.baseline(cell, doubt), outcome)

    def _settle(self, baseline: Baseline, outcome: Outcome | ModelError) -> None:
        """A baseline has its outcome, and those who wait for it their answer."""
        self._effects.keep(baseline, outcome)
        for task, cell, judgement, its_outcome in self._compared.pop(baseline, ()):
            self._look_for_effect(task, cell, judgement, its_outcome)

    def _finish(self, task: Task, cell: Cell, judgement: Judgement, outcome: Outcome | None) -> None:
        record = record_of(
            self._plan,
            cell,
            judgement,
            started=task.started,
            attempt=task.attempt,
            process=getattr(outcome, "process", None),
        )
        if task.first is None:
            finished = Finished(
                record=record,
                printed=getattr(outcome, "printed", ""),
                case=self._shown(task, record),
                outputs=outcome.outputs[0] if isinstance(outcome, Ran) else (),
            )
        else:
            # The first verdict stands: a retry shows a flake, and never turns a failure into a pass.
            first = task.first.record
            tried = () if record.family is Family.SKIPPED else (record.verdict,)
            retried = msgspec.structs.replace(first, retries=(*first.retries, *tried))
            finished = msgspec.structs.replace(task.first, record=retried)
        if record.family is not Family.SKIPPED and self._try_again(finished.record):
            task.first, task.attempt = finished, 1
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

    def _shown(self, task: Task, record: Record) -> Case | None:
        """The model for whoever keeps artifacts; a skipped cell has none, and need not read it."""
        case = None if record.family is Family.SKIPPED else self.case(task)
        return case if isinstance(case, Case) else None

"""The docket: from outcomes to records, with the CPU provider's answers that this takes.

An outcome whose golden is not known yet waits here until the CPU provider has answered.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping

from harness.core.cell import Cell
from harness.core.errors import UsageError, one_line
from harness.core.record import Record
from harness.core.verdict import Family, Phase, Verdict
from harness.corpus.case import Case, load_case
from harness.corpus.errors import ModelError
from harness.corpus.suites import Suite
from harness.engine.events import Event, Finished, Warned
from harness.engine.judge import Judgement, judge, judge_untried, record_of, tolerance_rule
from harness.engine.outcome import Outcome, Raised, Ran
from harness.engine.references import HOME, References, golden_of
from harness.engine.worker import Task
from harness.plan.plan import Plan
from harness.plan.target import Runtime

CASES_KEPT = 256
"""Models kept in memory; targets come to the same model at about the same time."""


class Docket:
    """Keeps every task from its submission to its record.

    Args:
        plan: Where the cells come from.
        suites: Suite name -> suite.
        references: The CPU provider's answers.
        ask: Called with a task for the CPU provider, which has to come back through ``conclude``.
        announce: Called with each event.
    """

    def __init__(
        self,
        plan: Plan,
        suites: Mapping[str, Suite],
        references: References,
        ask: Callable[[Task], None],
        announce: Callable[[Event], None],
    ) -> None:
        self.open = 0
        """Tasks that have not been concluded."""
        self._plan = plan
        self._suites = suites
        self._references = references
        self._ask = ask
        self._announce = announce
        self._cases: OrderedDict[tuple[str, str], Case | ModelError] = OrderedDict()
        self._waiting: dict[tuple[Runtime, str, str], list[tuple[Task, Ran | Raised]]] = {}

    def case(self, task: Task) -> Case | ModelError:
        """The task's model, or what is wrong with it."""
        key = (task.suite, task.model)
        if key not in self._cases:
            try:
                dimensions = self._plan.matrix.models.dimensions
                self._cases[key] = load_case(self._suites[task.suite], task.model, dimensions)
            except ModelError as error:
                self._cases[key] = error
            if len(self._cases) > CASES_KEPT:
                self._cases.popitem(last=False)
        self._cases.move_to_end(key)
        return self._cases[key]

    def foresee(self, task: Task, case: Case) -> None:
        """Ask for the golden of a cell that is about to run, so that it is there when the outcome is."""
        if task.cell is not None and self._references.find(HOME, case) is None:
            self._question(HOME, task)

    def conclude(self, task: Task, outcome: Outcome | ModelError) -> None:
        """A task has its outcome: an answer of the CPU provider, or a cell to be judged."""
        if task.cell is None:
            self._answer(task, outcome)
        elif isinstance(outcome, ModelError):
            judgement = Judgement(verdict=Verdict.INVALID_MODEL, phase=Phase.CREATE, reason=one_line(outcome))
            self._finish(task, task.cell, judgement, None)
        elif isinstance(outcome, Ran | Raised):
            self._judge(task, task.cell, outcome)
        else:
            self._finish(task, task.cell, judge_untried(outcome), outcome)

    def _question(self, runtime: Runtime, task: Task) -> list[tuple[Task, Ran | Raised]]:
        """Ask a runtime's CPU provider about a task's model, once; those who wait for the answer."""
        key = (runtime, task.suite, task.model)
        if key not in self._waiting:
            self._waiting[key] = []
            self.open += 1
            self._ask(Task(suite=task.suite, model=task.model, runtime=runtime))
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
            self._finish(task, cell, judge(outcome, case, golden, reference, rule), outcome)

    def _finish(self, task: Task, cell: Cell, judgement: Judgement, outcome: Outcome | None) -> None:
        self.open -= 1
        record = record_of(self._plan, cell, judgement, started=task.started, attempt=task.attempt)
        self._announce(
            Finished(
                record=record,
                printed=getattr(outcome, "printed", ""),
                case=self._shown(task, record),
                outputs=outcome.outputs[0] if isinstance(outcome, Ran) else (),
            )
        )

    def _shown(self, task: Task, record: Record) -> Case | None:
        """The model for whoever keeps artifacts; a skipped cell has none, and need not read it."""
        case = None if record.family is Family.SKIPPED else self.case(task)
        return case if isinstance(case, Case) else None

"""The dispatcher: moves tasks from their queues to workers."""

import contextlib
import datetime as dt
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from harness.agent.target_errors import NoRoomError
from harness.core.records.scenario import NOT_IN_AGENT
from harness.core.records.verdict import Cause, Phase
from harness.core.text.errors import UsageError, one_line
from harness.corpus.case import Case
from harness.corpus.model.model_errors import ModelError
from harness.engine.answers.further import further_of_cell, further_of_question
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.tasks.outcome import ExpectedResult, Rejected, Unavailable, Unfeedable, Unsupported
from harness.engine.tasks.task import CellTask, FixedTask, QuestionKind, QuestionTask, Task
from harness.engine.workers.job import (
    OTHER,
    PATHS,
    REPEAT_FEATURE,
    TENSOR_FOLDERS,
    JobDemands,
    budget,
    declined,
    job,
)
from harness.engine.workers.process_pool import ProcessPool
from harness.engine.workers.queues import Queues, TaskQueue
from harness.engine.workers.worker import Worker
from harness.plan.plan import Plan
from harness.runtimes.installer import InstallError

OnUnusable = Callable[[TaskQueue, Unavailable | Rejected, dict[str, Any]], None]
"""Called if a queue can get no process; the last argument is its environment, as far as known."""

AHEAD = 16
"""Number of tasks of a queue whose data are requested together."""


class Dispatcher(msgspec.Struct, frozen=True, eq=False):
    """Gives tasks to all workers."""

    plan: Plan
    queues: Queues
    pool: ProcessPool
    pipeline: CellPipeline
    on_unusable: OnUnusable
    on_no_place: Callable[[TaskQueue], None]

    def assign(self) -> bool:
        """Give every worker the tasks that it can hold; start and stop workers as the queues need them.

        Returns:
            Return whether to call it again: a task was settled here and may have queued questions, or a
            question opened a queue. No message announces that.
        """
        settled = False
        # Reading a model for one queue may queue a question to another one, so references come last. They are
        # few and do not count against the limit of processes. A question may add a queue.
        queues = tuple(self.queues.all)
        is_behind = self.pipeline.questions.is_behind or self.pipeline.functions.is_behind
        for queue in queues:
            for worker in self.pool.serving(queue):
                is_unwanted = worker.retiring or (worker.place is not None and worker.place.reason)
                if is_unwanted and worker.idle:
                    worker.stop()
                if is_behind and not queue.is_reference:
                    continue
                if queue.places is not None and not queue.places.may_begin(queue.refused):
                    continue
                settled |= self._fill(queue, worker)
                worker.flush()
            self._start_workers(queue)
            settled |= self._settle(queue)
        self.pool.make_way()
        return settled or len(self.queues.all) > len(queues)

    def _fill(self, queue: TaskQueue, worker: Worker) -> bool:
        """Give a worker the tasks that it can hold; return whether a task was settled here."""
        settled = False
        place = "" if worker.place is None else worker.place.name
        while worker.has_room and (queue.bring_forward(place) if place else queue.tasks):
            task = queue.tasks[0]
            try:
                if self._must_wait(queue, worker):
                    break
                queue.tasks.popleft()
                settled |= not self._give(worker, task)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - it costs this task alone
                _drop(queue, worker, task)
                self.pipeline.lose(task, error)
                settled = True
        return settled

    def _start_workers(self, queue: TaskQueue) -> None:
        if queue.automatic and queue.alive and self._others_wait(queue):
            return
        try:
            self.pool.start_workers(queue)
        except InstallError as error:
            unbuilt = Unavailable(cause=Cause.NOT_INSTALLED, reason=error.reason, printed=error.printed)
            self.on_unusable(queue, unbuilt, {})
        except (OSError, ValueError) as error:
            self.on_unusable(queue, Unavailable(cause=Cause.NOT_INSTALLED, reason=one_line(error)), {})

    def _others_wait(self, queue: TaskQueue) -> bool:
        """Return whether a second process of a queue would keep others from their first, or from answers."""
        return self.queues.has_questions or any(
            other.waiting and not other.alone and not other.alive
            for other in self.queues.all
            if other is not queue
        )

    def _must_wait(self, queue: TaskQueue, worker: Worker) -> bool:
        """Return whether the first task cannot start: its data are unknown, or it has to run alone."""
        if not queue.alone:
            if not self.pipeline.questions.awaits(queue.tasks[0]):
                # For each task that is given, ask for one more in advance, so that the answers come in time.
                self._ask_early(itertools.islice(queue.tasks, AHEAD, AHEAD + 1))
                return False
            self._ask_early(itertools.islice(queue.tasks, 1, AHEAD))
            return True
        # The order matters: a question must neither be asked during the previous task, nor be overlooked.
        return (
            bool(worker.in_flight)
            or self.pipeline.questions.foresee(queue.tasks[0])
            or self.queues.has_questions
            or self.pipeline.functions.waiting > 0
            or not self.pool.is_quiet(but_for=worker)
        )

    def _ask_early(self, tasks: Iterable[Task]) -> None:
        """Ask early what tasks wait for; an unreadable one is not the fault of the task that is given now."""
        for task in tasks:
            with contextlib.suppress(Exception):  # raised again when it is the first task
                self.pipeline.questions.awaits(task)

    def _settle(self, queue: TaskQueue) -> bool:
        """Conclude all tasks of an unusable configuration; return whether there were any."""
        if not queue.waiting:
            return False
        if queue.verdict is None:
            return self._settle_places(queue)
        while queue.waiting:
            task = queue.tasks.popleft() if queue.tasks else queue.checks.popleft()
            self.pipeline.conclude(task, queue.verdict)
        return True

    def _settle_places(self, queue: TaskQueue) -> bool:
        """Conclude tasks that no place can run any more; return whether there were any."""
        if queue.places is None:
            return False
        if queue.places.is_lost(queue.refused):
            self.on_no_place(queue)
            return True
        usable = [state.name for state in queue.places.states if not state.reason]
        usable = [name for name in usable if name not in queue.refused]
        idle = [task for task in queue.checks if not any(task.may_run_at(name) for name in usable)]
        for task in idle:
            queue.checks.remove(task)
            self.pipeline.abandon(task, "no other place can be used")
        return bool(idle)

    def _give(self, worker: Worker, task: Task) -> bool:
        """Give a worker a task.

        Return False if its model cannot be read or sent, which is then its outcome.
        """
        case = self.pipeline.case(task)
        if not isinstance(case, Case):
            self.pipeline.conclude(task, case)
            return False
        if isinstance(task, FixedTask):
            case = msgspec.structs.replace(case, data_sets=())
        self.pipeline.questions.foresee(task)
        declines = worker.declines
        tensors = Tensors() if TENSOR_FOLDERS in declines else worker.tensors
        try:
            message = job(
                case,
                task.about if isinstance(task, QuestionTask) else dict(task.cell.axes),
                tensors,
                self._demands(task, case),
                local=worker.is_local and PATHS not in declines,
            )
        except NoRoomError as error:
            self.pipeline.conclude(task, Unfeedable(message=str(error)))
            return False
        except ModelError as error:
            self.pipeline.conclude(task, error)
            return False
        except OSError as error:
            self.pipeline.conclude(task, ModelError(case.model_path, str(error)))
            return False
        if OTHER in declines:
            message.pop(OTHER, None)
        if REPEAT_FEATURE in declines and not (isinstance(task, CellTask) and self.plan.repeat(task.cell)):
            message.pop(REPEAT_FEATURE, None)
        if reason := declined(declines, message):
            tensors.discard()
            self.pipeline.conclude(task, Unsupported(phase=Phase.CREATE, message=reason, cause=NOT_IN_AGENT))
            return False
        task.place = "" if worker.place is None else worker.place.name
        task.started = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        task.nbytes = tensors.nbytes
        task.asked = ExpectedResult(
            data_sets=len(case.data_sets),
            outputs=case.outputs,
            by_reference=isinstance(task, QuestionTask) and task.about.kind is not QuestionKind.PLAYED,
            plays="generate" in message,
            stages="stages" in message,
        )
        task.budget = budget(message)
        worker.give(task, message)
        return True

    def _demands(self, task: Task, case: Case) -> JobDemands:
        if isinstance(task, FixedTask):
            return JobDemands(other=False, fixed=task.sizes)
        if isinstance(task, QuestionTask):
            further = further_of_question(self.plan, task.about, case)
        else:
            further = further_of_cell(self.plan, task.cell, case)
        return JobDemands(
            scenario=further.scenario,
            latency=self.queues.latency(task.cell) if isinstance(task, CellTask) else None,
            repeat=further.repeat,
            other=further.other,
            generation=self.pipeline.generation(task, case),
            fixed={} if isinstance(task, QuestionTask) else case.fixed,
        )


def _drop(queue: TaskQueue, worker: Worker, task: Task) -> None:
    """Take a task out of a queue, or away from a worker whose process has not received it yet."""
    if queue.tasks and queue.tasks[0] is task:
        queue.tasks.popleft()
    if worker.in_flight and worker.in_flight[-1] is task:
        worker.in_flight.pop()
        worker.discard()

"""The dispatcher: tasks from the queues of their lanes to workers."""

import contextlib
import datetime as dt
import itertools
from collections.abc import Callable
from typing import Any

from harness.agent.errors import NoRoomError
from harness.core.errors import UsageError, one_line
from harness.core.verdict import Cause
from harness.corpus.case import Case
from harness.corpus.errors import ModelError
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.job import is_local, job
from harness.engine.lane import Lane
from harness.engine.lanes import Lanes
from harness.engine.outcome import Asked, Rejected, Unavailable, Unfeedable
from harness.engine.process_pool import ProcessPool
from harness.engine.task import CellTask, QuestionTask, Task
from harness.engine.uv import InstallError
from harness.engine.worker import Worker
from harness.plan.plan import Plan

GiveUp = Callable[[Lane, Unavailable | Rejected, dict[str, Any]], None]
"""Called where a lane can get no process; the last argument is its environment, as far as that is known."""

AHEAD = 16
"""Tasks of a lane whose data are asked for together, where they have to be asked for."""


class Dispatcher:
    """Keeps all workers supplied.

    Args:
        plan: Where the cells come from.
        lanes: Where tasks wait.
        pool: The workers.
        pipeline: Knows what a task is made of, and takes those that come to nothing.
        give_up: See ``GiveUp``.
    """

    def __init__(
        self, plan: Plan, lanes: Lanes, pool: ProcessPool, pipeline: CellPipeline, give_up: GiveUp
    ) -> None:
        self._plan = plan
        self._lanes = lanes
        self._pool = pool
        self._pipeline = pipeline
        self._give_up = give_up

    def assign(self) -> bool:
        """Give every worker what it can hold; start and stop workers as the queues ask for.

        Returns:
            Whether something was settled on the spot, which may have put new questions into the queues, or
            a question opened a lane; no message will come to tell.
        """
        settled = False
        # Reading a model for one lane may queue a question for another, so references come last but win:
        # they are few and do not count against the limit. A question may add a lane.
        lanes = tuple(self._pool.lanes)
        pausing = self._pool.rotation.pausing([(lane, self._pool.serving(lane)) for lane in lanes])
        is_behind = self._pipeline.is_behind
        for lane in lanes:
            for worker in self._pool.serving(lane):
                if worker.retiring and worker.idle:
                    worker.stop()
                if lane in pausing or (is_behind and not lane.is_reference):
                    continue
                settled |= self._fill(lane, worker)
                worker.send_off()
            if self._pool.wants_worker(lane):
                self._staff(lane)
            settled |= self._settle(lane)
        return settled or len(self._pool.lanes) > len(lanes)

    def _fill(self, lane: Lane, worker: Worker) -> bool:
        """Give a worker what it can hold; whether something was settled on the spot."""
        settled = False
        while worker.has_room and lane.queue:
            task = lane.queue[0]
            try:
                if self._must_wait(lane, worker):
                    break
                lane.queue.popleft()
                settled |= not self._hand_over(lane, worker, task)
            except UsageError:
                raise
            except Exception as error:  # noqa: BLE001 - it costs this task alone
                self._drop(lane, worker, task)
                self._pipeline.lose(task, error)
                settled = True
        return settled

    def _drop(self, lane: Lane, worker: Worker, task: Task) -> None:
        """Take a task out of a queue, or away from a worker that has not been told of it."""
        if lane.queue and lane.queue[0] is task:
            lane.queue.popleft()
        if worker.in_flight and worker.in_flight[-1] is task:
            worker.in_flight.pop()
            worker.discard()

    def _staff(self, lane: Lane) -> None:
        try:
            self._pool.staff(lane)
        except InstallError as error:
            unbuilt = Unavailable(cause=Cause.NOT_INSTALLED, reason=error.reason, printed=error.printed)
            self._give_up(lane, unbuilt, {})
        except (OSError, ValueError) as error:
            self._give_up(lane, Unavailable(cause=Cause.NOT_INSTALLED, reason=one_line(error)), {})

    def _must_wait(self, lane: Lane, worker: Worker) -> bool:
        """Where nothing else may run meanwhile, a task waits for its golden, and for the task before."""
        if not lane.alone:
            if not self._pipeline.awaits(lane.queue[0]):
                # One more in advance for each that is handed over, so that the answers come in time.
                if len(lane.queue) > AHEAD:
                    self._pipeline.awaits(lane.queue[AHEAD])
                return False
            for task in itertools.islice(lane.queue, 1, AHEAD):
                with contextlib.suppress(Exception):  # it is told when the task's turn comes
                    self._pipeline.awaits(task)
            return True
        # In this order: a question must neither be asked during the task before, nor be overlooked.
        return (
            bool(worker.in_flight)
            or self._pipeline.foresee(lane.queue[0])
            or not self._pool.is_quiet(but_for=worker)
        )

    def _settle(self, lane: Lane) -> bool:
        """Where a configuration is unusable, that is the outcome of all its tasks; whether there were any."""
        if lane.verdict is None or not lane.queue:
            return False
        while lane.queue:
            self._pipeline.conclude(lane.queue.popleft(), lane.verdict)
        return True

    def _hand_over(self, lane: Lane, worker: Worker, task: Task) -> bool:
        """Give a worker a task; False where its model cannot be read or played, which is its outcome."""
        case = self._pipeline.case(task)
        if not isinstance(case, Case):
            self._pipeline.conclude(task, case)
            return False
        self._pipeline.foresee(task)
        cell = task.cell if isinstance(task, CellTask) else None
        question = task.about if isinstance(task, QuestionTask) else None
        axes = task.about.axes() if isinstance(task, QuestionTask) else dict(task.cell.axes)
        try:
            message = job(
                case,
                axes,
                worker.tensors,
                local=is_local(lane.configuration.runtime),
                scenario_settings=self._plan.matrix.scenarios.settings(task.about.scenario),
                latency=self._lanes.latency(cell) if cell else None,
                repeat=self._plan.repeat(cell) if cell else None,
                question=question,
            )
        except NoRoomError as error:
            self._pipeline.conclude(task, Unfeedable(message=str(error)))
            return False
        except OSError as error:
            self._pipeline.conclude(task, ModelError(case.model_path, str(error)))
            return False
        task.started = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        task.nbytes = worker.tensors.nbytes
        task.asked = Asked(
            data_sets=len(case.data_sets), outputs=case.outputs, by_reference=question is not None
        )
        worker.hand(task, message)
        return True

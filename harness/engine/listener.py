"""The listener: turns messages and ends of processes into outcomes of tasks and states of queues."""

from collections.abc import Callable
from typing import Any

import msgspec

from harness.core.records.verdict import Cause, Phase
from harness.core.text.errors import UsageError, one_line
from harness.core.verdicts.own_error import own_error
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.measuring.early_end import problem_of
from harness.engine.place_listener import PlaceListener, why_not_started, with_teardown
from harness.engine.processes.messages import (
    After,
    Envelope,
    Imported,
    JobDone,
    JobMessage,
    JobResult,
    LibraryDigests,
    PhaseEntered,
    PieceNeeded,
    ProtocolError,
    Ready,
    RunResult,
    StartMessage,
    TargetUnavailable,
)
from harness.engine.processes.process import ENDED
from harness.engine.processes.slurm import Queued, Waiting, told_end
from harness.engine.tasks.events import Event, Noted, TargetReady, Warned
from harness.engine.tasks.outcome import (
    Died,
    Ending,
    Hung,
    Raised,
    Ran,
    Rejected,
    Unavailable,
    Unsupported,
    from_making,
    from_result,
)
from harness.engine.tasks.task import QuestionKind
from harness.engine.workers.planned_end import end_in_teardown
from harness.engine.workers.process_pool import ProcessPool
from harness.engine.workers.queues import START_ATTEMPTS, Queues, TaskQueue
from harness.engine.workers.worker import Worker
from harness.plan.plan import Plan


class Listener:
    """Reacts to the messages of agents and to their ends.

    ``on_gone`` is called, from another thread, with a removed worker whose process has ended.
    """

    def __init__(
        self,
        plan: Plan,
        queues: Queues,
        pool: ProcessPool,
        pipeline: CellPipeline,
        announce: Callable[[Event], None],
        on_gone: Callable[[Worker], None],
    ) -> None:
        self.plan = plan
        self.queues = queues
        self.pool = pool
        self.pipeline = pipeline
        self.announce = announce
        self.on_gone = on_gone
        self.announced: set[str] = set()
        self.at_places = PlaceListener(pool.fleet, pipeline, announce, self._announce_target)
        """Reacts to events of processes at places."""

    def on_message(self, worker: Worker, message: tuple[Any, ...], at: float) -> bool:
        """React to a message of a worker's process.

        Returns:
            Return whether it may have made work for the dispatcher.
        """
        try:
            return self._react(worker, message, at)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - it costs one task and this process
            self._lose(worker, error)
            return True

    def _lose(self, worker: Worker, error: Exception) -> None:
        """Contain an exception of our own: the present task is lost, the others go back."""
        task = worker.in_flight.popleft() if worker.in_flight else None
        reason = own_error(error).reason
        if task is not None:
            self.pipeline.lose(task, error)
        else:
            self.announce(Warned(message=reason))
        if worker.number not in self.pool.workers:  # it has ended already
            if worker.queue is not None:
                worker.queue.tasks.extendleft(reversed(worker.in_flight))
        elif worker.ready:
            worker.discard()
        else:
            worker.abort(reason)

    def _react(self, worker: Worker, message: Any, at: float) -> bool:
        if message is ENDED:
            self._on_end(worker)
            return True
        if worker.stopping or worker.broken:
            return False  # it was sent before the process was told to end
        if isinstance(message, Queued):
            self._on_queued(worker, message.waits, at)
            return False
        try:
            parsed = parse_message(worker, message)
            if isinstance(parsed, StartMessage):
                return self._on_start(worker, parsed, at)
            return self._on_job(worker, parsed, at)
        except ProtocolError as error:
            worker.abort(str(error))
            return False

    def _on_start(self, worker: Worker, message: StartMessage, at: float) -> bool:
        if isinstance(message, Imported):
            worker.on_imported(at)
            return worker.queue is None  # a cell that runs alone may wait for that
        if isinstance(message, LibraryDigests):
            place = "" if worker.place is None else worker.place.name
            if worker.queue is not None and worker.configuration is not None:
                files = message.files
                self.pool.builds_seen.learn(worker.queue.name, worker.configuration, place, files)
            return False
        if worker.queue is None:
            worker.discard()  # a spare that cannot be used, for whatever reason
        elif isinstance(message, Ready):
            worker.queue.failed_starts = 0
            # The CPU provider's environment is another one.
            if worker.place is not None and not worker.queue.is_reference:
                self.pool.fleet.at(worker.place).on_ready(worker.place, message.fingerprint)
            worker.on_ready(at)
            if not worker.queue.is_reference:
                place = "" if worker.place is None else worker.place.name
                self.pipeline.environments.note(worker.queue.name, place, message.fingerprint)
            self._announce_target(worker.queue, message.fingerprint)
        else:
            worker.stopping = True
            verdict = (
                Unavailable(cause=message.cause, reason=message.reason, printed=message.output)
                if isinstance(message, TargetUnavailable)
                else Rejected(option=message.option, reason=message.reason, printed=message.output)
            )
            if worker.place is None:
                self.on_unusable(worker.queue, verdict, message.fingerprint)
            else:
                self.at_places.refuse(worker.queue, worker.place, verdict, message.fingerprint)
        return True

    def _on_queued(self, worker: Worker, waits: Waiting | None, at: float) -> None:
        if worker.process.greeting is not None:
            return  # Slurm was asked before
        worker.on_queued(waits, at)
        if worker.place is not None:
            worker.place.waits = waits is not None
        if worker.queue is not None and waits is not None:
            where = f" at place {worker.place.name}" if worker.place is not None else ""
            self.announce(Noted(message=f"target {worker.queue.name}{where}: {waits}"))

    def _on_job(self, worker: Worker, message: JobMessage, at: float) -> bool:
        match message:
            case PhaseEntered():
                worker.enter(Phase(message.phase), at)
            case PieceNeeded():
                # An agent elsewhere does not have the model yet.
                case = next(self.pipeline.case(task) for task in worker.in_flight if id(task) == message.job)
                worker.send_piece(message.job, message.name, message.offset, case)
            case JobResult():
                worker.result = _outcome(worker, message.result)
                worker.enter(Phase.TEARDOWN, at)
            case JobDone():
                self._on_done(worker, message.after, at)
                return True
        return False

    def _on_done(self, worker: Worker, after: After, at: float) -> None:
        task, outcome = worker.in_flight[0], worker.result
        process = worker.count(after, at)
        if isinstance(outcome, Ran):
            timings = {**outcome.timings_ms, "teardown": after.teardown_ms}
            replaced = f"the process was replaced: {one_line(after.sick, 200)}" if after.sick else ""
            outcome = msgspec.structs.replace(outcome, timings_ms=timings, process=process, teardown=replaced)
        elif isinstance(outcome, Unsupported):
            outcome = msgspec.structs.replace(outcome, process=process)
        elif isinstance(outcome, Raised):
            outcome = msgspec.structs.replace(outcome, process=process, sick=one_line(after.sick))
        worker.in_flight.popleft()
        worker.result = None
        worker.begin_next(at)
        if worker.place is not None:
            worker.place.work()
        if outcome is not None:
            self.pipeline.conclude(task, outcome)
        if after.sick:
            worker.discard()
        if worker.queue is not None:
            self.pool.spares.keep_for(worker.queue, self.pool.serving(worker.queue))

    def on_unusable(
        self, queue: TaskQueue, verdict: Unavailable | Rejected, fingerprint: dict[str, Any]
    ) -> None:
        """Start no further process for a queue; if none works, its tasks get the verdict."""
        problem = problem_of(verdict)
        serving = sum(worker.ready and not worker.stopping for worker in self.pool.serving(queue))
        if serving:
            # A device may hold fewer sessions than the matrix asks for; the target is not to blame.
            queue.width = serving
            how_many = f"{serving} process{'es' if serving > 1 else ''} at once, not more"
            self.announce(Warned(message=f"target {queue.name} runs with {how_many}: {problem}"))
            return
        queue.verdict = verdict
        self._announce_target(queue, fingerprint, problem=problem)

    def _announce_target(self, queue: TaskQueue, fingerprint: dict[str, Any], problem: str = "") -> None:
        # One value of an option may be refused while another works: a target is unavailable if none works.
        has_others = problem and any(
            other.name == queue.name and not other.is_reference and other.verdict is None
            for other in self.queues.all
        )
        if queue.is_reference or queue.name in self.announced or has_others:
            return
        self.announced.add(queue.name)
        if altered := fingerprint.get("altered"):
            files = one_line(", ".join(map(str, altered)))
            text = f"target {queue.name}: its onnxruntime is not that of its wheel; changed since: {files}"
            self.announce(Warned(message=text))
        # Axes vary the options: those of the first queue are not part of the environment.
        options = {"options": self.plan.target(queue.name).options} if "options" in fingerprint else {}
        self.announce(TargetReady(target=queue.name, fingerprint={**fingerprint, **options}, problem=problem))

    def _on_end(self, worker: Worker) -> None:
        """React to the end of a process: its present task gets the outcome, the others go back."""
        queue = worker.queue
        self.pool.remove(worker)
        if worker.place is not None and not worker.ready and not worker.stopping:
            worker.place.waits = False
        if queue is None or worker.stopping:
            if queue is not None:
                queue.tasks.extendleft(reversed(worker.in_flight))
            self.pool.reap(worker, then=lambda: self.on_gone(worker))
            return
        end = worker.wait()
        worker.slot.release()
        if worker.place is not None:
            self.at_places.on_end(worker, worker.place, queue, end)
        elif worker.is_spare and end.phase is Phase.START:
            self.pool.spares.on_failed_start(queue.configuration.interpreter)
        elif not worker.ready:
            self._on_failed_start(queue, end, worker)
        elif worker.in_flight:
            self._on_loss(worker, queue, end)

    def _on_failed_start(self, queue: TaskQueue, end: Died | Hung, worker: Worker) -> None:
        queue.failed_starts += 1
        if queue.failed_starts < START_ATTEMPTS and isinstance(end, Died):
            return
        self.on_unusable(queue, why_not_started(end, worker), {})

    def _on_loss(self, worker: Worker, queue: TaskQueue, end: Died | Hung) -> None:
        """React to the end of a process at work."""
        queue.losses += 1
        task = worker.in_flight.popleft()
        queue.tasks.extendleft(reversed(worker.in_flight))
        if worker.result is not None:
            self.pipeline.conclude(task, with_teardown(worker.result, end))
            if ended := end_in_teardown(worker, task, end, self.pipeline.environments):
                self.announce(ended)
        elif isinstance(end, Died) and (end.cause == "SIGKILL" or worker.process.lost) and task.attempt == 1:
            # No program does this to itself: the system or a person did. One more try shows which.
            task.attempt = 2
            queue.tasks.appendleft(task)
        elif worker.process.lost:
            told = told_end(end.printed)
            reason = f"the connection was lost in phase {end.phase}, and so it was in the try before" + (
                f"; Slurm: {told}" if told else ""
            )
            self.pipeline.conclude(task, Unavailable(cause=Cause.NO_DEVICE, reason=reason))
        else:
            self.pipeline.conclude(task, end)


def parse_message(worker: Worker, message: Any) -> StartMessage | JobMessage:
    """Return a message of a worker's process, checked.

    Raises:
        ProtocolError: Its form is unknown, or it may not come at this time.
    """
    try:
        parsed = msgspec.convert((message,), Envelope).message
    except (msgspec.ValidationError, RecursionError) as error:
        raise ProtocolError(f"it sent a message of no known form: {one_line(error)}") from error
    if isinstance(parsed, StartMessage):
        if worker.ready or (worker.imported and isinstance(parsed, Imported)):
            raise ProtocolError("it started twice")
    else:
        _check_job(worker, parsed)
    return parsed


def _outcome(worker: Worker, result: RunResult) -> Ending:
    task = worker.in_flight[0]
    if task.about.kind is QuestionKind.MADE:
        return from_making(result, worker.tensors)
    return from_result(result, worker.tensors, task.about.scenario, task.asked)


def _check_job(worker: Worker, message: JobMessage) -> None:
    if isinstance(message, PieceNeeded):
        task = next((task for task in worker.in_flight if message.job == id(task)), None)
        if task is None:
            raise ProtocolError("it asked for a model that it was not given")
        if task.budget is not None:
            task.budget.need()
    elif not worker.in_flight or message.job != id(worker.in_flight[0]):
        raise ProtocolError("it sent a message about a model that it does not run")
    elif isinstance(message, JobDone):
        if worker.result is None:
            raise ProtocolError("it was done with a model without a result")
    elif worker.result is not None:
        raise ProtocolError("it went on with a model after the result")
    elif isinstance(message, PhaseEntered) and (budget := worker.in_flight[0].budget) is not None:
        budget.enter(message.phase)

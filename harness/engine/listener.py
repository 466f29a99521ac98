"""The listener: what workers say, and how they end, turned into outcomes of tasks and fates of lanes."""

from collections.abc import Callable
from typing import Any

import msgspec

from harness.agent.native_stack.block import without_stacks
from harness.core.decide import decide
from harness.core.errors import UsageError, one_line
from harness.core.own_error import own_error
from harness.core.policy import Policy
from harness.core.verdict import Cause, Phase
from harness.corpus.case import Case
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.events import Event, TargetReady, Warned
from harness.engine.lane import Lane
from harness.engine.measure import ended
from harness.engine.messages import (
    After,
    Done,
    Enters,
    Imported,
    Needs,
    OfJob,
    OfStart,
    ProtocolError,
    Ready,
    Result,
    Results,
    Useless,
)
from harness.engine.model_files import piece
from harness.engine.outcome import (
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
from harness.engine.process import ENDED
from harness.engine.process_pool import ProcessPool
from harness.engine.protocol import understood
from harness.engine.question import Kind
from harness.engine.worker import Worker
from harness.plan.plan import Plan


class Listener:
    """Reacts to the messages of agents and to their ends.

    Args:
        plan: Says what a target's own options are.
        pool: The workers.
        pipeline: Takes the outcomes.
        tell: Called with each event.
        gone: Called, from another thread, with a worker whose process has left; the pool is to be told so,
            on the thread on which everything else is called.
    """

    def __init__(
        self,
        plan: Plan,
        pool: ProcessPool,
        pipeline: CellPipeline,
        tell: Callable[[Event], None],
        gone: Callable[[Worker], None],
    ) -> None:
        self._plan = plan
        self._pool = pool
        self._pipeline = pipeline
        self._tell = tell
        self._gone = gone
        self._announced: set[str] = set()

    def hear(self, worker: Worker, message: tuple[Any, ...], at: float) -> bool:
        """React to what a worker has said.

        Args:
            worker: It.
            message: What it said.
            at: When that came in, on the monotonic clock.

        Returns:
            Whether it may have made work for the dispatcher.
        """
        try:
            return self._hear(worker, message, at)
        except UsageError:
            raise
        except Exception as error:  # noqa: BLE001 - it costs one task and this process
            self._lose(worker, error)
            return True

    def _lose(self, worker: Worker, error: Exception) -> None:
        """An exception of our own: the task at work is lost, the rest goes back."""
        task = worker.in_flight.popleft() if worker.in_flight else None
        told = own_error(error).reason
        if task is not None:
            self._pipeline.lose(task, error)
        else:
            self._tell(Warned(message=told))
        if worker.number not in self._pool.workers:  # it has ended already
            if worker.lane is not None:
                worker.lane.queue.extendleft(reversed(worker.in_flight))
        elif worker.ready:
            worker.discard()
        else:
            worker.break_off(told)

    def _hear(self, worker: Worker, message: tuple[Any, ...], at: float) -> bool:
        if message is ENDED:
            self._bury(worker)
            return True
        if worker.stopping or worker.broken:
            return False  # what it still says was overtaken by the decision to let it go
        try:
            said = understood(worker, message)
            if isinstance(said, OfStart):
                return self._hear_of_start(worker, said, at)
            return self._hear_of_job(worker, said, at)
        except ProtocolError as error:
            worker.break_off(str(error))
            return False

    def _hear_of_start(self, worker: Worker, said: OfStart, at: float) -> bool:
        if isinstance(said, Imported):
            worker.has_imported(at)
            return worker.lane is None  # a cell that runs alone may have waited for that
        if worker.lane is None:
            worker.discard()  # a spare one that is of no use, whatever its reasons
        elif isinstance(said, Ready):
            worker.lane.failed_starts = 0
            worker.is_ready(at)
            self._announce(worker.lane, said.fingerprint)
        elif isinstance(said, Useless):
            useless = Unavailable(cause=said.cause, reason=said.reason, printed=said.output)
            self._dismiss(worker, worker.lane, useless, said.fingerprint)
        else:
            rejected = Rejected(option=said.option, reason=said.reason, printed=said.output)
            self._dismiss(worker, worker.lane, rejected, said.fingerprint)
        return True

    def _hear_of_job(self, worker: Worker, said: OfJob, at: float) -> bool:
        match said:
            case Enters():
                worker.enter(Phase(said.phase), at)
            case Needs():
                self._send_piece(worker, said)
            case Results():
                worker.result = self._read(worker, said.result)
                worker.enter(Phase.TEARDOWN, at)
            case Done():
                self._done(worker, said.after, at)
                return True
        return False

    def _send_piece(self, worker: Worker, said: Needs) -> None:
        """An agent elsewhere does not have a model yet. While it comes, the time for its session stands."""
        case = next(self._pipeline.case(task) for task in worker.in_flight if id(task) == said.job)
        content = piece(case, said.name, said.offset) if isinstance(case, Case) else None
        worker.send_piece(said.job, said.name, said.offset, content)

    def _read(self, worker: Worker, result: Result) -> Ending:
        task = worker.in_flight[0]
        if task.about.kind is Kind.MADE:
            return from_making(result, worker.tensors)
        return from_result(result, worker.tensors, task.about.scenario, task.asked)

    def _done(self, worker: Worker, after: After, at: float) -> None:
        task, outcome = worker.in_flight[0], worker.result
        process = worker.count(after, at)
        if worker.lane is not None:
            worker.lane.done_ms += task.expected_ms
        if isinstance(outcome, Ran):
            timings = {**outcome.timings_ms, "teardown": after.teardown_ms}
            outcome = msgspec.structs.replace(outcome, timings_ms=timings, process=process)
        elif isinstance(outcome, Unsupported):
            outcome = msgspec.structs.replace(outcome, process=process)
        elif isinstance(outcome, Raised):
            outcome = msgspec.structs.replace(outcome, process=process, sick=one_line(after.sick))
        worker.in_flight.popleft()
        worker.result = None
        worker.rest(at)
        if outcome is not None:
            self._pipeline.conclude(task, outcome)
        if after.sick:
            worker.discard()
        if worker.lane is not None:
            self._pool.keep_spare(worker.lane)

    def _dismiss(
        self, worker: Worker, lane: Lane, verdict: Unavailable | Rejected, fingerprint: dict[str, Any]
    ) -> None:
        """A process says that it is of no use, and ends."""
        worker.stopping = True
        self.give_up(lane, verdict, fingerprint)

    def give_up(self, lane: Lane, verdict: Unavailable | Rejected, fingerprint: dict[str, Any]) -> None:
        """A lane gets no further process; if it never got one that works, no task of its will run."""
        problem = decide(ended(verdict), Policy()).reason
        serving = sum(worker.ready and not worker.stopping for worker in self._pool.serving(lane))
        if serving:
            # A device may hold fewer sessions than the matrix asks for; that condemns nobody.
            lane.width = serving
            how_many = f"{serving} process{'es' if serving > 1 else ''} at once, not more"
            self._tell(Warned(message=f"target {lane.name} runs with {how_many}: {problem}"))
            return
        lane.verdict = verdict
        self._announce(lane, fingerprint, problem=problem)

    def _announce(self, lane: Lane, fingerprint: dict[str, Any], problem: str = "") -> None:
        # One option's value may be refused while another works: a target is of no use when none does.
        hope = problem and any(
            other.name == lane.name and not other.is_reference and other.verdict is None
            for other in self._pool.lanes
        )
        if not lane.is_reference and lane.name not in self._announced and not hope:
            self._announced.add(lane.name)
            # Axes vary the options, and the one that happens to be first says nothing about the environment.
            options = {"options": self._plan.target(lane.name).options} if "options" in fingerprint else {}
            self._tell(TargetReady(target=lane.name, fingerprint={**fingerprint, **options}, problem=problem))

    def _bury(self, worker: Worker) -> None:
        """A process has ended, in whichever way: its current task gets the outcome, the rest goes back."""
        lane = worker.lane
        self._pool.remove(worker)
        if lane is None or worker.stopping:
            if lane is not None:
                lane.queue.extendleft(reversed(worker.in_flight))
            self._pool.reap(worker, then=lambda: self._gone(worker))
            return
        end = worker.end()
        if worker.slot is not None:
            worker.slot.release()
        if worker.is_spare and end.phase is Phase.START:
            self._pool.do_without_spares(lane)
            return
        if not worker.ready:
            self._start_failed(lane, end, out_of_reach=worker.process.lost)
            return
        if not worker.in_flight:
            return  # it died idle, and took nothing with it
        lane.losses += 1
        task = worker.in_flight.popleft()
        lane.done_ms += task.expected_ms
        lane.queue.extendleft(reversed(worker.in_flight))
        if worker.result is not None:
            self._pipeline.conclude(task, _with_teardown(worker.result, end))
        elif isinstance(end, Died) and (end.cause == "SIGKILL" or worker.process.lost) and task.attempt == 1:
            # No program does this to itself: the system or a person did. One more try tells which.
            task.attempt = 2
            lane.queue.appendleft(task)
        elif worker.process.lost:
            reason = f"the connection was lost in phase {end.phase}, and so it was in the try before"
            self._pipeline.conclude(task, Unavailable(cause=Cause.NO_DEVICE, reason=reason))
        else:
            self._pipeline.conclude(task, end)

    def _start_failed(self, lane: Lane, end: Died | Hung, *, out_of_reach: bool) -> None:
        lane.failed_starts += 1
        if lane.failed_starts < Lane.START_ATTEMPTS and isinstance(end, Died):
            return
        registering = end.phase is Phase.REGISTER
        cause = Cause.REGISTRATION_FAILED if registering else Cause.IMPORT_FAILED
        if out_of_reach:
            cause = Cause.NO_DEVICE
        how = (end.cause or "exited early") if isinstance(end, Died) else f"no answer in {end.limit_s:g} s"
        last = one_line(without_stacks(end.printed).strip().rsplit("\n", 1)[-1])
        reason = f"the process ended in phase {end.phase}: {how}" + (f"; it printed: {last}" if last else "")
        self.give_up(lane, Unavailable(cause=cause, reason=reason, printed=end.printed), {})


def _with_teardown(outcome: Ending, end: Died | Hung) -> Ending:
    """A result that was there before the process died keeps its worth, with a note."""
    how = (end.cause or "it exited") if isinstance(end, Died) else f"no end within {end.limit_s:g} s"
    if isinstance(outcome, Raised):
        return msgspec.structs.replace(outcome, sick=f"in teardown, {how}")
    if not isinstance(outcome, Ran):
        return outcome
    return msgspec.structs.replace(outcome, teardown=f"the process died in teardown, after the result: {how}")

"""The engine: cells in, a stream of events out.

One thread owns all state and reacts to messages; processes are started by short-lived threads, because
bringing up an interpreter blocks. Data goes one way: task -> agent -> outcome -> judge -> event.
"""

import datetime as dt
import os
import queue
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from harness.core.cell import Cell
from harness.core.errors import one_line
from harness.core.verdict import Cause, Phase
from harness.corpus.errors import ModelError
from harness.corpus.suites import Suite
from harness.engine.docket import Docket
from harness.engine.events import Event, TargetReady, Warned
from harness.engine.job import Configuration, configuration, cpu_configuration, interpreter, is_local, job
from harness.engine.judge import judge_untried
from harness.engine.lane import Lane
from harness.engine.outcome import Died, Hung, Outcome, Raised, Ran, Rejected, Unavailable, from_result
from harness.engine.process import ENDED, AgentProcess
from harness.engine.references import References
from harness.engine.worker import Task, Worker
from harness.golden.provenance import provenance
from harness.golden.store import GoldenStore
from harness.plan.file_format import Timeouts
from harness.plan.plan import Plan

STOP_S = 5.0
"""Seconds that processes get to exit by themselves at the end of a run."""


class Engine:
    """Runs the cells of a plan.

    Args:
        plan: What may be submitted.
        suites: Suite name -> suite.
        processes: Target processes at once; by default one for each processor. Those that ask the CPU
            provider for goldens come on top.
    """

    def __init__(self, plan: Plan, suites: Mapping[str, Suite], processes: int | None = None) -> None:
        self._plan = plan
        self._processes = processes or os.cpu_count() or 1
        self._inbox: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Event | BaseException | None] = queue.SimpleQueue()
        self._lanes: dict[tuple[str, Configuration, bool], Lane] = {}
        self._workers: dict[int, Worker] = {}
        self._announced: set[str] = set()
        references = References(GoldenStore(provenance()))
        self._docket = Docket(plan, suites, references, self._ask, self._outbox.put)
        self._draining = False
        self._started = 0
        self._scratch = tempfile.TemporaryDirectory(prefix="ep-harness-", ignore_cleanup_errors=True)
        self._thread = threading.Thread(target=self._run, name="ep-harness-engine", daemon=True)
        self._thread.start()

    # --- the consumer's side, any thread ---

    def submit(self, cells: Iterable[Cell]) -> None:
        """Queue cells; each will come back as one ``Finished`` event."""
        self._inbox.put(("submit", tuple(cells)))

    def drain(self) -> None:
        """Nothing more will be submitted: ``events`` ends once everything queued has its record."""
        self._inbox.put(("drain",))

    def events(self) -> Iterator[Event]:
        """Events as they happen, for one consumer. Ends after ``drain`` or ``close``.

        Raises:
            BaseException: Whatever broke the engine itself.
        """
        while True:
            try:
                # With a limit, for on Windows Ctrl-C does not interrupt a wait without one.
                event = self._outbox.get(timeout=1.0)
            except queue.Empty:
                continue
            if event is None:
                return
            if isinstance(event, BaseException):
                raise event
            yield event

    def close(self) -> None:
        """Kill every process and end, whatever is still queued. Harmless after the end."""
        self._inbox.put(("close",))
        self._thread.join()

    # --- the engine's thread ---

    def _run(self) -> None:
        try:
            while True:
                while self._assign():
                    pass
                if self._draining and not self._docket.open:
                    break
                if not self._handle(self._next_message()):
                    break
                # A message that waits may say that the next phase has begun already.
                if self._inbox.empty():
                    self._expire()
        except BaseException as error:  # noqa: BLE001 - raised again where somebody listens
            self._outbox.put(error)
        finally:
            self._stop_all()
            self._scratch.cleanup()
            self._outbox.put(None)

    def _next_message(self) -> tuple[Any, ...] | None:
        deadlines = [worker.deadline for worker in self._workers.values() if worker.deadline is not None]
        timeout = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
        try:
            return self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None

    def _handle(self, message: tuple[Any, ...] | None) -> bool:
        """React to one message; False ends the engine."""
        if message is None:
            return True
        if message[0] == "close":
            return False
        if message[0] == "drain":
            self._draining = True
        elif message[0] == "submit":
            self._submit(message[1])
        else:
            worker = self._workers.get(message[1])
            if worker is not None:
                self._hear(worker, message[2])
        return True

    def _submit(self, cells: tuple[Cell, ...]) -> None:
        for cell in cells:
            target = self._plan.target(cell.target)
            lane = self._lane(cell.target, configuration(target, cell), target.timeouts_s, target.workers)
            lane.queue.append(Task(suite=cell.suite, model=cell.model, cell=cell))
            self._docket.open += 1

    def _ask(self, task: Task) -> None:
        """Queue a question to the CPU provider of a runtime."""
        lane = self._lane("cpu", cpu_configuration(task.runtime), Timeouts(), is_reference=True)
        lane.queue.append(task)

    def _lane(
        self,
        name: str,
        config: Configuration,
        limits: Timeouts,
        width: int = 1,
        *,
        is_reference: bool = False,
    ) -> Lane:
        # A target may well be the CPU provider itself; its cells must not stand before questions to it.
        key = (name, config, is_reference)
        if key not in self._lanes:
            self._lanes[key] = Lane(name, config, limits, width, is_reference=is_reference)
        return self._lanes[key]

    # --- tasks to workers ---

    def _assign(self) -> bool:
        """Give every worker what it can hold; start and stop workers as the queues ask for.

        Returns:
            Whether something was settled on the spot, which may have put new questions into the queues; no
            message will come to tell.
        """
        settled = False
        # Reading a model for one lane may queue a question for another, so references come last but win:
        # they are few and do not count against the limit.
        for lane in sorted(self._lanes.values(), key=lambda lane: lane.is_reference):
            for worker in list(lane.workers):
                while worker.has_room and lane.queue:
                    settled |= not self._hand_over(lane, worker, lane.queue.popleft())
            while lane.wants_worker and (lane.is_reference or self._slot_free()):
                self._start_worker(lane)
            settled |= self._settle(lane)
        return settled

    def _settle(self, lane: Lane) -> bool:
        """Where a configuration is unusable, that is the outcome of all its tasks; whether there were any."""
        if lane.verdict is None or not lane.queue:
            return False
        while lane.queue:
            self._docket.conclude(lane.queue.popleft(), lane.verdict)
        return True

    def _slot_free(self) -> bool:
        busy = sum(len(lane.workers) for lane in self._lanes.values() if not lane.is_reference)
        if busy < self._processes:
            return True
        idle = (lane.idle_worker for lane in self._lanes.values() if not lane.is_reference)
        worker = next(filter(None, idle), None)
        if worker is not None:
            worker.stop()
        return False

    def _hand_over(self, lane: Lane, worker: Worker, task: Task) -> bool:
        """Give a worker a task; False where its model cannot be read, which is its outcome."""
        case = self._docket.case(task)
        if isinstance(case, ModelError):
            self._docket.conclude(task, case)
            return False
        self._docket.foresee(task, case)
        axes = dict(task.cell.axes) if task.cell else {}
        try:
            message = job(case, axes, local=is_local(lane.configuration.runtime))
        except OSError as error:
            self._docket.conclude(task, ModelError(case.model_path, str(error)))
            return False
        task.started = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        worker.hand(task, message)
        return True

    def _start_worker(self, lane: Lane) -> None:
        self._started += 1
        number = self._started
        folder = Path(self._scratch.name) / str(number)
        folder.mkdir()
        config = lane.configuration
        try:
            process = AgentProcess(interpreter(config.runtime), dict(config.env), folder)
        except (OSError, NotImplementedError, ValueError) as error:
            self._give_up(lane, Unavailable(cause=Cause.NOT_INSTALLED, reason=one_line(error)), {})
            return
        worker = Worker(number, process, lane.limits)
        lane.workers.append(worker)
        self._workers[number] = worker
        deliver = lambda message: self._inbox.put(("heard", number, message))  # noqa: E731
        threading.Thread(target=process.serve, args=(config.message(), deliver), daemon=True).start()

    # --- messages from workers ---

    def _hear(self, worker: Worker, message: tuple[Any, ...]) -> None:
        kind = message[0]
        if kind == "phase":
            worker.enter(Phase(message[2]))
        elif kind == "result":
            worker.result = self._read(message[2])
            worker.enter(Phase.TEARDOWN)
        elif kind == "done":
            self._done(worker, message[2])
        elif kind == "ready":
            lane = self._lane_of(worker)
            worker.ready = True
            lane.failed_starts = 0
            worker.rest()
            self._announce(lane, message[1])
        elif kind == "unavailable":
            _, cause, reason, printed, fingerprint = message
            verdict = Unavailable(cause=cause, reason=reason, printed=printed)
            self._dismiss(worker, verdict, fingerprint)
        elif kind == "rejected":
            _, option, reason, printed, fingerprint = message
            self._dismiss(worker, Rejected(option=option, reason=reason, printed=printed), fingerprint)
        elif message == ENDED:
            self._bury(worker)

    def _read(self, result: dict[str, Any]) -> Outcome:
        try:
            return from_result(result)
        except (ValueError, TypeError, KeyError, msgspec.ValidationError) as error:
            # An agent that talks nonsense is a broken target, and must not break the run.
            return Raised(phase=Phase.RUN, kind="ProtocolError", message=one_line(error))

    def _done(self, worker: Worker, teardown_ms: float) -> None:
        task, outcome = worker.hands.popleft(), worker.result
        worker.result = None
        worker.rest()
        if isinstance(outcome, Ran):
            timings = {**outcome.timings_ms, "teardown": teardown_ms}
            outcome = msgspec.structs.replace(outcome, timings_ms=timings)
        if outcome is not None:
            self._docket.conclude(task, outcome)

    def _dismiss(self, worker: Worker, verdict: Unavailable | Rejected, fingerprint: dict[str, Any]) -> None:
        """A process says that it is of no use, and ends."""
        worker.stopping = True
        self._give_up(self._lane_of(worker), verdict, fingerprint)

    def _give_up(self, lane: Lane, verdict: Unavailable | Rejected, fingerprint: dict[str, Any]) -> None:
        problem = one_line(judge_untried(verdict).reason)
        serving = sum(worker.ready and not worker.stopping for worker in lane.workers)
        if serving:
            # A device may hold fewer sessions than the matrix asks for; that condemns nobody.
            lane.width = serving
            how_many = f"{serving} process{'es' if serving > 1 else ''} at once, not more"
            self._outbox.put(Warned(message=f"target {lane.name} runs with {how_many}: {problem}"))
            return
        lane.verdict = verdict
        self._announce(lane, fingerprint, problem=problem)

    def _announce(self, lane: Lane, fingerprint: dict[str, Any], problem: str = "") -> None:
        # One option's value may be refused while another works: a target is of no use when none does.
        hope = problem and any(
            other.name == lane.name and not other.is_reference and other.verdict is None
            for other in self._lanes.values()
        )
        if not lane.is_reference and lane.name not in self._announced and not hope:
            self._announced.add(lane.name)
            self._outbox.put(TargetReady(target=lane.name, fingerprint=fingerprint, problem=problem))

    def _bury(self, worker: Worker) -> None:
        """A process has ended, in whichever way: its current task gets the outcome, the rest goes back."""
        lane = self._lane_of(worker)
        lane.workers.remove(worker)
        del self._workers[worker.number]
        if worker.stopping:
            threading.Thread(target=worker.process.ended, daemon=True).start()
            return
        end = worker.end()
        if not worker.ready:
            self._start_failed(lane, end)
            return
        if not worker.hands:
            return  # it died idle, and took nothing with it
        task = worker.hands.popleft()
        lane.queue.extendleft(reversed(worker.hands))
        if worker.result is not None:
            self._docket.conclude(task, _with_teardown(worker.result, end))
        elif isinstance(end, Died) and end.cause == "SIGKILL" and task.attempt == 1:
            # No program does this to itself: the system or a person did. One more try tells which.
            task.attempt = 2
            lane.queue.appendleft(task)
        else:
            self._docket.conclude(task, end)

    def _start_failed(self, lane: Lane, end: Died | Hung) -> None:
        lane.failed_starts += 1
        if lane.failed_starts < Lane.START_ATTEMPTS and isinstance(end, Died):
            return
        registering = end.phase is Phase.REGISTER
        cause = Cause.REGISTRATION_FAILED if registering else Cause.IMPORT_FAILED
        how = (end.cause or "exited early") if isinstance(end, Died) else f"no answer in {end.limit_s:g} s"
        last = one_line(end.printed.strip().rsplit("\n", 1)[-1])
        reason = f"the process ended in phase {end.phase}: {how}" + (f"; it printed: {last}" if last else "")
        self._give_up(lane, Unavailable(cause=cause, reason=reason, printed=end.printed), {})

    def _lane_of(self, worker: Worker) -> Lane:
        return next(lane for lane in self._lanes.values() if worker in lane.workers)

    # --- time and end ---

    def _expire(self) -> None:
        now = time.monotonic()
        for worker in self._workers.values():
            if worker.deadline is not None and worker.deadline <= now:
                worker.expire()

    def _stop_all(self) -> None:
        """Let idle processes exit by themselves where the run came to its end; kill all others."""
        grace = STOP_S if self._draining and not self._docket.open else 0.0
        threads = []
        for worker in self._workers.values():
            if grace and worker.ready and not worker.hands:
                worker.stop()
            else:
                worker.process.kill()
            threads.append(threading.Thread(target=worker.process.ended, args=(grace,), daemon=True))
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + STOP_S
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))


def _with_teardown(outcome: Outcome, end: Died | Hung) -> Outcome:
    """A result that was there before the process died keeps its worth, with a note."""
    if not isinstance(outcome, Ran):
        return outcome
    how = (end.cause or "it exited") if isinstance(end, Died) else f"no end within {end.limit_s:g} s"
    return msgspec.structs.replace(outcome, teardown=f"the process died in teardown, after the result: {how}")

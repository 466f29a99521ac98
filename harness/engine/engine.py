"""The engine: cells in, a stream of events out.

One thread owns all state and reacts to messages; whatever blocks (an interpreter that comes up, an
environment that is built, a process that ends) does so in threads of its own. Data goes one way:
task -> agent -> outcome -> judge -> event.
"""

import contextlib
import datetime as dt
import os
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harness.agent.errors import NoRoomError
from harness.core.cell import Cell
from harness.core.errors import one_line
from harness.core.scenario import session_of
from harness.core.verdict import Cause, Phase
from harness.corpus.case import Case
from harness.corpus.errors import ModelError
from harness.corpus.suites import Suite
from harness.engine.builds import Builds
from harness.engine.crew import Crew
from harness.engine.device import device_of
from harness.engine.docket import Docket
from harness.engine.effects import Effects
from harness.engine.events import Event, Noted, TargetReady, Warned
from harness.engine.job import Configuration, configuration, cpu_configuration, is_local, job
from harness.engine.judge import judge_untried
from harness.engine.lane import Lane
from harness.engine.model_files import piece
from harness.engine.outcome import (
    Died,
    Hung,
    Outcome,
    Raised,
    Ran,
    Rejected,
    Unavailable,
    Unfeedable,
    Unsupported,
    from_result,
)
from harness.engine.process import ENDED
from harness.engine.protocol import nonsense
from harness.engine.references import References
from harness.engine.uv import InstallError
from harness.engine.worker import Task, Worker
from harness.golden.provenance import provenance
from harness.golden.store import GoldenStore
from harness.plan.file_format import Timeouts
from harness.plan.matrix import LatencySettings
from harness.plan.plan import Plan
from harness.plan.target import is_fixed

BATCH = 256
"""Events handed out together, at most."""

GATHER_S = 0.001
"""Seconds in which messages gather before the engine reacts: less than what a worker has in hand."""

LINGER_S = 0.01
"""Seconds in which events gather before they are handed out."""

PROTOCOL_ERROR = "ProtocolError"


class Engine:
    """Runs the cells of a plan.

    Args:
        plan: What may be submitted.
        suites: Suite name -> suite.
        processes: Target processes at once that compute on this machine; by default one for each processor.
            Those that ask the CPU provider for goldens come on top.
        durations_ms: Id of a cell -> what it took before; decides what is begun first.
        measures: Whether latency is measured where the matrix asks for it; false where this is not the only
            engine at work on the run.
    """

    def __init__(
        self,
        plan: Plan,
        suites: Mapping[str, Suite],
        processes: int | None = None,
        durations_ms: Mapping[str, float] | None = None,
        *,
        measures: bool = True,
    ) -> None:
        self._plan = plan
        self._measures = measures
        self._durations_ms = durations_ms or {}
        self._inbox: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[Event | _End] = queue.SimpleQueue()
        self._crew = Crew(
            processes or os.cpu_count() or 1,
            hear=lambda number, message: self._inbox.put(("heard", number, message)),
            warn=lambda text: self._outbox.put(Warned(message=text)),
            builds=Builds(
                tell=lambda text: self._outbox.put(Noted(message=text)),
                hear=lambda runtime, problem: self._inbox.put(("built", runtime, problem)),
            ),
        )
        self._lanes: dict[tuple[object, ...], Lane] = {}
        self._announced: set[str] = set()
        references = References(GoldenStore(provenance()))
        self._effects = Effects(plan)
        self._docket = Docket(plan, suites, references, self._effects, self._queue, self._outbox.put)
        self._draining = False
        self._thread = threading.Thread(target=self._run, name="ep-harness-engine", daemon=True)
        self._thread.start()

    # --- the consumer's side, any thread ---

    def submit(self, cells: Iterable[Cell]) -> None:
        """Queue cells; each will come back as one ``Finished`` event."""
        self._inbox.put(("submit", tuple(cells)))

    def ask(self, target: str, models: Iterable[tuple[str, str]]) -> None:
        """Have the CPU provider of a target's runtime compute models, known or not.

        Each comes back as one ``Answered`` event, which keeps it nowhere; what the target's own provider is
        does not matter.

        Args:
            target: Its name; nothing else may be asked or submitted of it.
            models: Pairs of a suite and a model.
        """
        self._inbox.put(("ask", target, tuple(models)))

    def drain(self) -> None:
        """Nothing more will be submitted: ``events`` ends once everything queued has its record."""
        self._inbox.put(("drain",))

    def events(self) -> Iterator[Event]:
        """Events as they happen, for one consumer. Ends after ``drain`` or ``close``.

        Raises:
            BaseException: Whatever broke the engine itself.
        """
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[Event]]:
        """``events``, all that have happened at a time: who writes them down waits for the disk only once."""
        end: _End | None = None
        while end is None:
            batch: list[Event] = []
            for event in self._waiting():
                if isinstance(event, _End):
                    end = event
                else:
                    batch.append(event)
            if batch:
                yield batch
        if end.error is not None:
            raise end.error

    def _waiting(self) -> "Iterator[Event | _End]":
        with contextlib.suppress(queue.Empty):
            # With a limit, for on Windows Ctrl-C does not interrupt a wait without one.
            yield self._outbox.get(timeout=1.0)
            if self._docket.open > 1:
                # More is about to come, and taken together it costs less: in turns of the interpreter's
                # lock, and in waits for the disk.
                time.sleep(LINGER_S)
            for _ in range(BATCH - 1):
                yield self._outbox.get_nowait()

    def close(self) -> None:
        """Kill every process and end, whatever is still queued. Harmless after the end."""
        self._inbox.put(("close",))
        self._thread.join()

    # --- the engine's thread ---

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            while True:
                while self._assign():
                    pass
                if self._draining and not self._docket.open:
                    break
                if not self._handle_until_work():
                    break
        except BaseException as broken:  # noqa: BLE001 - raised again where somebody listens
            error = broken
        finally:
            self._crew.dismiss(gently=self._draining and not self._docket.open)
            self._outbox.put(_End(error))

    def _handle_until_work(self) -> bool:
        """React to what comes in until it may have made work for ``_assign``; False ends the engine."""
        work = False
        while not work:
            for message in self._messages():
                if message[0] == "close":
                    return False
                work |= self._handle(message)
            # Not before: a message that waits may say that the next phase has begun already.
            work |= self._crew.expire()
        return True

    def _messages(self) -> Iterator[tuple[Any, ...]]:
        """What is in the inbox, after waiting for the first or for the next time limit."""
        due = self._crew.next_deadline()
        with contextlib.suppress(queue.Empty):
            yield self._inbox.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
            time.sleep(GATHER_S)
            while True:
                yield self._inbox.get_nowait()

    def _handle(self, message: tuple[Any, ...]) -> bool:
        """React to one message; whether it may have made work for ``_assign``."""
        kind = message[0]
        if kind == "submit":
            self._submit(message[1])
        elif kind == "ask":
            self._ask(message[1], message[2])
        elif kind == "drain":
            self._draining = True
        elif kind == "heard":
            worker = self._crew.workers.get(message[1])
            return worker is not None and self._hear(worker, message[2])
        elif kind == "built":
            self._crew.builds.ended(message[1], message[2])
        elif kind == "gone":
            self._crew.is_gone(message[1])
        return True

    def _submit(self, cells: tuple[Cell, ...]) -> None:
        lanes = set()
        for cell in cells:
            if reason := self._plan.target(cell.target).declared(cell):
                self._docket.declare(cell, reason)
                continue
            self._docket.open += 1
            self._effects.expect(cell)
            lane = self._lane_of(cell)
            lane.queue.append(Task(suite=cell.suite, model=cell.model, cell=cell))
            if self._durations_ms:
                lane.expected_ms += self._durations_ms.get(cell.id, 0.0)
            lanes.add(lane)
        if self._durations_ms:
            for lane in lanes:
                self._slow_ones_first(lane)
            self._crew.sort()

    def _ask(self, name: str, models: tuple[tuple[str, str], ...]) -> None:
        target = self._plan.target(name)
        lane = Lane(name, cpu_configuration(target.runtime), target.timeouts_s, target.workers)
        lane.queue.extend(
            Task(suite=suite, model=model, runtime=target.runtime, wanted=True) for suite, model in models
        )
        self._docket.open += len(models)
        self._open(("asked", name), lane)

    def _slow_ones_first(self, lane: Lane) -> None:
        """Several workers end at about the same time if the longest cells do not come last."""
        if lane.width > 1:
            took = self._durations_ms
            lane.queue = deque(
                sorted(lane.queue, key=lambda task: -took.get(task.cell.id, 0.0) if task.cell else 0.0)
            )

    def _queue(self, task: Task) -> None:
        """Queue a question to the CPU provider of a runtime, one for a baseline, or a cell once more."""
        if task.cell is not None:
            # At once: until then its first result is held in memory, with the outputs.
            self._lane_of(task.cell).queue.appendleft(task)
            return
        if task.compared is not None:
            self._lane_of_baseline(task.compared).queue.append(task)
            return
        # A target may well be the CPU provider itself; its cells must not stand before questions to it.
        key = ("reference", task.runtime)
        if key not in self._lanes:
            config = cpu_configuration(task.runtime)
            self._open(key, Lane("cpu", config, Timeouts(), is_reference=True))
        self._lanes[key].queue.append(task)

    def _lane_of(self, cell: Cell) -> Lane:
        measured = self._latency(cell) is not None
        key = (cell.target, tuple(pair for pair in cell.axes if is_fixed(pair[0])), measured)
        if key not in self._lanes:
            config = configuration(self._plan.target(cell.target), cell)
            self._open(key, self._lane(cell, config, alone=measured))
        return self._lanes[key]

    def _latency(self, cell: Cell) -> LatencySettings | None:
        """How the latency of a cell is measured; None where it is not."""
        return self._plan.latency(cell) if self._measures else None

    def _lane_of_baseline(self, cell: Cell) -> Lane:
        doubt = self._effects.doubt(cell)
        config = doubt.without if doubt else configuration(self._plan.target(cell.target), cell)
        key = ("baseline", config)
        if key not in self._lanes:
            self._open(key, self._lane(cell, config))
        return self._lanes[key]

    def _lane(self, cell: Cell, config: Configuration, *, alone: bool = False) -> Lane:
        target = self._plan.target(cell.target)
        alone = alone or target.alone
        lane = Lane(
            target.name,
            config,
            target.timeouts_s,
            1 if alone else target.workers,
            device=device_of(target, cell),
            alone=alone,
            renew_after=target.renew_after,
        )
        lane.slots = target.workers  # however few of them are used
        return lane

    def _open(self, key: tuple[object, ...], lane: Lane) -> None:
        self._lanes[key] = lane
        self._crew.add(lane)

    # --- tasks to workers ---

    def _assign(self) -> bool:
        """Give every worker what it can hold; start and stop workers as the queues ask for.

        Returns:
            Whether something was settled on the spot, which may have put new questions into the queues, or
            a question opened a lane; no message will come to tell.
        """
        settled = False
        # Reading a model for one lane may queue a question for another, so references come last but win:
        # they are few and do not count against the limit. A question may add a lane.
        lanes = tuple(self._crew.lanes)
        for lane in lanes:
            for worker in tuple(lane.workers):
                if worker.retiring and worker.idle:
                    worker.stop()
                while worker.has_room and lane.queue and not self._must_wait(lane, worker):
                    settled |= not self._hand_over(lane, worker, lane.queue.popleft())
            if lane.wants_worker:
                try:
                    self._crew.staff(lane)
                except InstallError as error:
                    unbuilt = Unavailable(
                        cause=Cause.NOT_INSTALLED, reason=error.reason, printed=error.printed
                    )
                    self._give_up(lane, unbuilt, {})
                except (OSError, ValueError) as error:
                    self._give_up(lane, Unavailable(cause=Cause.NOT_INSTALLED, reason=one_line(error)), {})
            settled |= self._settle(lane)
        return settled or len(self._crew.lanes) > len(lanes)

    def _must_wait(self, lane: Lane, worker: Worker) -> bool:
        """Where nothing else may run meanwhile, a task waits for its golden, and for the task before."""
        if not lane.alone:
            return self._docket.depends(lane.queue[0]) and self._docket.foresee(lane.queue[0])
        # In this order: a question must neither be asked during the task before, nor be overlooked.
        return (
            bool(worker.hands)
            or self._docket.foresee(lane.queue[0])
            or not self._crew.is_quiet(but_for=worker)
        )

    def _settle(self, lane: Lane) -> bool:
        """Where a configuration is unusable, that is the outcome of all its tasks; whether there were any."""
        if lane.verdict is None or not lane.queue:
            return False
        while lane.queue:
            self._docket.conclude(lane.queue.popleft(), lane.verdict)
        return True

    def _hand_over(self, lane: Lane, worker: Worker, task: Task) -> bool:
        """Give a worker a task; False where its model cannot be read or played, which is its outcome."""
        case = self._docket.case(task)
        if not isinstance(case, Case):
            self._docket.conclude(task, case)
            return False
        self._docket.foresee(task)
        cell = task.cell or task.compared
        axes = dict(cell.axes) if cell else {"scenario": session_of(task.scenario)}
        try:
            message = job(
                case,
                axes,
                worker.tensors,
                local=is_local(lane.configuration.runtime),
                scenario_settings=self._plan.matrix.scenarios.settings(task.scenario),
                latency=self._latency(task.cell) if task.cell else None,
            )
        except NoRoomError as error:
            self._docket.conclude(task, Unfeedable(message=str(error)))
            return False
        except OSError as error:
            self._docket.conclude(task, ModelError(case.model_path, str(error)))
            return False
        task.started = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        task.nbytes = worker.tensors.nbytes
        worker.hand(task, message)
        return True

    # --- messages from workers ---

    def _hear(self, worker: Worker, message: tuple[Any, ...]) -> bool:
        """React to a worker's message; whether it may have made work for ``_assign``."""
        if message is ENDED:
            self._bury(worker)
            return True
        if worker.stopping or worker.broken:
            return False  # what it still says was overtaken by the decision to let it go
        if problem := nonsense(worker, message):
            worker.break_off(problem)
            return False
        kind = message[0]
        if kind in {"phase", "need", "result", "done"}:
            return self._hear_of_job(worker, kind, message)
        if kind == "imported":
            worker.has_imported()
            return worker.lane is None  # a cell that runs alone may have waited for that
        if worker.lane is None:
            worker.discard()  # a spare one that is of no use, whatever its reasons
        elif kind == "ready":
            worker.lane.failed_starts = 0
            worker.is_ready()
            self._announce(worker.lane, message[1])
        elif kind == "unavailable":
            _, cause, reason, printed, fingerprint = message
            useless = Unavailable(cause=cause, reason=reason, printed=printed)
            self._dismiss(worker, worker.lane, useless, fingerprint)
        elif kind == "rejected":
            _, option, reason, printed, fingerprint = message
            rejected = Rejected(option=option, reason=reason, printed=printed)
            self._dismiss(worker, worker.lane, rejected, fingerprint)
        return True

    def _hear_of_job(self, worker: Worker, kind: str, message: tuple[Any, ...]) -> bool:
        if kind == "phase":
            worker.enter(Phase(message[2]))
        elif kind == "need":
            self._send_piece(worker, *message[1:])
        elif kind == "result":
            worker.result = self._read(worker, message[2])
            worker.enter(Phase.TEARDOWN)
        else:
            self._done(worker, message[2])
            return True
        return False

    def _send_piece(self, worker: Worker, job: int, name: str, offset: int) -> None:
        """An agent elsewhere does not have a model yet. While it comes, the time for its session stands."""
        case = next(self._docket.case(task) for task in worker.hands if id(task) == job)
        content = piece(case, name, offset) if isinstance(case, Case) else None
        worker.send_piece(job, name, offset, content)

    def _read(self, worker: Worker, result: dict[str, Any]) -> Outcome:
        try:
            return from_result(result, worker.tensors, worker.hands[0].scenario)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            # An agent that talks nonsense is a broken target, and must not break the run.
            return Raised(phase=Phase.RUN, kind=PROTOCOL_ERROR, message=one_line(error))

    def _done(self, worker: Worker, after: dict[str, Any]) -> None:
        task, outcome = worker.hands.popleft(), worker.result
        worker.result = None
        process = worker.count(after)
        worker.rest()
        if isinstance(outcome, Ran):
            timings = {**outcome.timings_ms, "teardown": after["teardown_ms"]}
            outcome = msgspec.structs.replace(outcome, timings_ms=timings, process=process)
        elif isinstance(outcome, Unsupported):
            outcome = msgspec.structs.replace(outcome, process=process)
        elif isinstance(outcome, Raised):
            outcome = msgspec.structs.replace(outcome, process=process, sick=one_line(after.get("sick", "")))
        if outcome is not None:
            self._docket.conclude(task, outcome)
        if after.get("sick"):
            worker.discard()
        if worker.lane is not None:
            self._crew.keep_spare(worker.lane)

    def _dismiss(
        self, worker: Worker, lane: Lane, verdict: Unavailable | Rejected, fingerprint: dict[str, Any]
    ) -> None:
        """A process says that it is of no use, and ends."""
        worker.stopping = True
        self._give_up(lane, verdict, fingerprint)

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
            for other in self._crew.lanes
        )
        if not lane.is_reference and lane.name not in self._announced and not hope:
            self._announced.add(lane.name)
            # Axes vary the options, and the one that happens to be first says nothing about the environment.
            options = {"options": self._plan.target(lane.name).options} if "options" in fingerprint else {}
            self._outbox.put(
                TargetReady(target=lane.name, fingerprint={**fingerprint, **options}, problem=problem)
            )

    def _bury(self, worker: Worker) -> None:
        """A process has ended, in whichever way: its current task gets the outcome, the rest goes back."""
        lane = worker.lane
        self._crew.remove(worker)
        if lane is None or worker.stopping:
            if lane is not None:
                lane.queue.extendleft(reversed(worker.hands))
            self._crew.reap(worker, then=lambda: self._inbox.put(("gone", worker)))
            return
        end = worker.end()
        if worker.slot is not None:
            worker.slot.release()
        if worker.is_spare and end.phase is Phase.START:
            self._crew.do_without_spares(lane)
            return
        if not worker.ready:
            self._start_failed(lane, end, out_of_reach=worker.process.lost)
            return
        if not worker.hands:
            return  # it died idle, and took nothing with it
        lane.losses += 1
        task = worker.hands.popleft()
        lane.queue.extendleft(reversed(worker.hands))
        if worker.result is not None:
            self._docket.conclude(task, _with_teardown(worker.result, end))
        elif isinstance(end, Died) and (end.cause == "SIGKILL" or worker.process.lost) and task.attempt == 1:
            # No program does this to itself: the system or a person did. One more try tells which.
            task.attempt = 2
            lane.queue.appendleft(task)
        elif worker.process.lost:
            reason = f"the connection was lost in phase {end.phase}, and so it was in the try before"
            self._docket.conclude(task, Unavailable(cause=Cause.NO_DEVICE, reason=reason))
        else:
            self._docket.conclude(task, end)

    def _start_failed(self, lane: Lane, end: Died | Hung, *, out_of_reach: bool) -> None:
        lane.failed_starts += 1
        if lane.failed_starts < Lane.START_ATTEMPTS and isinstance(end, Died):
            return
        registering = end.phase is Phase.REGISTER
        cause = Cause.REGISTRATION_FAILED if registering else Cause.IMPORT_FAILED
        if out_of_reach:
            cause = Cause.NO_DEVICE
        how = (end.cause or "exited early") if isinstance(end, Died) else f"no answer in {end.limit_s:g} s"
        last = one_line(end.printed.strip().rsplit("\n", 1)[-1])
        reason = f"the process ended in phase {end.phase}: {how}" + (f"; it printed: {last}" if last else "")
        self._give_up(lane, Unavailable(cause=cause, reason=reason, printed=end.printed), {})


class _End(msgspec.Struct, frozen=True):
    """Nothing more will come; ``error`` broke the engine."""

    error: BaseException | None


def _with_teardown(outcome: Outcome, end: Died | Hung) -> Outcome:
    """A result that was there before the process died keeps its worth, with a note."""
    how = (end.cause or "it exited") if isinstance(end, Died) else f"no end within {end.limit_s:g} s"
    if isinstance(outcome, Raised):
        return msgspec.structs.replace(outcome, sick=f"in teardown, {how}")
    if not isinstance(outcome, Ran):
        return outcome
    return msgspec.structs.replace(outcome, teardown=f"the process died in teardown, after the result: {how}")

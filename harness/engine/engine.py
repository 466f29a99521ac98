"""The engine: takes cells, yields a stream of events.

One thread owns all state and reacts to messages. Blocking work (starting an interpreter, building an
environment, waiting for the end of a process) runs in other threads.
"""

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harness.core.lru_cache import Room
from harness.core.records.cell import Cell
from harness.core.verdicts.missing import Need
from harness.corpus.suites.model_check import end_checker
from harness.corpus.suites.suite import Suite
from harness.engine.answers.cases import Cases, LoadedCase
from harness.engine.answers.references import MORE_OF_SMALL, References, Stores
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.dispatcher import Dispatcher
from harness.engine.listener import Listener
from harness.engine.questions.next_step import NextStep
from harness.engine.steps.effects import MOST_DIGESTS, Effects
from harness.engine.tasks.configuration import configuration
from harness.engine.tasks.events import Answered, Event, Finished, Noted, Warned, place_changed
from harness.engine.tasks.task import QuestionKind, Task
from harness.engine.workers.admission import processors
from harness.engine.workers.planned_end import planned_end
from harness.engine.workers.process_pool import ProcessPool
from harness.engine.workers.queues import Queues
from harness.engine.workers.worker import Worker
from harness.places.fleet import Fleet
from harness.plan.plan import Plan
from harness.runtimes.builds import Builds

BATCH = 256
"""Largest number of events handed out together."""

MOST_UNTAKEN = 8 * BATCH
"""Number of waiting events from which on workers get no tasks until some events are taken.

The engine can be faster than pytest, and waiting events take memory: without this limit 100,000 cells through
pytest took up to 703 MB.
"""

MOST_UNTAKEN_BYTES = 256 << 20
"""The same limit in bytes of outputs and inputs, also for events that are handed out together."""

_Call = tuple[Callable[..., bool | None], tuple[Any, ...]]


class StudySettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings in which a study differs from a run.

    Attributes:
        needs: The questions that may be asked about a cell before it is decided.
        stores: Where answers are kept; None for the cache.
        room: Largest number of forms of models, and of answers of each kind, kept in memory.
        is_small: Whether all models are small, so that a process still at work at its limit counts as hung.
    """

    needs: frozenset[Need] = frozenset(Need)
    stores: Stores | None = None
    room: Room = Room()
    is_small: bool = False


class Engine:
    """Runs the cells of a plan.

    Args:
        plan: The cells that may be submitted.
        suites: Suite name -> suite.
        processes: Largest number of target processes that compute on this machine at once; by default one for
            each processor that this process may use. Processes that ask the CPU provider for goldens are
            additional.
        durations_ms: Id of a cell -> its duration in an earlier run; decides the order of starting.
        measures: Whether latency is measured where the matrix asks for it; false if other engines work on
            the same run.
        gives_outputs: Whether ``Finished`` events have the EP's outputs, which take memory while any of these
            events waits.
        study: Settings in which a study differs from a run.

    Raises:
        UsageError: The places of a target cannot be listed.
    """

    def __init__(
        self,
        plan: Plan,
        suites: Mapping[str, Suite],
        processes: int | None = None,
        durations_ms: Mapping[str, float] | None = None,
        *,
        measures: bool = True,
        gives_outputs: bool = False,
        study: StudySettings = StudySettings(),  # noqa: B008 - it is frozen
    ) -> None:
        self._plan = plan
        self._inbox: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        """Calls for the engine's thread; each returns False if it made no work for the dispatcher."""
        self._outbox: queue.SimpleQueue[tuple[Event | _End, int]] = queue.SimpleQueue()
        """Each event with the bytes of its values."""
        self._announced_bytes = 0
        """Written by the engine's thread alone, as the next one is by the consumer's thread."""
        self._taken_bytes = 0
        self._fleet = self._make_fleet()
        self._pool = self._make_pool(processes or processors())
        uses = {name: suite.uses for name, suite in suites.items() if suite.uses}
        self._effects = Effects(plan, min(MOST_DIGESTS, MORE_OF_SMALL * study.room.count), uses)
        self._queues = Queues(plan, self._effects, durations_ms or {}, self._fleet, measures, study.is_small)
        references = References(study.stores or Stores.of_here(), study.room)
        cases = Cases(plan, suites, references, self._warn, study.room)
        self._pipeline = CellPipeline(
            NextStep(plan, cases, references, study.needs),
            self._effects,
            self._queues.put,
            self._announce,
            gives_outputs=gives_outputs,
            post=self._post,
        )
        self._listener = Listener(
            plan,
            self._queues,
            self._pool,
            self._pipeline,
            self._announce,
            on_gone=lambda worker: self._post(self._pool.on_gone, worker),
        )
        self._dispatcher = Dispatcher(
            plan,
            self._queues,
            self._pool,
            self._pipeline,
            self._listener.on_unusable,
            self._listener.at_places.on_no_place,
        )
        self._gathered: list[Event] = []
        """Events that have left the outbox and have not been handed out yet."""
        self._is_ahead = False
        """Whether the engine waits for events to be taken."""
        self._end: _End | None = None
        self._draining = False
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="ep-harness-engine", daemon=True)
        self._thread.start()

    def _make_fleet(self) -> Fleet:
        return Fleet(
            self._plan,
            lambda *change: self._announce(place_changed(*change)),
            self._warn,
            lambda state, problem: self._post(self._fleet.at(state).on_leased, state, problem),
        )

    def _make_pool(self, processes: int) -> ProcessPool:
        builds = Builds(
            note=lambda text: self._announce(Noted(message=text)),
            on_end=lambda runtime, problem: self._post(self._pool.builds.finish, runtime, problem),
        )
        return ProcessPool(
            processes,
            lambda number, message: self._post(self._on_message, number, message, time.monotonic()),
            self._warn,
            builds,
            self._fleet,
            self._on_ended,
        )

    # --- the consumer's side, any thread ---

    def warm_up(self) -> None:
        """Start processes for cells that will be submitted; it is not known yet which ones."""
        self._post(self._on_warm_up)

    def submit(self, cells: Iterable[Cell]) -> None:
        """Queue cells; each will come back as one ``Finished`` event."""
        self._post(self._on_submit, tuple(cells))

    def ask(
        self, target: str, models: Iterable[tuple[str, str]], kind: QuestionKind = QuestionKind.ANSWER
    ) -> None:
        """Let the CPU provider of a target's runtime compute models, even if their answers are stored.

        Each pair of a suite and a model comes back as one ``Answered`` event, and is not stored. The target's
        own provider does not matter; nothing else may be asked of, or submitted to, this target.
        """
        self._post(self._on_ask, target, tuple(models), kind)

    def drain(self) -> None:
        """End ``events`` once every queued cell has its record; nothing more may be submitted."""
        self._post(self._on_drain)

    def events(self) -> Iterator[Event]:
        """Yield events as they happen, for one consumer. Ends after ``drain`` or ``close``.

        Raises:
            BaseException: The error that broke the engine itself.
        """
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[Event]]:
        """Yield the same events, all waiting ones at a time, so that they can be written together."""
        while self._end is None or self._gathered:
            if self._end is None:
                self._gather()
            batch, self._gathered = self._gathered, []
            if batch:
                yield batch
        if self._end.error is not None:
            raise self._end.error

    def case_of(self, task: Task) -> LoadedCase:
        """Return the model that a task ran, with its data, or why there is none; after the last event."""
        return self._pipeline.case(task)

    @property
    def failure(self) -> BaseException | None:
        """The error that broke the engine itself, once ``batches`` has raised it."""
        return self._end.error if self._end else None

    def _gather(self) -> None:
        """Wait for the next event, and take all waiting ones.

        Events that Ctrl-C interrupts come with the next call.
        """
        most_bytes = self._taken_bytes + MOST_UNTAKEN_BYTES
        with contextlib.suppress(queue.Empty):
            # With a limit, because on Windows Ctrl-C does not interrupt a wait without one.
            self._take(*self._outbox.get(timeout=1.0))
            while len(self._gathered) < BATCH and self._taken_bytes < most_bytes:
                self._take(*self._outbox.get_nowait())
        if self._is_ahead and not self._has_enough:
            self._post(lambda: True)

    def _take(self, event: "Event | _End", nbytes: int) -> None:
        if isinstance(event, _End):
            self._end = event
        else:
            self._taken_bytes += nbytes
            self._gathered.append(event)

    def stop(self) -> None:
        """Kill every process and end ``events``, whatever is still queued.

        Takes no lock, so that a signal handler may call it. Harmless after the end.
        """
        self._post(self._on_close)

    def close(self) -> None:
        """Do what ``stop`` does, and wait until it is done."""
        self.stop()
        if self._thread is not threading.current_thread():  # in which an owner may be collected
            self._thread.join()

    # --- other threads ---

    def _post(self, call: Callable[..., bool | None], *arguments: Any) -> None:
        """Queue a call for the engine's thread."""
        self._inbox.put((call, arguments))

    # --- the engine's thread ---

    def _announce(self, event: Event) -> None:
        """Hand an event to the consumer. Other threads announce only events without bytes."""
        nbytes = event.nbytes if isinstance(event, Finished | Answered) else 0
        if nbytes:
            self._announced_bytes += nbytes
        self._outbox.put((event, nbytes))

    def _on_ended(self, worker: Worker, cause: str) -> None:
        """Report how a process ended that was asked to; called from the thread that waited for it."""
        if ended := planned_end(worker, cause, self._pipeline.environments):
            self._announce(ended)

    def _warn(self, text: str) -> None:
        self._announce(Warned(message=text))

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._pool.take_prestarted()
            while not self._closing:
                while not self._must_wait() and self._dispatcher.assign():
                    pass
                if self._draining and not self._pipeline.open:
                    break
                self._react()
        except BaseException as broken:  # noqa: BLE001 - raised again for the consumer
            error = broken
        finally:
            self._pipeline.functions.close()
            self._pool.close(gently=self._draining and not self._pipeline.open)
            end_checker()
            self._outbox.put((_End(error), 0))

    def _must_wait(self) -> bool:
        self._is_ahead = True  # set before the check: the consumer posts a call only if this is set
        self._is_ahead = self._has_enough
        return self._is_ahead

    @property
    def _has_enough(self) -> bool:
        """Return whether so many events wait that no further ones should be produced."""
        untaken_bytes = self._announced_bytes - self._taken_bytes
        return self._outbox.qsize() >= MOST_UNTAKEN or untaken_bytes >= MOST_UNTAKEN_BYTES

    def _react(self) -> None:
        """Make the calls of the inbox until one may have made work for the dispatcher."""
        has_work = False
        while not has_work:
            for call, arguments in self._calls():
                has_work |= call(*arguments) is not False
                if self._closing:
                    return
            # Not earlier: a waiting message may report that the next phase has already begun.
            has_work |= self._pool.expire()

    def _calls(self) -> Iterator[_Call]:
        """Yield the calls of the inbox, after waiting for the first or for the next time limit."""
        due = self._pool.next_deadline()
        return those_waiting(self._inbox, None if due is None else max(0.0, due - time.monotonic()))

    def _on_message(self, number: int, message: Any, at: float) -> bool:
        worker = self._pool.workers.get(number)
        if worker is None:
            return False
        worker.process.taken += 1
        return self._listener.on_message(worker, message, at)

    def _on_close(self) -> None:
        self._closing = True

    def _on_drain(self) -> None:
        self._draining = True

    def _on_ask(self, target: str, models: tuple[tuple[str, str], ...], kind: QuestionKind) -> None:
        self._pipeline.open += len(models)
        self._queues.ask(target, models, kind)

    def _on_warm_up(self) -> None:
        first: dict[str, Cell] = {}
        for cell in self._plan.cells:
            first.setdefault(cell.target, cell)
        self._pool.warm_up(configuration(self._plan.target(name), cell) for name, cell in first.items())

    def _on_submit(self, cells: tuple[Cell, ...]) -> None:
        to_run = []
        for cell in cells:
            if reason := self._plan.target(cell.target).declared(cell):
                self._pipeline.declare(cell, reason)
            else:
                self._pipeline.open += 1
                self._effects.expect(cell)
                to_run.append(cell)
        self._queues.submit(to_run)


class _End(msgspec.Struct, frozen=True):
    """The end of the events; ``error`` broke the engine."""

    error: BaseException | None


def those_waiting(inbox: "queue.SimpleQueue[_Call]", timeout_s: float | None) -> Iterator[_Call]:
    """Yield the waiting items of a queue, after waiting for the first one for at most so many seconds.

    Items that arrive meanwhile wait for the next call: one agent that never stops must not delay the limits
    of others.
    """
    with contextlib.suppress(queue.Empty):
        first = inbox.get(timeout=timeout_s)
        waiting = inbox.qsize()
        yield first
        for _ in range(waiting):
            yield inbox.get_nowait()

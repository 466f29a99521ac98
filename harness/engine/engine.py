"""The engine: cells in, a stream of events out.

One thread owns all state and reacts to messages; whatever blocks (an interpreter that comes up, an
environment that is built, a process that ends) does so in threads of its own. Data goes one way:
task -> agent -> outcome -> judge -> event.
"""

import contextlib
import math
import queue
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from harness.core.cell import Cell
from harness.core.missing import Need
from harness.corpus.suites import Suite
from harness.engine.builds import Builds
from harness.engine.cases import Cases
from harness.engine.cell_pipeline import CellPipeline
from harness.engine.dispatcher import Dispatcher
from harness.engine.effects import Effects
from harness.engine.events import Answered, Event, Finished, Noted, Warned
from harness.engine.job import Configuration, configuration
from harness.engine.lanes import Lanes
from harness.engine.listener import Listener
from harness.engine.process_pool import ProcessPool
from harness.engine.processors import processors
from harness.engine.question import Kind
from harness.engine.references import References, Stores
from harness.plan.plan import Plan

BATCH = 256
"""Events handed out together, at most."""

MOST_UNTAKEN = 8 * BATCH
"""Events from which on nobody gets more to do until some are taken: the engine can be faster than pytest,
and what waits takes memory. Through pytest 100,000 cells took up to 703 MB without this."""

MOST_UNTAKEN_BYTES = 256 << 20
"""The same in bytes of outputs and inputs, and how many of them are handed out together."""

LINGER_S = 0.2
"""For a run: more is about to come, and taken together it costs less."""


class Engine:
    """Runs the cells of a plan.

    Args:
        plan: What may be submitted.
        suites: Suite name -> suite.
        processes: Target processes at once that compute on this machine; by default one for each processor
            that this process may use. Those that ask the CPU provider for goldens come on top.
        durations_ms: Id of a cell -> what it took before; decides what is begun first.
        measures: Whether latency is measured where the matrix asks for it; false where this is not the only
            engine at work on the run.
        gives_outputs: Whether ``Finished`` events have the EP's outputs, which take memory as long as one of
            them waits for anything.
        needs: What may be asked about a cell before it is decided; all of it unless a study wants less.
        stores: Where answers are kept; the cache unless a study has models that nobody asks about again.
        linger_s: Seconds in which events gather before they are handed out, if there are few of them.
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
        needs: frozenset[Need] = frozenset(Need),
        stores: Stores | None = None,
        linger_s: float = LINGER_S,
    ) -> None:
        self._plan = plan
        self._linger_s = linger_s
        self._inbox: queue.SimpleQueue[tuple[Any, ...]] = queue.SimpleQueue()
        self._outbox: queue.SimpleQueue[tuple[Event | _End, int]] = queue.SimpleQueue()
        """Each with the bytes that its values take."""
        self._announced_bytes = 0
        """Written by the engine's thread alone, as the next one is by the consumer's."""
        self._taken_bytes = 0
        announce = self._announce
        self._pool = ProcessPool(
            processes or processors(),
            hear=self._hear,
            warn=lambda text: announce(Warned(message=text)),
            builds=Builds(
                tell=lambda text: announce(Noted(message=text)),
                hear=lambda runtime, problem: self._tell("built", runtime, problem),
            ),
        )
        self._effects = Effects(plan)
        self._lanes = Lanes(plan, self._effects, self._pool, durations_ms or {}, measures=measures)
        references = References(stores or Stores.of_here())
        cases = Cases(plan, suites, references, warn=lambda text: announce(Warned(message=text)))
        self._pipeline = CellPipeline(
            plan,
            cases,
            references,
            self._effects,
            self._lanes.queue,
            announce,
            gives_outputs=gives_outputs,
            needs=needs,
        )
        self._listener = Listener(
            plan, self._pool, self._pipeline, announce, gone=lambda worker: self._tell("gone", worker)
        )
        self._dispatcher = Dispatcher(plan, self._lanes, self._pool, self._pipeline, self._listener.give_up)
        self._gathered: list[Event] = []
        """Events that have been taken out of the queue, and not handed out yet."""
        self._is_ahead = False
        """Whether it waits for events to be taken."""
        self._end: _End | None = None
        self._draining = False
        self._thread = threading.Thread(target=self._run, name="ep-harness-engine", daemon=True)
        self._thread.start()

    # --- the consumer's side, any thread ---

    def warm_up(self) -> None:
        """Start processes, for cells are going to be submitted; which ones is not known yet."""
        self._tell("warm_up")

    def submit(self, cells: Iterable[Cell]) -> None:
        """Queue cells; each will come back as one ``Finished`` event."""
        self._tell("submit", tuple(cells))

    def ask(self, target: str, models: Iterable[tuple[str, str]], kind: Kind = Kind.ANSWER) -> None:
        """Have the CPU provider of a target's runtime compute models, known or not.

        Each comes back as one ``Answered`` event, which keeps it nowhere; what the target's own provider is
        does not matter.

        Args:
            target: Its name; nothing else may be asked or submitted of it.
            models: Pairs of a suite and a model.
            kind: What is asked of each: a constant of ``harness.engine.question``.
        """
        self._tell("ask", target, tuple(models), kind)

    def drain(self) -> None:
        """Nothing more will be submitted: ``events`` ends once everything queued has its record."""
        self._tell("drain")

    def events(self) -> Iterator[Event]:
        """Events as they happen, for one consumer. Ends after ``drain`` or ``close``, with all there were.

        Raises:
            BaseException: Whatever broke the engine itself.
        """
        for batch in self.batches():
            yield from batch

    def batches(self) -> Iterator[list[Event]]:
        """``events``, all that have happened at a time: who writes them down waits for the disk only once."""
        while self._end is None or self._gathered:
            if self._end is None:
                self._gather()
            batch, self._gathered = self._gathered, []
            if batch:
                yield batch
        if self._end.error is not None:
            raise self._end.error

    def _gather(self) -> None:
        """Wait for what happens next, and take what there is. What Ctrl-C interrupts comes the next time."""
        most_bytes = self._taken_bytes + MOST_UNTAKEN_BYTES
        with contextlib.suppress(queue.Empty):
            # With a limit, for on Windows Ctrl-C does not interrupt a wait without one.
            self._take(*self._outbox.get(timeout=1.0))
            if self._pipeline.open > 1 and self._outbox.qsize() < BATCH - 1 and not self._is_ahead:
                # More is about to come, and taken together it costs less: in turns of the interpreter's
                # lock, and in waits for the disk.
                time.sleep(self._linger_s)
            while len(self._gathered) < BATCH and self._taken_bytes < most_bytes:
                self._take(*self._outbox.get_nowait())
        if self._is_ahead and not self._has_enough:
            self._tell("taken")

    def _take(self, event: "Event | _End", nbytes: int) -> None:
        if isinstance(event, _End):
            self._end = event
        else:
            self._taken_bytes += nbytes
            self._gathered.append(event)

    def close(self) -> None:
        """Kill every process and end, whatever is still queued. Harmless after the end."""
        self._tell("close")
        self._thread.join()

    # --- other threads ---

    def _tell(self, *message: Any) -> None:
        self._inbox.put(message)

    def _hear(self, number: int, message: Any) -> None:
        """A worker has said something, in the thread that listens to it alone."""
        self._inbox.put(("heard", number, message, time.monotonic()))

    # --- the engine's thread ---

    def _announce(self, event: Event) -> None:
        """Hand an event to the consumer. Other threads announce only what has no bytes."""
        nbytes = event.nbytes if isinstance(event, Finished | Answered) else 0
        if nbytes:
            self._announced_bytes += nbytes
        self._outbox.put((event, nbytes))

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._pool.welcome()
            while True:
                while not self._must_wait() and self._dispatcher.assign():
                    pass
                if self._draining and not self._pipeline.open:
                    break
                if not self._handle_until_work():
                    break
        except BaseException as broken:  # noqa: BLE001 - raised again where somebody listens
            error = broken
        finally:
            self._pool.dismiss(gently=self._draining and not self._pipeline.open)
            self._outbox.put((_End(error), 0))

    def _must_wait(self) -> bool:
        self._is_ahead = True  # before it looks, or else what is taken just then would not be told
        self._is_ahead = self._has_enough
        return self._is_ahead

    @property
    def _has_enough(self) -> bool:
        """Whether so much has not been taken yet that there should not be more."""
        untaken_bytes = self._announced_bytes - self._taken_bytes
        return self._outbox.qsize() >= MOST_UNTAKEN or untaken_bytes >= MOST_UNTAKEN_BYTES

    def _handle_until_work(self) -> bool:
        """React to what comes in until it may have made work for the dispatcher; False ends the engine."""
        work = False
        while not work:
            for message in self._messages():
                if message[0] == "close":
                    return False
                work |= self._handle(message)
            # Not before: a message that waits may say that the next phase has begun already.
            work |= self._pool.expire()
        return True

    def _messages(self) -> Iterator[tuple[Any, ...]]:
        """What is in the inbox, after waiting for the first or for the next time limit."""
        due = self._pool.next_deadline() or math.inf
        with contextlib.suppress(queue.Empty):
            yield self._inbox.get(timeout=None if due == math.inf else max(0.0, due - time.monotonic()))
            while True:
                yield self._inbox.get_nowait()

    def _handle(self, message: tuple[Any, ...]) -> bool:
        """React to one message; whether it may have made work for the dispatcher."""
        kind = message[0]
        if kind == "submit":
            self._submit(message[1])
        elif kind == "warm_up":
            self._pool.warm_up(self._first_configurations())
        elif kind == "ask":
            self._pipeline.open += len(message[2])
            self._lanes.ask(message[1], message[2], message[3])
        elif kind == "drain":
            self._draining = True
        elif kind == "heard":
            worker = self._pool.workers.get(message[1])
            return worker is not None and self._listener.hear(worker, message[2], message[3])
        elif kind == "built":
            self._pool.builds.ended(message[1], message[2])
        elif kind == "gone":
            self._pool.is_gone(message[1])
        return True

    def _first_configurations(self) -> Iterator[Configuration]:
        """What the first cell of each target needs."""
        first: dict[str, Cell] = {}
        for cell in self._plan.cells:
            first.setdefault(cell.target, cell)
        return (configuration(self._plan.target(cell.target), cell) for cell in first.values())

    def _submit(self, cells: tuple[Cell, ...]) -> None:
        to_run = []
        for cell in cells:
            if reason := self._plan.target(cell.target).declared(cell):
                self._pipeline.declare(cell, reason)
            else:
                self._pipeline.open += 1
                self._effects.expect(cell)
                to_run.append(cell)
        self._lanes.submit(to_run)


class _End(msgspec.Struct, frozen=True):
    """Nothing more will come; ``error`` broke the engine."""

    error: BaseException | None

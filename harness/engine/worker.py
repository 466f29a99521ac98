"""A worker: one agent process, its tasks in flight, and the time limit it is under."""

import os
import time
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from harness.core.record import ProcessState
from harness.core.verdict import Phase
from harness.engine.messages import After
from harness.engine.outcome import Died, Ending, Hung
from harness.engine.process import AgentProcess
from harness.engine.task import Task
from harness.engine.tensor_files import Tensors
from harness.plan.file_format import Timeouts

if TYPE_CHECKING:
    from harness.engine.device import Slot
    from harness.engine.lane import Lane

IN_FLIGHT_S = 0.5
"""Seconds of work that a worker holds: the harness has other things to do while it gets through half of them,
and the more it gets at a time, the fewer threads are woken on either side.

What is in hand is run before a process that leaks is replaced, and nobody else can take it from a worker that
is slower than the others, so more has its price, too."""

FEWEST_IN_FLIGHT = 8
FIRST_IN_FLIGHT = 16
"""Tasks that it holds while nobody knows how long they take."""
MOST_IN_FLIGHT = 160
"""ONNX's operator tests on the CPU provider through pytest, two cores, medians of six by turns: 4.64 s with
64 and 8 handed over together, 4.46 s with 160 and 8, 4.34 s with 160 and 24; 320 and 32 won nothing more."""

TOGETHER = 24
"""Tasks that its process is told of together, at most: a fast one would be through with all that it knows of
before the last of many is made."""

PACE_WEIGHT = 0.25
"""What the latest task counts in how long one takes, and in how much of a processor it needs."""

BUSY = 0.3
"""Of a processor's time: what takes less waits for something else, such as an accelerator."""

BYTES_IN_FLIGHT = 64 << 20
"""Bytes of inputs from which on a worker gets no further task, for they lie in memory until their turn."""

WARM_UP_SESSIONS = 16
"""Sessions after which the growth of memory counts: the first ones fill pools and caches."""

IDLE_S = 2.0
"""Seconds that a process without work keeps its place on a device that others may wait for."""


class Worker:
    """The engine's view of one agent process; a spare one until it is told which lane it serves.

    Args:
        number: Unique within the engine; also the id of messages' source.
        process: The process, not opened yet.
        tensors: What carries tensors between it and the harness.
    """

    def __init__(self, number: int, process: AgentProcess, tensors: Tensors | None = None) -> None:
        self.number = number
        self.process = process
        self.tensors = tensors or Tensors()
        self.lane: Lane | None = None
        self.slot: Slot | None = None
        self.imported = False
        self.ready = False
        self.is_spare = False
        """Whether it was started before anybody needed it."""
        self.retiring = False
        self.stopping = False
        self.broken = False
        self.in_flight: deque[Task] = deque()
        self._unsent: list[Any] = []
        """What stands for tasks in flight of which its process has not been told yet."""
        self._is_full = False
        self._capacity = FIRST_IN_FLIGHT
        """Tasks that it holds at most; it gets more at half of them."""
        self._began_at = 0.0
        """When its process began the task that it is at, or came to rest."""
        self._pace_s = 0.0
        """Seconds that a task takes, of late; 0 where none has ended."""
        self._processor = 1.0
        """How much of a processor its process takes, of late; all of it where nobody knows."""
        self.result: Ending | None = None
        self.hung: Hung | None = None
        self.sessions = 0
        self.ready_at = 0.0
        self._base_rss_mib: float | None = None
        self._limits = Timeouts()
        self.deadline: float | None = None
        self.leaves_at: float | None = None
        """When it ends for want of work; None where nobody waits for its place."""
        self.enter(Phase.START)

    @property
    def has_room(self) -> bool:
        """Whether it can take another task."""
        return (
            self.lane is not None
            and self.ready
            and not self.stopping
            and not self.retiring
            and not self._is_full
            and self.sessions + len(self.in_flight) < self.lane.renew_after.sessions
            and sum(map(_nbytes, self.in_flight)) < BYTES_IN_FLIGHT
        )

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do."""
        return self.ready and not self.stopping and not self.in_flight

    @property
    def is_busy(self) -> bool:
        """Whether its process needs a processor for most of what it does."""
        return self._processor >= BUSY

    @property
    def at_rest(self) -> bool:
        """Whether its process waits: neither starts nor works nor ends."""
        return self.idle if self.lane is not None else self.imported

    @property
    def _refill_at(self) -> int:
        """Tasks in hand at which it gets more."""
        return self._capacity // 2

    def enter(self, phase: Phase, since: float | None = None) -> None:
        """A phase begins, and its time limit with it.

        Args:
            phase: The phase.
            since: When it began, on the monotonic clock: as soon as its process said so, which nobody may
                have read at once. By default it begins now.
        """
        self.phase = phase
        self.deadline = (time.monotonic() if since is None else since) + getattr(self._limits, phase)

    def stand_by(self, limit_s: float) -> None:
        """Be a spare one, which has so many seconds to start."""
        self.is_spare = True
        self.deadline = time.monotonic() + limit_s

    def serve(self, lane: "Lane", slot: "Slot | None") -> None:
        """Tell it what it serves."""
        self.lane, self.slot, self._limits = lane, slot, lane.limits
        if self.imported:
            self.enter(Phase.REGISTER)
        elif not self.is_spare:  # whose limit is its own, for its start is nobody's fault
            self.enter(Phase.START)
        self.process.send(lane.configuration.message(self.tensors.folders))

    def has_imported(self, since: float) -> None:
        """It has everything that does not depend on what it serves."""
        self.imported = True
        if self.lane is None:
            self.deadline = None
        else:
            self.enter(Phase.REGISTER, since)

    def is_ready(self, since: float) -> None:
        """It can take tasks."""
        self.ready = True
        self.ready_at = since
        self.rest(since)

    def rest(self, since: float) -> None:
        """Nothing is at work: the next task begins its first phase, or no limit holds."""
        self._began_at = since
        if len(self.in_flight) <= self._refill_at:
            self._is_full = False
        if self.in_flight:
            self.enter(Phase.CREATE, since)
        else:
            self.deadline = None
            if self.slot is not None:
                self.leaves_at = time.monotonic() + IDLE_S

    def hand(self, task: Task, job: dict[str, object]) -> None:
        """Give it a task; its process is told at once where it waits for one, else of several together."""
        self.in_flight.append(task)
        self._unsent.append(("job", id(task), job))
        self._is_full = len(self.in_flight) >= self._capacity
        self.leaves_at = None
        if len(self.in_flight) == 1:
            self._began_at = time.monotonic()
            self.enter(Phase.CREATE, self._began_at)
            self.send_off()
        elif len(self._unsent) >= TOGETHER:
            self.send_off()

    def send_off(self) -> None:
        """Tell its process of the tasks that it has been given and not been told of."""
        if self._unsent:
            self.process.send(*self._unsent)
            self._unsent = []

    def send_piece(self, job: int, name: str, offset: int, content: bytes | None) -> None:
        """Give it a piece of a model's file; None for one that is not to be had."""
        if not self.result and self.phase is Phase.CREATE:
            self.enter(Phase.CREATE)
        self.process.send(("model", job, name, offset, content))

    def count(self, after: After, at: float) -> ProcessState:
        """A session is gone: its number, and the memory that is left; enough of either retires the worker.

        Args:
            after: What its process says of the time after it.
            at: When it said so, on the monotonic clock.
        """
        self.sessions += 1
        took_s = at - self._began_at
        self._pace_s += (took_s - self._pace_s) * (PACE_WEIGHT if self._pace_s else 1.0)
        took_ms, processor_ms, rss_mib = after.took_ms, after.processor_ms, after.rss_mib
        used = min(processor_ms / took_ms, 1.0) if took_ms else 1.0
        self._processor += (used - self._processor) * PACE_WEIGHT
        tasks = IN_FLIGHT_S / self._pace_s if self._pace_s > 0.0 else MOST_IN_FLIGHT
        self._capacity = round(min(max(tasks, FEWEST_IN_FLIGHT), MOST_IN_FLIGHT))
        if self.sessions == WARM_UP_SESSIONS:
            self._base_rss_mib = rss_mib
        if self.lane is not None:
            limit = self.lane.renew_after
            grown = 0.0 if rss_mib is None or self._base_rss_mib is None else rss_mib - self._base_rss_mib
            self.retiring |= self.sessions >= limit.sessions or grown > limit.growth_mib
        return ProcessState(
            pid=self.process.pid,
            session=self.sessions,
            took_ms=took_ms,
            processor_ms=processor_ms,
            rss_mib=rss_mib,
        )

    def stop(self) -> None:
        """Ask it to end; a limit holds for that too."""
        self.stopping = True
        self.leaves_at = None
        self.enter(Phase.TEARDOWN)
        self.process.send(("stop",))

    def discard(self) -> None:
        """Kill it; what is in flight is nobody's fault and goes back."""
        self.stopping = True
        self.leaves_at = self.deadline = None
        self.process.kill()

    def break_off(self, problem: str) -> None:
        """Kill it for what it said; its end will be reported as any other."""
        self.broken = True
        self.process.break_off(problem)

    def expire(self) -> None:
        """Kill it at its time limit; its end will be reported as any other."""
        self.hung = Hung(
            phase=self.phase, limit_s=getattr(self._limits, self.phase), printed=self.process.printed()
        )
        self.deadline = None
        self.process.kill()

    def end(self) -> Hung | Died:
        """How it ended, once it has."""
        cause = self.process.ended()
        self.tensors.remove()
        # A child that outlives a dead process can hold its pipe open, so that only the limit shows its end.
        if self.hung is not None and (os.name != "posix" or cause == "SIGKILL"):
            return self.hung
        error = self.process.remote_error()
        return Died(phase=self.phase, cause=cause or error, printed=self.process.printed())


_nbytes = attrgetter("nbytes")

"""A worker: one agent process, the tasks in flight and their largest number, and the time limit."""

import operator
import os
import time
from collections import deque
from typing import Any

import msgspec

from harness.agent.orphans import orphans_text
from harness.core.records.manner import Manner
from harness.core.records.record import ProcessState
from harness.core.records.verdict import Phase
from harness.core.text.errors import one_line
from harness.corpus.case import Case
from harness.engine.processes.launch import is_local
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.messages import After
from harness.engine.processes.process import AgentProcess
from harness.engine.processes.slurm import Waiting
from harness.engine.tasks.configuration import Configuration
from harness.engine.tasks.outcome import Died, Ending, Hung
from harness.engine.tasks.task import Task
from harness.engine.workers.builds_seen import SeenFiles
from harness.engine.workers.device import NO_SLOT, Slot
from harness.engine.workers.in_flight import BYTES_IN_FLIGHT, FEWEST_AT_PLACE, TOGETHER, Pace
from harness.engine.workers.job import piece
from harness.engine.workers.queues import TaskQueue
from harness.engine.workers.watch import LOOKS, Watch, hung
from harness.places.place_state import PlaceState
from harness.plan.file_format import Timeouts

WARM_UP_SESSIONS = 16
"""Sessions after which the growth of memory counts: the first ones fill pools and caches."""

LOOK_S = 5.0
"""Seconds between two checks for a sign of life from a place."""

IDLE_S = 2.0
"""Seconds that a process without work keeps its slot on a device that others may wait for."""

_nbytes = operator.attrgetter("nbytes")


class Worker:
    """The engine's view of one agent process; a spare one until it serves a queue."""

    def __init__(self, number: int, process: AgentProcess, tensors: Tensors | None = None) -> None:
        self.number = number
        self.process = process
        self.tensors = tensors or Tensors()
        self.queue: TaskQueue | None = None
        self.configuration: Configuration | None = None
        """The configuration of its process; that of its queue, except for the place."""
        self.waits: Waiting | None = None
        """Why a scheduler has not started the job of its process yet."""
        self.place: PlaceState | None = None
        """The place where its process is, if its target has places."""
        self.is_local = True
        """Whether its process can read the harness's files."""
        self.look_at: float | None = None
        """Time of the next check for a sign of life; None if its process is on this machine."""
        self._alive_at = time.monotonic()
        self._seen_bytes = 0
        self.slot: Slot = NO_SLOT
        self.imported = False
        self.ready = False
        self.is_spare = False
        """Whether it was started before a queue needed it."""
        self.retiring = False
        self.stopping = False
        self.asked_to_end = False
        """Whether its process was asked to end because it had nothing to do."""
        self.broken = False
        self.in_flight: deque[Task] = deque()
        self.pace = Pace()
        self.result: Ending | None = None
        self.ready_at = 0.0
        self.deadline: float | None = None
        self.leaves_at: float | None = None
        """Time at which it stops for lack of work; None if nothing else needs its slot."""
        self._unsent: list[Any] = []
        """Messages with tasks in flight that have not been sent to the process."""
        self._is_full = False
        """Whether it holds as much as it can; then it gets more once half is done."""
        self._began_at = 0.0
        """When the process began its present task, or finished its last one."""
        self._watch: Watch | None = None
        """The watch over its phase; None until the phase takes long."""
        self._hung: Hung | None = None
        self._sessions = 0
        self._base_rss_mib: float | None = None
        self._limits = Timeouts()
        self.enter(Phase.START)

    @property
    def has_room(self) -> bool:
        """Whether it can take another task."""
        return (
            self.queue is not None
            and self.ready
            and not self.stopping
            and not self.retiring
            and not self._is_full
            and not (self.place is not None and self.place.reason)
            and (self.queue.takes_all or len(self.in_flight) < self.queue.share)
            and self._sessions + len(self.in_flight) < self.queue.renew_after.sessions
            and sum(map(_nbytes, self.in_flight)) < BYTES_IN_FLIGHT
        )

    @property
    def idle(self) -> bool:
        """Whether it has nothing to do."""
        return self.ready and not self.stopping and not self.in_flight

    @property
    def at_rest(self) -> bool:
        """Whether its process neither starts nor works nor ends."""
        return self.idle if self.queue is not None else self.imported

    @property
    def has_tasks_queued(self) -> bool:
        """Whether its queue holds tasks, which an idle worker will get."""
        return self.queue is not None and bool(self.queue.tasks)

    @property
    def takes_processor(self) -> bool:
        """Whether it computes on this machine's processors."""
        return self.queue is not None and self.is_local and self.slot is NO_SLOT

    @property
    def declines(self) -> dict[str, str]:
        """What its agent does not do -> why."""
        greeting = self.process.greeting
        return {} if greeting is None else greeting.declines

    def enter(self, phase: Phase, since: float | None = None) -> None:
        """Begin a phase and its time limit.

        ``since`` is on the monotonic clock, by default now: the arrival of the message, which the engine may
        read later.
        """
        self.phase = phase
        self._entered_at = time.monotonic() if since is None else since
        self._watch = None
        self.deadline = self._entered_at + getattr(self._limits, phase) / LOOKS

    def begin_spare(self, limit_s: float) -> None:
        """Become a spare, which has so many seconds to start."""
        self.is_spare = True
        self.deadline = time.monotonic() + limit_s

    def serve(
        self,
        queue: TaskQueue,
        slot: Slot,
        config: Configuration | None = None,
        place: PlaceState | None = None,
        digests: SeenFiles | None = None,
    ) -> None:
        """Send its process the configuration of a queue; at a place, ``config`` instead.

        If it gets the known ``digests``, its process reports the digests of the files that it loads.
        """
        config = self.configuration = config or queue.configuration
        self.queue, self.slot, self._limits = queue, slot, queue.limits
        self.place, self.is_local = place, is_local(config.runtime)
        if place is not None:
            self.pace.fewest = FEWEST_AT_PLACE
        if place is not None and not self.is_local:
            self.look_at = time.monotonic() + LOOK_S
        if self.imported:
            self.enter(Phase.REGISTER)
        elif not self.is_spare:  # a spare keeps its own limit: the target is not to blame for its start
            self.enter(Phase.START)
        known = {} if digests is None else {"digests": digests}
        self.process.send(("config", {**config.message(self.tensors.folders), **known}))

    def look_for_life(self, now: float, silent_s: float) -> None:
        """End a process whose place sends no more signs of life, like one with a lost connection."""
        if self.look_at is None or now < self.look_at or self.stopping:
            return
        self.look_at = now + LOOK_S
        seen = self.process.signs_of_life()
        if seen != self._seen_bytes:
            self._seen_bytes, self._alive_at = seen, now
        elif seen and now - self._alive_at > silent_s:
            self.look_at = None
            self.process.lose(f"no sign of life from it for {now - self._alive_at:.0f} s")

    def on_queued(self, waits: Waiting | None, at: float) -> None:
        """Note that the job of its process waits in a scheduler's queue; None: it no longer waits.

        Waiting has its own limit, and the limit of the start begins after it.
        """
        if waits is not None and self.waits is None:
            self.deadline = at + self._limits.queue
        elif waits is None and not self.imported:
            self.enter(Phase.START, at)
        self.waits = waits

    def on_imported(self, at: float) -> None:
        """Note that its process has imported onnxruntime."""
        self.imported = True
        self.waits = None
        if self.queue is None:
            self.deadline = None
        else:
            self.enter(Phase.REGISTER, at)

    def on_ready(self, at: float) -> None:
        """Note that its process can take tasks."""
        self.ready = True
        self.ready_at = at
        self.begin_next(at)

    def begin_next(self, at: float) -> None:
        """Begin the limit of the next task in flight, if there is one."""
        self._began_at = at
        if len(self.in_flight) <= self.pace.capacity // 2:
            self._is_full = False
        if self.in_flight:
            self.enter(Phase.CREATE, at)
        else:
            self.deadline = None
            if self.slot is not NO_SLOT:
                self.leaves_at = time.monotonic() + IDLE_S

    def give(self, task: Task, job: dict[str, object]) -> None:
        """Give it a task; an idle process gets it at once, a busy one gets several in one message."""
        self.in_flight.append(task)
        self._unsent.append(("job", id(task), job))
        self._is_full = len(self.in_flight) >= self.pace.capacity
        self.leaves_at = None
        if len(self.in_flight) == 1:
            self._began_at = time.monotonic()
            self.enter(Phase.CREATE, self._began_at)
            self.flush()
        elif len(self._unsent) >= TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Send the tasks that its process does not have yet."""
        if self._unsent:
            self.process.send(*self._unsent)
            self._unsent = []

    def send_piece(self, job: int, name: str, offset: int, case: object) -> None:
        """Send a piece of a model's file, read when its turn comes; None if it cannot be read.

        The limit of the phase restarts.
        """
        if not self.result and self.phase is Phase.CREATE:
            self.enter(Phase.CREATE)
        self.process.send(
            lambda: (
                "model",
                job,
                name,
                offset,
                piece(case, name, offset) if isinstance(case, Case) else None,
            )
        )

    def count(self, after: After, at: float) -> ProcessState:
        """Count a session; return its number and the memory left.

        Reaching a limit for either retires the worker.
        """
        self._sessions += 1
        rss_mib = after.rss_mib
        if self._sessions == WARM_UP_SESSIONS:
            self._base_rss_mib = rss_mib
        ends_soon = False
        if self.queue is not None:
            limit = self.queue.renew_after
            grown = 0.0 if rss_mib is None or self._base_rss_mib is None else rss_mib - self._base_rss_mib
            self.retiring |= self._sessions >= limit.sessions or grown > limit.growth_mib
            ends_soon = grown > limit.growth_mib / 2
        self.pace.add(at - self._began_at, ends_soon=ends_soon)
        return ProcessState(
            pid=self.process.pid,
            session=self._sessions,
            took_ms=after.took_ms,
            processor_ms=after.processor_ms,
            rss_mib=rss_mib,
            threads=after.threads,
            descriptors=after.descriptors,
            manners=tuple(
                Manner(kind=one_line(kind, 40), phase=one_line(phase, 40), text=one_line(text, 300))
                for kind, phase, text in after.manners
            ),
        )

    @property
    def teardown_s(self) -> float:
        """Seconds in which its process must end after it is asked to."""
        return self._limits.teardown

    @property
    def timed_out(self) -> bool:
        """Whether its process was killed at a time limit."""
        return self._hung is not None

    def stop(self) -> None:
        """Ask its process to end, within a limit."""
        self.stopping = self.asked_to_end = True
        self.leaves_at = None
        self.enter(Phase.TEARDOWN)
        self.process.stop(self.teardown_s)

    def discard(self) -> None:
        """Kill its process; the tasks in flight go back to the queue."""
        self.stopping = True
        self.leaves_at = self.deadline = None
        self.process.kill()

    def abort(self, problem: str) -> None:
        """Kill its process because of its message, which becomes the outcome of the present task."""
        self.broken = True
        self.process.abort(problem)

    def expire(self, now: float) -> None:
        """Check its process, and kill it at its time limit, which becomes the outcome of the present task.

        The limit of a phase grows with the time that other programs take from the process.
        """
        limit_s = self._limits.queue if self.waits else getattr(self._limits, self.phase)
        if self.waits is None and not (self.is_spare and self.phase is Phase.START):
            if self._watch is None:
                alone, small = (self.queue.alone, self.queue.is_small) if self.queue else (False, False)
                self._watch = Watch(
                    limit_s=limit_s, began=self._entered_at, alone=alone, small=small, is_here=self.is_local
                )
            self.deadline = self._watch.look(now, self.process.work())
            if self.deadline is not None:
                return
        watch = None if self.waits else self._watch
        self._hung = hung(self.phase, limit_s, watch, now, self.process.printed())
        self.deadline = None
        self.process.kill()

    def wait(self) -> Hung | Died:
        """Return how its process ended."""
        cause = self.process.wait()
        left = orphans_text(self.process.left)
        self.tensors.remove()
        # On Windows a child that outlives a dead process can hold its pipe open: the limit reveals the end.
        if self._hung is not None and (os.name != "posix" or cause == "SIGKILL"):
            return msgspec.structs.replace(self._hung, left=left)
        printed = self.process.printed()
        return Died(phase=self.phase, cause=cause or self.process.error, printed=printed, left=left)

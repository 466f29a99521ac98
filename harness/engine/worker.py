"""A worker: one agent process, the tasks in its hands, and the time limit it is under."""

import os
import time
from collections import deque

import msgspec

from harness.core.cell import Cell
from harness.core.verdict import Phase
from harness.engine.outcome import Died, Hung, Outcome
from harness.engine.process import AgentProcess
from harness.plan.file_format import Timeouts
from harness.plan.target import Runtime

IN_HAND = 4
"""Tasks that a worker holds: one at work, the others waiting, so that it never waits for the harness.

With two in hand ONNX's operator tests take a tenth longer; eight gain nothing over four."""


class Task(msgspec.Struct, kw_only=True):
    """One model to run on one configuration.

    Attributes:
        suite: The model's suite.
        model: The model.
        cell: Whose result this is; None where the CPU provider of ``runtime`` is asked for its answer.
        runtime: Who is asked; of no meaning for a cell.
        attempt: Counts from 1.
        started: UTC time of the handing over, ISO 8601.
    """

    suite: str
    model: str
    cell: Cell | None = None
    runtime: Runtime = Runtime()
    attempt: int = 1
    started: str = ""


class Worker:
    """The engine's view of one agent process.

    Args:
        number: Unique within the engine; also the id of messages' source.
        process: The process, not opened yet.
        limits: Time limits of the phases.
    """

    def __init__(self, number: int, process: AgentProcess, limits: Timeouts) -> None:
        self.number = number
        self.process = process
        self.ready = False
        self.stopping = False
        self.hands: deque[Task] = deque()
        self.result: Outcome | None = None
        self.hung: Hung | None = None
        self.phase = Phase.START
        self.deadline: float | None = None
        self._limits = limits
        self.enter(Phase.START)

    @property
    def has_room(self) -> bool:
        """Whether it can take another task."""
        return self.ready and not self.stopping and len(self.hands) < IN_HAND

    def enter(self, phase: Phase) -> None:
        """A phase begins, and its time limit with it."""
        self.phase = phase
        self.deadline = time.monotonic() + getattr(self._limits, phase)

    def rest(self) -> None:
        """Nothing is at work: the next task begins its first phase, or no limit holds."""
        if self.hands:
            self.enter(Phase.CREATE)
        else:
            self.deadline = None

    def hand(self, task: Task, job: dict[str, object]) -> None:
        """Give it a task."""
        self.hands.append(task)
        if len(self.hands) == 1:
            self.enter(Phase.CREATE)
        self.process.send(("job", id(task), job))

    def stop(self) -> None:
        """Ask it to end; a limit holds for that too."""
        self.stopping = True
        self.enter(Phase.TEARDOWN)
        self.process.send(("stop",))

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
        # A child that outlives a dead process can hold its pipe open, so that only the limit shows its end.
        if self.hung is not None and (os.name != "posix" or cause == "SIGKILL"):
            return self.hung
        error = self.process.remote_error()
        return Died(phase=self.phase, cause=cause or error, printed=self.process.printed())

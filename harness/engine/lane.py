"""A lane: the queue of one configuration, and the workers that serve it."""

from collections import deque

from harness.engine.job import Configuration
from harness.engine.outcome import Rejected, Unavailable
from harness.engine.worker import Task, Worker
from harness.plan.file_format import Timeouts


class Lane:
    """Tasks that share one configuration.

    Args:
        name: For people: the target, or the runtime whose CPU provider answers here.
        configuration: What its processes serve.
        limits: Time limits of the phases.
        width: Processes at once.
        is_reference: Whether the CPU provider gives its answers here; such a lane goes first.
    """

    START_ATTEMPTS = 2
    """Processes in a row that may die before they are ready: one kill from outside says nothing."""

    def __init__(
        self, name: str, configuration: Configuration, limits: Timeouts, width: int, *, is_reference: bool
    ) -> None:
        self.name = name
        self.configuration = configuration
        self.limits = limits
        self.width = width
        self.is_reference = is_reference
        self.queue: deque[Task] = deque()
        self.workers: list[Worker] = []
        self.failed_starts = 0
        self.verdict: Unavailable | Rejected | None = None
        """What holds for every task once the configuration has turned out to be unusable."""

    @property
    def wants_worker(self) -> bool:
        """Whether another process would find work.

        The first one goes alone: it shows whether the configuration can be used at all.
        """
        alive = [worker for worker in self.workers if not worker.stopping]
        starting = sum(not worker.ready for worker in alive)
        return (
            self.verdict is None
            and len(alive) < self.width
            and len(self.queue) > starting
            and (not alive or starting < len(alive))
        )

    @property
    def idle_worker(self) -> Worker | None:
        """A worker that could go, because this lane has nothing for it."""
        if self.queue:
            return None
        idle = (
            worker for worker in self.workers if worker.ready and not worker.stopping and not worker.hands
        )
        return next(idle, None)

"""A lane: the queue of one configuration, and the workers that serve it."""

from collections import deque

from harness.engine.job import Configuration, is_local
from harness.engine.outcome import Rejected, Unavailable
from harness.engine.task import Task
from harness.plan.file_format import RenewAfter, Timeouts


class Lane:
    """Tasks that share one configuration.

    Args:
        name: For people: the target, or the runtime whose CPU provider answers here.
        configuration: What its processes serve.
        limits: Time limits of the phases.
        width: Processes at once.
        is_reference: Whether the CPU provider gives its answers here; such a lane goes first.
        device: What its sessions occupy; None where nobody is in the way.
        alone: Whether nothing else may run meanwhile.
        renew_after: When a process is replaced.
    """

    START_ATTEMPTS = 2
    """Processes in a row that may die before they are ready: one kill from outside says nothing."""

    def __init__(
        self,
        name: str,
        configuration: Configuration,
        limits: Timeouts,
        width: int = 1,
        *,
        is_reference: bool = False,
        device: str | None = None,
        alone: bool = False,
        renew_after: RenewAfter | None = None,
    ) -> None:
        self.name = name
        self.configuration = configuration
        self.limits = limits
        self.width = width
        self.slots = width
        """Sessions that the device takes at once."""
        self.is_reference = is_reference
        self.device = device
        self.alone = alone
        self.renew_after = renew_after or RenewAfter()
        self.queue: deque[Task] = deque()
        self.expected_ms = 0.0
        """What the tasks took the last time; those that never ran count nothing."""
        self.done_ms = 0.0
        """What of that they are through with."""
        self.failed_starts = 0
        self.losses = 0
        """Processes that died at work."""
        self.verdict: Unavailable | Rejected | None = None
        """What holds for every task once the configuration has turned out to be unusable."""

    @property
    def shares_processors(self) -> bool:
        """Whether its processes run on this machine, beside those of other lanes."""
        return not (self.is_reference or self.alone) and is_local(self.configuration.runtime)

    @property
    def left(self) -> float:
        """How much of its work is left, from 1 to 0, where it is known what its tasks take."""
        return 1.0 - self.done_ms / self.expected_ms

    def wants_worker(self, alive: int, starting: int) -> bool:
        """Whether another process would find work.

        The first one goes alone: it shows whether the configuration can be used at all.

        Args:
            alive: Processes that serve it and have not been told to stop.
            starting: Those of them that are not ready yet.
        """
        return (
            self.verdict is None
            and alive < self.width
            and len(self.queue) > starting
            and (not alive or starting < alive)
        )

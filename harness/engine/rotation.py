"""Rotation: which queues go on and which pause, if more are at work than there are processors.

Side by side their processes would alternate many times a second, and find the processors' caches full of
other data each time.
"""

from collections.abc import Iterable, Sequence

from harness.engine.queues import TaskQueue
from harness.engine.worker import Worker

TURN = 0.3
"""Length of a turn, as a part of what a queue has left. With 0.04 four providers on two processors switch so
often that nothing is gained: a queue that is to pause first ends what its processes hold."""


class Rotation:
    """Lets queues take turns, so that all of them end at about the same time."""

    def __init__(self, processors: int) -> None:
        self._processors = processors
        self._pausing: set[TaskQueue] = set()

    def pausing(self, queues: Iterable[tuple[TaskQueue, Sequence[Worker]]]) -> set[TaskQueue]:
        """Return the queues that get no tasks for now: the ones that have got furthest.

        If the duration of one of them is unknown, all go on. A queue whose processes wait for something else,
        such as an accelerator, neither pauses nor counts. One that holds no task and was not paused is new,
        or waits for an answer of the CPU provider.
        """
        paused, self._pausing = self._pausing, set()
        at_work = []
        busy: dict[TaskQueue, int] = {}
        for queue, workers in queues:
            busy[queue] = sum(bool(worker.in_flight) for worker in workers)
            shares_processors = queue.is_local and not (queue.is_reference or queue.alone)
            computes = shares_processors and all(worker.pace.is_busy for worker in workers)
            if computes and queue.tasks and (busy[queue] or queue in paused):
                at_work.append(queue)
        if all(queue.expected_ms for queue in at_work):
            at_work.sort(key=lambda queue: _left(queue) * (1.0 + TURN * (queue not in paused)), reverse=True)
            free = self._processors
            for queue in at_work:
                if free <= 0:
                    self._pausing.add(queue)
                free -= max(busy[queue], 1)
        return self._pausing


def _left(queue: TaskQueue) -> float:
    """Return how much of its work a queue has left, from 1 to 0."""
    return 1.0 - queue.done_ms / queue.expected_ms

"""The rotation: which lanes go on and which pause, where more are at work than there are processors.

Side by side they would take turns as well, but many in a second, and find the processors' caches full of what
others need each time.
"""

from collections.abc import Iterable, Sequence

from harness.engine.lane import Lane
from harness.engine.worker import Worker

TURN = 0.3
"""A turn is so much of what a lane has left. With 0.04 four providers on two processors switch so often that
nothing is won, for a lane that is to pause first gets through what its processes have in hand."""


class Rotation:
    """Has lanes take turns so that all of them come to their end at about the same time.

    Args:
        processors: Processes that compute at once.
    """

    def __init__(self, processors: int) -> None:
        self._processors = processors
        self._pausing: set[Lane] = set()

    def pausing(self, lanes: Iterable[tuple[Lane, Sequence[Worker]]]) -> set[Lane]:
        """Those of the lanes that get no tasks for now: the ones that have got furthest.

        Where nobody knows how long one of them takes, all go on. A lane that rather waits for something else,
        such as an accelerator, is in nobody's way. One that has nothing in hand and was not made to pause is
        new, or waits for an answer of the CPU provider.
        """
        paused, self._pausing = self._pausing, set()
        at_work = []
        busy: dict[Lane, int] = {}
        for lane, workers in lanes:
            busy[lane] = sum(bool(worker.in_flight) for worker in workers)
            computes = lane.shares_processors and all(worker.is_busy for worker in workers)
            if computes and lane.queue and (busy[lane] or lane in paused):
                at_work.append(lane)
        if all(lane.expected_ms for lane in at_work):
            at_work.sort(key=lambda lane: lane.left * (1.0 if lane in paused else 1.0 + TURN), reverse=True)
            free = self._processors
            for lane in at_work:
                if free <= 0:
                    self._pausing.add(lane)
                free -= max(busy[lane], 1)
        return self._pausing

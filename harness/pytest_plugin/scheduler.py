"""A scheduler for xdist: each worker gets a contiguous share of the cells from the start.

The cells of a target are adjacent in a plan and share processes, so a share should be contiguous. A worker
with a known share lets its engine run ahead, although it gets only a few items at a time.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

import pytest

SHARE = "ep_harness_share"
"""Key of a worker's input: its index among the workers, and their number."""

ITEMS_TOGETHER = "ep_harness_together"
"""Key of a worker's input: whether the first worker gets all items."""

WINDOW = 4
"""Items that a worker has at once; it reports them even after a stop (``-x``)."""


class _Node(Protocol):
    """The used part of ``xdist.workermanage.WorkerController``."""

    gateway: Any
    workerinput: dict[str, Any]
    shutting_down: bool

    def send_runtest_some(self, indices: Sequence[int]) -> None: ...

    def shutdown(self) -> None: ...


def worker_share(total: int, index: int, count: int, *, together: bool = False) -> range:
    """Return the items of one of several workers: contiguous; the sizes differ by at most one.

    With ``together`` the first worker gets all.
    """
    if together:
        return range(0 if index else total)
    return range(total * index // count, total * (index + 1) // count)


class ShareScheduling:
    """The scheduler; its work is linear in the number of items.

    ``together`` gives all items to one worker, because its engine uses machines that no other may use
    meanwhile. Items only wait for the engine, so more workers would not be faster.

    Attributes:
        config: pytest's, as xdist's own schedulers have it; pytest-rerunfailures reads it.
    """

    def __init__(self, config: pytest.Config, *, together: bool = False) -> None:
        self.config = config
        self._together = together
        self._count = 0
        self._collections: dict[_Node, Sequence[str]] = {}
        self._queues: dict[_Node, deque[int]] = {}
        self._sent: dict[_Node, deque[int]] = {}
        self._orphans: deque[int] = deque()
        self._ids: Sequence[str] | None = None

    @property
    def nodes(self) -> list[_Node]:
        """Running workers."""
        return list(self._sent)

    @property
    def collection_is_completed(self) -> bool:
        """Whether all started workers have collected."""
        return len(self._collections) >= max(1, self._count)

    @property
    def tests_finished(self) -> bool:
        """Whether each worker has its last item, which it ends only when ``shutdown`` announces the end."""
        waiting = self._orphans or any(self._queues.values())
        return (
            self.collection_is_completed
            and not waiting
            and all(len(sent) <= 1 for sent in self._sent.values())
        )

    @property
    def has_pending(self) -> bool:
        """Whether any report is missing."""
        return bool(self._orphans) or any(self._queues.values()) or any(self._sent.values())

    def add_node(self, node: _Node) -> None:
        """Add a started worker."""
        self._sent[node], self._queues[node] = deque(), deque()
        self._count = max(self._count, node.workerinput.get(SHARE, (0, 0))[1])

    def add_node_collection(self, node: _Node, collection: Sequence[str]) -> None:
        """Note the items that a worker has collected."""
        self._collections[node] = collection

    def schedule(self) -> None:
        """Spread the items, once; later give items to workers that replace dead ones."""
        if self._ids is None:
            self._ids = next(iter(self._collections.values()))
            if not self._all_the_same():
                self._ids = ()
            self._spread(len(self._ids))
        for node in self.nodes:
            self._fill(node)

    def mark_test_complete(self, node: _Node, item_index: int, duration: float = 0) -> None:  # noqa: ARG002
        """Note that a worker has reported an item."""
        self._sent[node].remove(item_index)
        self._fill(node)

    def mark_test_pending(self, item: str) -> None:
        """Run an item once more."""
        self._orphans.append((self._ids or ()).index(item))
        for node in self.nodes:
            self._fill(node)

    def remove_pending_tests_from_node(self, node: _Node, indices: Sequence[int]) -> None:
        """Refuse: this scheduler never moves sent items.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError

    def remove_node(self, node: _Node) -> str | None:
        """Remove a dead worker: its current item is lost, its others go to the other workers."""
        sent, queue = self._sent.pop(node), self._queues.pop(node)
        lost = sent.popleft() if sent else None
        self._orphans += (*sent, *queue)
        for other in self.nodes:
            self._fill(other)
        return None if lost is None or self._ids is None else self._ids[lost]

    def _spread(self, total: int) -> None:
        numbers = range(self._count)
        unclaimed = {
            index: worker_share(total, index, self._count, together=self._together) for index in numbers
        }
        for node, queue in self._queues.items():
            index, _ = node.workerinput.get(SHARE, (None, 0))
            queue.extend(unclaimed.pop(index, ()))
        for indices in unclaimed.values():
            self._orphans += indices

    def _fill(self, node: _Node) -> None:
        if node.shutting_down or self._ids is None:
            return
        sent = self._sent[node]
        queue = self._queues[node] or self._orphans
        fresh = [queue.popleft() for _ in range(min(len(queue), WINDOW - len(sent)))]
        if fresh:
            sent += fresh
            node.send_runtest_some(fresh)
        if not self._queues[node] and not self._orphans:
            node.shutdown()

    def _all_the_same(self) -> bool:
        (first, ids), *others = self._collections.items()
        different = [node for node, its_ids in others if its_ids != ids]
        for node in different:
            text = f"{node.gateway.id} collected other cells than {first.gateway.id}; did a folder change?"
            report = pytest.CollectReport(node.gateway.id, "failed", longrepr=text, result=[])
            self.config.hook.pytest_collectreport(report=report)
        return not different


class Shares:
    """The hooks of xdist's controller; ``together`` as in ``ShareScheduling``."""

    def __init__(self, *, together: bool = False) -> None:
        self._together = together
        self._started = 0

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: _Node) -> None:
        """Send a worker its share; a worker that replaces a dead one has none."""
        count = node.workerinput["workercount"]
        if self._started < count:
            node.workerinput[SHARE] = (self._started, count)
            node.workerinput[ITEMS_TOGETHER] = self._together
        self._started += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config) -> ShareScheduling:
        """Return the scheduler."""
        return ShareScheduling(config, together=self._together)

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.pytest_plugin.scheduler import SHARE, WINDOW, Shares, ShareScheduling, worker_share


class FakeNode:
    """A worker that reports its items in order, as xdist's does."""

    def __init__(self, name: str, count: int) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.workerinput: dict[str, Any] = {"workercount": count}
        self.shutting_down = False
        self.queue: list[int] = []

    def send_runtest_some(self, indices: Any) -> None:
        assert not self.shutting_down
        assert len(indices) <= WINDOW
        self.queue += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    @property
    def reports(self) -> bool:
        """Whether it can report: it keeps its last item until another one or the end arrives."""
        return len(self.queue) > 1 or (bool(self.queue) and self.shutting_down)


class Controller:
    """The part of xdist's controller that uses a scheduler."""

    def __init__(self, ids: list[str], count: int) -> None:
        self.reported: list[pytest.CollectReport] = []
        hook = SimpleNamespace(pytest_collectreport=self.note)
        self.hooks = Shares()
        config: Any = SimpleNamespace(hook=hook)
        self.scheduler = self.hooks.pytest_xdist_make_scheduler(config)
        self.ids = ids
        self.count = count
        self.started = 0
        self.nodes = [self.start() for _ in range(count)]

    def note(self, report: pytest.CollectReport) -> None:
        self.reported.append(report)

    def start(self) -> FakeNode:
        node = FakeNode(f"gw{self.started}", self.count)
        self.started += 1
        self.hooks.pytest_configure_node(node)
        self.scheduler.add_node(node)
        return node

    def collected(self, node: FakeNode, ids: list[str] | None = None) -> None:
        self.scheduler.add_node_collection(node, self.ids if ids is None else ids)
        if self.scheduler.collection_is_completed:
            self.scheduler.schedule()

    def report(self, node: FakeNode) -> int:
        index = node.queue.pop(0)
        self.scheduler.mark_test_complete(node, index)
        return index


@given(st.integers(0, 200), st.integers(1, 9))
def test_shares_are_contiguous_even_and_whole(total: int, count: int) -> None:
    shares = [worker_share(total, index, count) for index in range(count)]
    assert [index for part in shares for index in part] == list(range(total))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(st.data(), st.integers(0, 60), st.integers(1, 4))
def test_every_item_runs_once_and_a_dead_worker_costs_one(
    data: st.DataObject, total: int, count: int
) -> None:
    controller = Controller([f"m.toml::s/{number}[t]" for number in range(total)], count)
    for node in controller.nodes:
        controller.collected(node)
    done: list[int] = []
    lost: list[str] = []
    alive = list(controller.nodes)
    for _ in range(10 * total):
        able = [node for node in alive if node.reports]
        if not able:
            break
        node = data.draw(st.sampled_from(able))
        if len(lost) < 2 and data.draw(st.integers(0, 9)) == 0:
            alive.remove(node)
            crashed = controller.scheduler.remove_node(node)
            assert crashed == controller.ids[node.queue[0]]
            lost.append(crashed)
            successor = controller.start()
            alive.append(successor)
            controller.collected(successor)
        else:
            done.append(controller.report(node))
    assert sorted([*done, *map(controller.ids.index, lost)]) == list(range(total))
    assert controller.scheduler.tests_finished
    assert not controller.scheduler.has_pending
    assert all(node.shutting_down for node in alive)


def test_each_worker_gets_its_announced_share() -> None:
    controller = Controller(list("abcdefghijklmnopqrst"), 2)
    first, second = controller.nodes
    assert [node.workerinput[SHARE] for node in controller.nodes] == [(0, 2), (1, 2)]
    # Shares go by index, whichever worker collects first.
    controller.collected(second)
    assert not controller.scheduler.collection_is_completed
    controller.collected(first)
    assert (first.queue, second.queue) == ([0, 1, 2, 3], [10, 11, 12, 13])
    assert [controller.report(first) for _ in range(2)] == [0, 1]
    assert first.queue == [2, 3, 4, 5], "a worker gets a few items at a time"


def test_a_successor_has_no_share() -> None:
    controller = Controller(list("abcd"), 1)
    assert SHARE not in controller.start().workerinput


def test_workers_that_found_other_cells_are_named() -> None:
    controller = Controller(list("abcd"), 2)
    first, second = controller.nodes
    controller.collected(first)
    controller.collected(second, list("abc"))
    (report,) = controller.reported
    assert report.longrepr == "gw1 collected other cells than gw0; did a folder change?"
    assert (first.queue, second.queue) == ([], [])
    assert first.shutting_down
    assert second.shutting_down
    assert controller.scheduler.tests_finished


def test_an_item_can_be_run_once_more() -> None:
    controller = Controller(list("ab"), 1)
    (node,) = controller.nodes
    node.shutdown = lambda: None  # type: ignore[method-assign]  # one that still listens
    controller.collected(node)
    while node.queue:
        controller.report(node)
    controller.scheduler.mark_test_pending("b")
    assert node.queue == [1]


def test_nothing_is_ever_stolen() -> None:
    config: Any = None
    node: Any = None
    with pytest.raises(NotImplementedError):
        ShareScheduling(config).remove_pending_tests_from_node(node, [1])

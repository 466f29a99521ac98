"""What a worker's process says, and whether that can wait."""

import time
from types import SimpleNamespace
from typing import Any

import pytest

from harness.core.verdict import Phase
from harness.engine.process import ENDED
from harness.engine.worker import IN_HAND, PATIENCE_S, REFILL_AT, Task, Worker
from harness.plan.file_format import Timeouts

DONE = ("done", 1, {"teardown_ms": 0.5, "rss_mib": None})


def worker(hands: int) -> Worker:
    made = Worker(1, SimpleNamespace(pid=7))  # type: ignore[arg-type]  # nobody talks to it
    made.hands.extend(Task(suite="s", model=str(number)) for number in range(hands))
    return made


def test_what_is_done_presses_once_more_can_be_given() -> None:
    busy = worker(IN_HAND)
    pressing = [busy.presses(DONE) for _ in range(IN_HAND)]
    assert pressing == [left <= REFILL_AT for left in reversed(range(IN_HAND))]


def test_a_limit_holds_from_when_the_process_said_so() -> None:
    busy = worker(2)
    busy.enter(Phase.RUN, 100.0)
    assert (busy.phase, busy.deadline) == (Phase.RUN, 100.0 + Timeouts().run)
    busy.rest(200.0)
    assert (busy.phase, busy.deadline) == (Phase.CREATE, 200.0 + Timeouts().create)


def test_what_the_engine_has_taken_note_of_counts_once() -> None:
    busy = worker(REFILL_AT + 3)
    assert not busy.presses(DONE)
    busy.hands.popleft()
    busy.count(DONE[2])
    assert not busy.presses(DONE)
    assert busy.presses(DONE)


@pytest.mark.parametrize("message", [("phase", 1, "run"), ("result", 1, {})])
def test_what_is_said_on_the_way_never_presses(message: Any) -> None:
    assert not worker(1).presses(message)


@pytest.mark.parametrize(
    "message", [ENDED, ("imported",), ("ready", {}), ("need", 1, "m", 0), (), ([],), ({}, 1), None, 7, "done"]
)
def test_all_else_presses_whatever_it_is(message: Any) -> None:
    assert worker(IN_HAND).presses(message)


def test_messages_may_wait_while_a_worker_is_not_near_its_end_and_slow() -> None:
    busy = worker(IN_HAND)
    busy.is_ready(time.monotonic() - 8.0)
    assert busy.patience_s() == 0.0  # nobody knows its pace
    busy.presses(DONE)
    assert busy.patience_s() == PATIENCE_S
    for _ in range(IN_HAND - REFILL_AT - 1):
        assert busy.patience_s() > 0.0
        busy.presses(DONE)
    assert busy.patience_s() == 0.0


def test_of_a_fast_worker_messages_wait_for_some_tasks_at_most() -> None:
    busy = worker(IN_HAND)
    busy.is_ready(time.monotonic() - 0.002)
    busy.presses(DONE)
    assert 0.0 < busy.patience_s() < PATIENCE_S

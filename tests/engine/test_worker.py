"""What a worker's process says, and whether that can wait."""

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from harness.core.verdict import Phase
from harness.engine.messages import After
from harness.engine.process import ENDED
from harness.engine.worker import (
    FEWEST_IN_HAND,
    FIRST_IN_HAND,
    MOST_IN_HAND,
    PATIENCE_S,
    Task,
    Worker,
)
from harness.plan.file_format import RenewAfter, Timeouts

AFTER = After(took_ms=2.0, teardown_ms=0.5, processor_ms=2.0)
DONE = ("done", 1, msgspec.to_builtins(AFTER))


def worker(hands: int) -> Worker:
    made = Worker(1, SimpleNamespace(pid=7))  # type: ignore[arg-type]  # nobody talks to it
    made.hands.extend(Task(suite="s", model=str(number)) for number in range(hands))
    return made


def at_pace(hands: int, pace_s: float) -> Worker:
    """One that has been through with some tasks, each of which took so long."""
    made = worker(hands)
    for number in range(20):
        made.rest(number * pace_s)
        made.presses(DONE)
        made.count(AFTER, (number + 1) * pace_s)
    return made


def room(busy: Worker) -> int:
    """How many tasks it takes."""
    busy.ready, busy.lane = True, SimpleNamespace(renew_after=RenewAfter())  # type: ignore[assignment]
    busy.process.send = lambda *_: None  # type: ignore[method-assign]
    while busy.has_room:
        busy.hand(Task(suite="s", model="m"), {})
    return len(busy.hands)


@pytest.mark.parametrize(
    ("pace_s", "tasks"),
    [(1e-9, MOST_IN_HAND), (0.001, MOST_IN_HAND), (0.02, 25), (0.5, FEWEST_IN_HAND), (60.0, FEWEST_IN_HAND)],
)
def test_a_worker_holds_what_keeps_it_busy_for_some_time(pace_s: float, tasks: int) -> None:
    assert room(at_pace(0, pace_s)) == tasks


def test_a_worker_whose_pace_changes_holds_more_or_less() -> None:
    busy = at_pace(0, 0.001)
    for number in range(20):
        busy.rest(100.0 + number)
        busy.count(AFTER, 101.0 + number)
    assert room(busy) == FEWEST_IN_HAND


@pytest.mark.parametrize(
    ("processor_ms", "is_busy"),
    [
        ([0.0, 0.0], True),
        ([100.0] * 20, False),
        ([400.0] * 20, True),
        ([3000.0] * 20, True),
        ([3000.0] * 9 + [0.0] * 9, False),
    ],
)
def test_a_worker_is_busy_that_computes_rather_than_waits(
    processor_ms: list[float], *, is_busy: bool
) -> None:
    """Each task takes a second; what its process takes in several threads counts as one processor."""
    one = worker(0)
    for number, used_ms in enumerate(processor_ms):
        one.rest(float(number))
        one.count(After(took_ms=1000.0, teardown_ms=0.5, processor_ms=used_ms), number + 1.0)
    assert one.is_busy == is_busy


def test_what_took_no_time_says_nothing_of_processors() -> None:
    one = worker(0)
    for number in range(20):
        one.count(After(took_ms=0, teardown_ms=0.5, processor_ms=0), number + 1.0)
    assert one.is_busy


def test_what_is_done_presses_once_more_can_be_given() -> None:
    busy = worker(FIRST_IN_HAND)
    pressing = [busy.presses(DONE) for _ in range(FIRST_IN_HAND)]
    assert pressing == [left <= FIRST_IN_HAND // 2 for left in reversed(range(FIRST_IN_HAND))]


def test_a_limit_holds_from_when_the_process_said_so() -> None:
    busy = worker(2)
    busy.enter(Phase.RUN, 100.0)
    assert (busy.phase, busy.deadline) == (Phase.RUN, 100.0 + Timeouts().run)
    busy.rest(200.0)
    assert (busy.phase, busy.deadline) == (Phase.CREATE, 200.0 + Timeouts().create)


def test_what_the_engine_has_taken_note_of_counts_once() -> None:
    busy = at_pace(MOST_IN_HAND, 0.001)
    for _ in range(MOST_IN_HAND // 2 - 2):
        assert not busy.presses(DONE)
    busy.hands.popleft()
    busy.count(AFTER, 0.021)
    assert not busy.presses(DONE)
    assert busy.presses(DONE)


@pytest.mark.parametrize("message", [("phase", 1, "run"), ("result", 1, {})])
def test_what_is_said_on_the_way_never_presses(message: Any) -> None:
    assert not worker(1).presses(message)


@pytest.mark.parametrize(
    "message", [ENDED, ("imported",), ("ready", {}), ("need", 1, "m", 0), (), ([],), ({}, 1), None, 7, "done"]
)
def test_all_else_presses_whatever_it_is(message: Any) -> None:
    assert worker(MOST_IN_HAND).presses(message)


def test_messages_may_wait_while_a_worker_is_not_near_its_end_and_slow() -> None:
    assert worker(FIRST_IN_HAND).patience_s() == 0.0  # nobody knows its pace
    busy = at_pace(FEWEST_IN_HAND, 8.0)
    assert busy.patience_s() == PATIENCE_S
    for _ in range(FEWEST_IN_HAND // 2):
        assert busy.patience_s() > 0.0
        busy.presses(DONE)
    assert busy.patience_s() == 0.0


def test_of_a_fast_worker_messages_wait_for_some_tasks_at_most() -> None:
    assert 0.0 < at_pace(MOST_IN_HAND, 0.001).patience_s() < PATIENCE_S

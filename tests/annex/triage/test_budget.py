"""Time that is shared among failures."""

import threading
import time

import pytest

from harness.annex.triage.time_budget import RESERVE, TimeBudget


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_it_is_spent_at_its_end(clock: Clock) -> None:
    budget = TimeBudget(10)
    clock.now += 9.9
    assert not budget.spent
    clock.now += 0.1
    assert budget.spent


def test_without_a_limit_it_lasts(clock: Clock) -> None:
    budget = TimeBudget(None)
    clock.now += 1e9
    assert not budget.spent
    assert not budget.share(3).spent


def test_what_one_failure_leaves_the_others_get(clock: Clock) -> None:
    budget = TimeBudget(30)
    first = budget.share(3)
    clock.now += 10
    assert first.spent
    assert not budget.spent
    clock.now -= 8  # the first one took 2 seconds
    second = budget.share(2)
    clock.now += 14 * (1 - RESERVE) - 0.1
    assert not second.spent
    clock.now += 0.2
    assert second.spent


def test_a_search_ends_early_enough_for_its_bundle(clock: Clock) -> None:
    budget = TimeBudget(100)
    last = budget.share(1)
    clock.now += 100 * (1 - RESERVE) + 0.1
    assert last.spent
    assert not budget.spent


def test_a_part_of_nothing_is_spent(clock: Clock) -> None:
    budget = TimeBudget(1)
    clock.now += 2
    assert budget.share(1).spent
    assert budget.share(0).spent


@pytest.mark.parametrize("seconds", [None, 60])
def test_a_stop_ends_all_parts(seconds: float | None) -> None:
    stop = threading.Event()
    budget = TimeBudget(seconds, stop)
    part = budget.share(2).share(2)
    assert not part.spent
    stop.set()
    assert part.spent
    assert budget.spent

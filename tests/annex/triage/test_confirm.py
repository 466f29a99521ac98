"""How often a failure appears, and how often a step is repeated for that."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.annex.triage.repetition import (
    ALWAYS_AFTER,
    ENOUGH_FAILURES,
    MISSED,
    MOST_LOST,
    MOST_TRIALS,
    needed_trials,
    repeat_failure,
    wilson_lower,
)
from harness.core.records.fault import Repetition
from harness.core.records.verdict import Family

FAILS, PASSES, LOST = Family.FAILED, Family.PASSED, None


def script(*results: Family | None, then: Family | None = PASSES) -> Callable[[int], Family | None]:
    """The result of each trial by its number."""
    return lambda number: results[number] if number < len(results) else then


def test_a_failure_that_always_appears_takes_few_trials() -> None:
    found = repeat_failure(script(then=FAILS))
    assert found == Repetition(outcome="always", trials=ALWAYS_AFTER, failures=ALWAYS_AFTER, repeats=1)


def test_a_failure_that_never_appears_takes_all_trials() -> None:
    assert repeat_failure(script()) == Repetition(outcome="never", trials=MOST_TRIALS, failures=0)


def test_one_healthy_trial_makes_it_flaky() -> None:
    found = repeat_failure(script(PASSES, then=FAILS))
    assert (found.outcome, found.failures, found.trials) == (
        "sometimes",
        ENOUGH_FAILURES,
        ENOUGH_FAILURES + 1,
    )
    assert found.repeats > 1


def test_one_failure_in_all_trials_is_enough() -> None:
    found = repeat_failure(script(*[PASSES] * (MOST_TRIALS - 1), FAILS))
    assert (found.outcome, found.trials, found.failures) == ("sometimes", MOST_TRIALS, 1)


def test_trials_that_the_infrastructure_lost_do_not_count() -> None:
    found = repeat_failure(script(LOST, FAILS, LOST, then=FAILS))
    assert (found.outcome, found.trials) == ("always", ALWAYS_AFTER)


def test_each_attempt_has_a_number_of_its_own() -> None:
    numbers: list[int] = []

    def attempt(number: int) -> Family | None:
        numbers.append(number)
        return LOST if number == 2 else FAILS

    repeat_failure(attempt)
    assert numbers == list(range(ALWAYS_AFTER + 1))


def test_nothing_is_known_if_the_infrastructure_fails() -> None:
    found = repeat_failure(script(then=LOST))
    assert found == Repetition(outcome="unknown", trials=MOST_LOST, failures=0)


def test_failures_before_the_infrastructure_failed_are_not_forgotten() -> None:
    found = repeat_failure(script(FAILS, PASSES, FAILS, then=LOST))
    assert (found.outcome, found.trials, found.failures) == ("sometimes", 3, 2)
    assert found.repeats > 1


@given(st.integers(1, 100), st.integers(1, 100))
def test_the_lower_end_of_the_interval(failures: int, healthy: int) -> None:
    """The lower root of ``(p - share)^2 = z^2 p (1 - p) / n``, which defines the interval."""
    trials = failures + healthy
    share, found = failures / trials, wilson_lower(failures, trials)
    assert found < share
    assert (found - share) ** 2 == pytest.approx(1.2816**2 * found * (1 - found) / trials, rel=1e-6)


@given(st.integers(1, 200), st.integers(0, 200))
def test_repetitions_miss_a_failure_rarely(failures: int, healthy: int) -> None:
    trials = failures + healthy
    repeats = needed_trials(failures, trials)
    if not healthy:
        assert repeats == 1
        return
    rate = wilson_lower(failures, trials)
    assert 0 < rate < failures / trials
    assert (1 - rate) ** repeats <= MISSED
    assert repeats == 1 or (1 - rate) ** (repeats - 1) > MISSED


@pytest.mark.parametrize("rate", [0.2, 0.3, 0.6])
def test_repetitions_see_a_flaky_failure(rate: float) -> None:
    """Of 300 confirmations that fail in some trials, each followed by one step."""
    draw = random.Random(7)  # noqa: S311 - nothing secret
    missed = steps = 0
    while steps < 300:
        found = repeat_failure(lambda _: FAILS if draw.random() < rate else PASSES)
        if found.outcome == "sometimes":
            steps += 1
            missed += all(draw.random() >= rate for _ in range(found.repeats))
    assert missed <= 6

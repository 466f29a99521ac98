"""Confirms a failure: how often it appears, and how often a step must therefore be repeated."""

import math
from collections.abc import Callable

from harness.core.records.fault import Repetition
from harness.core.records.verdict import Family

ALWAYS_AFTER = 5
"""Failures in a row after which a failure counts as one that always appears."""

ENOUGH_FAILURES = 8
MOST_TRIALS = 40
"""Limits for a failure that appears sometimes: trials stop at the first one reached."""

MOST_LOST = 5
"""Trials with an infrastructure failure after which no more are made."""

MISSED = 1e-3
"""Accepted probability that a step misses an existing failure."""

CONFIDENCE_Z = 1.2816
"""Normal quantile of 90 %, for the lower bound of the rate (Wilson 1927)."""


def repeat_failure(
    attempt: Callable[[int], Family | None], is_spent: Callable[[], bool] = lambda: False
) -> Repetition:
    """Repeat a failing trial until it is known how often it fails.

    Args:
        attempt: Runs the trial of a number. Returns ``failed`` if it has the signature of the failure,
            another family if it does not, and None if the infrastructure failed.
        is_spent: Whether time has run out: then only the first trial is made.
    """
    trials = failures = lost = 0
    while trials < MOST_TRIALS and failures < ENOUGH_FAILURES and lost < MOST_LOST:
        found = attempt(trials + lost)
        if found is None:
            lost += 1
            continue
        trials += 1
        failures += found is Family.FAILED
        if failures == trials == ALWAYS_AFTER or is_spent():
            break
    if not failures:
        if lost == MOST_LOST:
            return Repetition(outcome="unknown", trials=trials + lost, failures=0)
        return Repetition(outcome="never", trials=trials, failures=0)
    return Repetition(
        outcome="always" if failures == trials else "sometimes",
        trials=trials,
        failures=failures,
        repeats=needed_trials(failures, trials),
    )


def fails_as_often(attempt: Callable[[int], bool], known: Repetition) -> bool:
    """Repeat a trial, and return whether it fails as often as a confirmed failure does.

    It must reach the lower end of Wilson's interval of the known rate in the same number of trials. It ends
    as soon as that is certain: after the first healthy trial, if the failure appears each time.
    """
    wanted = known.trials
    if known.outcome != "always":
        wanted = max(1, math.ceil(known.trials * wilson_lower(known.failures, known.trials)))
    failures = 0
    for number in range(known.trials):
        failures += attempt(number)
        left = known.trials - number - 1
        if failures >= wanted or failures + left < wanted:
            break
    return failures >= wanted


def needed_trials(failures: int, trials: int) -> int:
    """Return how many healthy trials in a row show that a failure is gone that was seen at least once.

    A failure of rate ``p`` is missed by ``n`` trials with probability ``(1 - p)**n``. The lower end of
    Wilson's interval replaces ``p``, because the rate is an estimate.
    """
    if failures == trials:
        return 1
    rate = wilson_lower(failures, trials)
    return max(1, math.ceil(math.log(MISSED) / math.log(1 - rate)))


def wilson_lower(failures: int, trials: int) -> float:
    """Return the lower end of Wilson's interval for a rate.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical inference", 1927.
    """
    share, z2 = failures / trials, CONFIDENCE_Z**2
    centre = share + z2 / (2 * trials)
    spread = CONFIDENCE_Z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2))
    return (centre - spread) / (1 + z2 / trials)

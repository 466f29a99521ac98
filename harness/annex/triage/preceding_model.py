"""Reduces the models that must run before a failing one, so that the whole bundle is small."""

from collections.abc import Callable, Sequence

import msgspec

from harness.annex.triage.failure_check import FailureCheck
from harness.annex.triage.reduce import reduction
from harness.annex.triage.reduction_settings import ReductionProgress, ReductionSettings
from harness.annex.triage.smallest import Smallest, answered
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget

_MOST_TRIALS, MOST_ROUNDS = 60, 3
"""Limits of trials for each transformation, and of rounds: every trial starts a process."""


def with_smaller_preceding(
    failing: Smallest,
    check: FailureCheck,
    budget: TimeBudget,
    note: Callable[[ReductionProgress], None],
    *,
    keep_weights: bool = False,
) -> FailureCheck:
    """Return a check with the smallest preceding models after which a model still fails in its way.

    The last one is reduced first. Each trial runs all of them and the failing model in a fresh process.
    """
    settings = ReductionSettings(
        values=check.lab.values, keep_weights=keep_weights, most_trials=_MOST_TRIALS, most_rounds=MOST_ROUNDS
    )
    for index in reversed(range(len(check.after))):

        def behind(
            candidates: Sequence[Subject], base: FailureCheck = check, index: int = index
        ) -> tuple[bool, ...]:
            return tuple(_fails(failing, _with(base, index, one)) for one in candidates)

        for better in answered(reduction(check.after[index], settings, note), behind, budget):
            check = _with(check, index, better)
    return check


def _fails(failing: Smallest, check: FailureCheck) -> bool:
    (match,) = check.matches([failing.subject])
    return match.fails if failing.match.fails else match.by_noise


def _with(check: FailureCheck, index: int, subject: Subject) -> FailureCheck:
    after = (*check.after[:index], subject, *check.after[index + 1 :])
    return msgspec.structs.replace(check, after=after)

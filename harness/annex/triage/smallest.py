"""The smallest model that fails as a located part does: the reducer's candidates, judged by the check."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from harness.annex.triage.failure_check import FailureCheck, Match, least_error
from harness.annex.triage.reduce import ReductionSteps, reduction
from harness.annex.triage.reduction_settings import ReductionProgress, ReductionSettings
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.core.records.fault import Location

_BATCH = 4
"""Number of candidates tried together: while the EP runs one, the CPU EP computes the golden of the next."""


class Smallest(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a reduction: the smallest model, and its trial.

    Attributes:
        complete: Whether nothing could make it smaller; false if time ran out first.
    """

    subject: Subject
    match: Match
    complete: bool


def smallest_failing(
    start: Smallest,
    check: FailureCheck,
    location: Location,
    budget: TimeBudget,
    note: Callable[[ReductionProgress], None],
    *,
    keep_weights: bool = False,
) -> Smallest:
    """Reduce a located part to the smallest model that fails in the same way; an exact node stays in it."""
    # A part that the cell's own tolerance passes must keep failing by limits of noise.
    strict = start.match.fails
    least = least_error(start.match)
    best, complete = start, False

    def progress(now: ReductionProgress) -> None:
        nonlocal complete
        complete = now.complete
        note(now)

    # If nodes fail only together, some may not be needed: a bisection of their order finds its ends.
    guilty = frozenset(location.nodes if location.exact else ())
    settings = ReductionSettings(
        keep=guilty.__contains__,
        values=check.lab.values,
        keep_weights=keep_weights,
        batch=_BATCH if check.repeats == 1 and not check.after else 1,
    )
    shown: dict[str, Match] = {}

    def judge(batch: Sequence[Subject]) -> tuple[bool, ...]:
        matches = check.matches(batch)
        shown.clear()
        shown.update(zip((one.digest for one in batch), matches, strict=True))
        return tuple((one.fails if strict else one.by_noise) and one.error >= least for one in matches)

    for subject in answered(reduction(start.subject, settings, progress), judge, budget):
        best = Smallest(subject=subject, match=shown[subject.digest], complete=False)
    return msgspec.structs.replace(best, complete=complete)


def answered(
    steps: ReductionSteps, judge: Callable[[Sequence[Subject]], tuple[bool, ...]], budget: TimeBudget
) -> Iterator[Subject]:
    """Answer a reduction, and yield each smaller interesting subject as it is found."""
    answers: tuple[bool, ...] | None = None
    while not budget.spent:
        try:
            batch = next(steps) if answers is None else steps.send(answers)
        except StopIteration:
            break
        answers = judge(batch)
        if True in answers:
            yield batch[answers.index(True)]
    steps.close()

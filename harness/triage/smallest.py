"""The smallest model that fails as a located part does: the reducer's candidates, judged by the check."""

from collections.abc import Callable

import msgspec

from harness.core.fault import Location
from harness.triage.budget import Budget
from harness.triage.check import Check, Match, least_error
from harness.triage.reduce import reduction
from harness.triage.settings import Progress, Settings
from harness.triage.subject import Subject

BATCH = 4
"""Candidates that are tried at once: while the EP runs one, the CPU EP computes the golden of the next."""


class Smallest(msgspec.Struct, frozen=True, kw_only=True):
    """What a reduction came to.

    Attributes:
        subject: The smallest model.
        match: What it gave.
        complete: Whether nothing could make it smaller; false if time ran out first.
    """

    subject: Subject
    match: Match
    complete: bool


def smallest_failing(
    start: Smallest,
    check: Check,
    location: Location,
    budget: Budget,
    note: Callable[[Progress], None],
    *,
    keep_weights: bool = False,
) -> Smallest:
    """Reduce a located part to the smallest model that fails in the same way.

    Args:
        start: The part, with what it gave.
        check: What failing means.
        location: Where the failure is; an exact node stays in the model.
        budget: Ends the search early.
        note: Receives progress.
        keep_weights: Whether initializers keep their values.
    """
    # A part that the cell's own tolerance passes must go on failing by limits of noise.
    strict = start.match.fails
    least = least_error(start.match)
    best, complete = start, False

    def progress(now: Progress) -> None:
        nonlocal complete
        complete = now.complete
        note(now)

    # Of nodes that only fail together, some may not be needed: a bisection of their order finds its ends.
    guilty = frozenset(location.nodes if location.exact else ())
    settings = Settings(
        keep=guilty.__contains__,
        values=check.lab.values,
        keep_weights=keep_weights,
        batch=BATCH if check.repeats == 1 and not check.after else 1,
    )
    steps = reduction(start.subject, settings, progress)
    answers: tuple[bool, ...] | None = None
    while not budget.spent:
        try:
            batch = next(steps) if answers is None else steps.send(answers)
        except StopIteration:
            break
        matches = check.matches(batch)
        answers = tuple((one.fails if strict else one.by_noise) and one.error >= least for one in matches)
        if True in answers:
            index = answers.index(True)
            best = Smallest(subject=batch[index], match=matches[index], complete=False)
    steps.close()
    return msgspec.structs.replace(best, complete=complete)

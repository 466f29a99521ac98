"""The check: whether a subject still shows the failure that is being triaged."""

import math
from collections.abc import Collection, Sequence

import msgspec

from harness.annex.triage.lab import CellAxes, Lab, Seen, Trial
from harness.annex.triage.signature import AT_FIRST_RUN, VALUE_VERDICTS, names_of, signature_of
from harness.annex.triage.subject import Subject
from harness.core.comparison.noise_limits import DEFAULT_LIMITS
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.records.fault import Signature
from harness.core.records.record import Record
from harness.core.verdicts.decide import decide
from harness.core.verdicts.judging import WRONG_VALUES

BY_NOISE = Policy()
"""Policy that finds what the tolerance of a cell misses in a part of its model: errors grow on the way to
its outputs."""


MORE_SELDOM = 3
"""A part that fails this many times more rarely than the whole model is still seen before a cut is blamed."""

OUTPUTS = VALUE_VERDICTS | WRONG_VALUES
"""Verdicts about outputs."""


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """How a trial compares with the failure.

    Attributes:
        fails: Whether it has the signature of the failure.
        by_noise: Whether it has that signature if limits of noise judge in place of the cell's own policy.
        wrong: Whether an output is wrong in any way, by limits of noise. On the way to an output of the
            model, a wrong value may become NaN or, if values decide a shape, another shape.
        error: Largest error of an output as a multiple of the model's rounding noise; 0 for a failure that is
            not about values.
        seen: The trial that shows the most.
    """

    fails: bool
    by_noise: bool
    wrong: bool
    error: float
    seen: Seen


class FailureCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Compares trials with a failure.

    Attributes:
        policy: The policy that judges the cell.
        target: Name of the target in the lab.
        repeats: Trials of each subject before it counts as healthy; more than one for a flaky failure.
        after: Models that run before each subject, in one fresh process.
        fresh: Whether each trial runs in a fresh process: sessions of earlier trials might be the cause.
        limit_s: Time limit of a phase, if it is lower than the target's own. A trial that does not end within
            it is only assumed to hang.
    """

    lab: Lab
    signature: Signature
    policy: Policy
    target: str
    axes: CellAxes
    repeats: int = 1
    after: tuple[Subject, ...] = ()
    fresh: bool = False
    limit_s: float | None = None

    def trial(self, subject: Subject, number: int = 0) -> Trial:
        """Return the trial of a subject."""
        return Trial(
            subject=subject,
            target=self.target,
            axes=self.axes,
            number=number,
            after=self.after,
            fresh=self.fresh,
        )

    @property
    def is_flaky(self) -> bool:
        """Return whether a single healthy trial proves nothing."""
        return self.repeats > 1

    def surer(self) -> "FailureCheck":
        """Return a check that also sees failures that are several times rarer."""
        return msgspec.structs.replace(self, repeats=self.repeats * MORE_SELDOM)

    @property
    def of_values(self) -> bool:
        """Whether the failure is about values, which depend on a policy."""
        return self.signature.verdict in VALUE_VERDICTS

    @property
    def of_outputs(self) -> bool:
        """Whether the failure is about outputs: their values, shapes or element types."""
        return self.signature.verdict in OUTPUTS

    @property
    def of_first_values(self) -> bool:
        """Return whether the failure is about the values of a first run, which a trial returns."""
        return self.signature.message == AT_FIRST_RUN and self.of_values

    def matches(self, subjects: Sequence[Subject]) -> tuple[Match, ...]:
        """Try subjects concurrently; a subject that fails in any repetition fails."""
        best: list[Match | None] = [None] * len(subjects)
        for number in range(self.repeats):
            open_ = [index for index, match in enumerate(best) if match is None or not match.fails]
            trials = [self.trial(subjects[index], number) for index in open_]
            for index, seen in zip(open_, self.lab.run(trials), strict=True):
                match = self.match(subjects[index], seen)
                former = best[index]
                if former is None or _shows(match) > _shows(former):
                    best[index] = match
        return tuple(match for match in best if match is not None)

    def match(self, subject: Subject, seen: Seen) -> Match:
        """Return how one result compares with the failure."""
        names: Collection[str] = () if self.of_values else names_of(subject)
        fails = signature_of(seen.record, self.policy, names) == self.signature
        if not self.of_outputs:
            return Match(fails=fails, by_noise=False, wrong=fails, error=0.0, seen=seen)
        policy = msgspec.structs.replace(BY_NOISE, precision=self.policy.precision)
        strictly = signature_of(seen.record, policy, names)
        return Match(
            fails=fails,
            by_noise=fails or (self.of_values and strictly == self.signature),
            wrong=fails or strictly.verdict in OUTPUTS,
            error=_error(seen.record) if self.of_values else 0.0,
            seen=seen,
        )


def failing_outputs(record: Record, policy: Policy) -> tuple[str, ...]:
    """Return the outputs that fail under a policy; empty if the verdict is about none of them alone."""
    decision = decide(record, policy)
    for rows in (decision.outputs, decision.other):
        failing = [row.name for row in rows if row.mismatched or (row.details and row.details.differs)]
        if failing:
            return tuple(failing)
    return ()


def worst_row(match: Match) -> OutputMetrics | None:
    """Return the output that is furthest off; None if values were not compared."""
    rows = (*match.seen.record.outputs, *match.seen.record.again, *match.seen.record.other)
    return max(rows, key=lambda row: (row.mismatched, row.max_abs or 0.0), default=None)


def least_error(match: Match) -> float:
    """Return the error, in multiples of rounding noise, that smaller models must have.

    The geometric mean of the error of the located part and of the limit of noise: a model below it is nearer
    to rounding than to the failure. Small models have little noise, so a rounding difference may exceed it.
    """
    return math.sqrt(match.error * DEFAULT_LIMITS.max) if match.error > DEFAULT_LIMITS.max else 0.0


def _shows(match: Match) -> tuple[bool, bool, bool]:
    return match.fails, match.by_noise, match.wrong


def _error(record: Record) -> float:
    rows: tuple[OutputMetrics, ...] = (*record.outputs, *record.again, *record.other)
    return max((row.noise.max for row in rows if row.noise is not None), default=0.0)

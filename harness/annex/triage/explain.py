"""Explains a fault: varies the reduced model and its session, one thing at a time."""

from collections.abc import Iterator, Sequence

import msgspec

from harness.annex.triage.decompose import composite_operators, decomposed
from harness.annex.triage.failure_check import FailureCheck
from harness.annex.triage.lab import CellAxes, Seen
from harness.annex.triage.optimizers import ENTRY, guilty_optimizers
from harness.annex.triage.session_use import with_axes
from harness.annex.triage.subject import Subject
from harness.annex.triage.time_budget import TimeBudget
from harness.annex.triage.vary import Variation, model_variations, session_variations
from harness.core.records.fault import Condition
from harness.core.records.verdict import Family
from harness.plan.target import Target

DISABLED = "disabled"


class TargetVariation(msgspec.Struct, frozen=True, kw_only=True):
    """Another target on which a model is tried, and how it differs."""

    condition: Condition
    target: Target


def explain(
    subject: Subject, check: FailureCheck, targets: Sequence[TargetVariation], budget: TimeBudget
) -> tuple[Condition, ...]:
    """Return the effect of each variation of a failing model on the failure.

    Args:
        subject: A model that fails.
        check: The check for the failure.
        targets: Other targets on which it is tried.
        budget: Ends the search early.
    """
    found: list[Condition] = []
    variations = [
        *session_variations(subject, check.axes),
        *_target_variations(subject, check.axes, targets),
        *model_variations(subject, check.axes),
    ]
    for variation in variations:
        if budget.spent:
            break
        found.append(_tried(variation, check))
    if any(
        one.kind == "graph_optimization" and one.value == DISABLED and one.fails is False for one in found
    ):
        found += _optimizers(subject, check)
    return tuple(found)


def decomposed_operators(subject: Subject, check: FailureCheck) -> tuple[str, ...]:
    """Return the composite operators whose decomposition makes the failure disappear."""
    found = []
    for operator in composite_operators(subject):
        apart = decomposed(subject, operator)
        if apart is not None:
            (match,) = check.matches([apart])
            if not (match.fails or match.by_noise) and _is_right(match.seen):
                found.append(operator[1])
    return tuple(found)


def _target_variations(
    subject: Subject, axes: CellAxes, targets: Sequence[TargetVariation]
) -> Iterator[Variation]:
    for one in targets:
        yield Variation(condition=one.condition, subject=subject, axes=axes, target=one.target.name)


def _tried(variation: Variation, check: FailureCheck) -> Condition:
    other = msgspec.structs.replace(check, target=variation.target or check.target, axes=variation.axes)
    (match,) = other.matches([variation.subject])
    verdict = str(match.seen.record.verdict)
    fails: bool | None = match.fails or match.by_noise
    if fails and check.limit_s is not None and not variation.target:
        # The model may be slow: finding out whether it hangs would cost the full limit each time.
        return msgspec.structs.replace(variation.condition, verdict=f"no end within {check.limit_s:g} s")
    if not fails and not _is_right(match.seen):
        fails = None  # another failure, or a result that cannot be judged
    return msgspec.structs.replace(variation.condition, fails=fails, verdict="" if fails else verdict)


def _is_right(seen: Seen) -> bool:
    """Return whether the EP computed the right answer; if the CPU did, the failure was avoided, not gone."""
    return seen.record.family is Family.PASSED


def _optimizers(subject: Subject, check: FailureCheck) -> Iterator[Condition]:
    def fails_without(sets: Sequence[tuple[str, ...]]) -> list[bool]:
        others = (
            msgspec.structs.replace(check, axes=with_axes(check.axes, ((ENTRY, ";".join(names)),)))
            for names in sets
        )
        found = (other.matches([subject])[0] for other in others)
        return [match.fails or match.by_noise for match in found]

    if names := guilty_optimizers(fails_without):
        yield Condition(kind="optimizer", name=" and ".join(names), value="disabled", fails=False)

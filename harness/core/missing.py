"""What has to be asked before a cell can be decided: pure, from its facts and a policy."""

from collections.abc import Collection
from enum import StrEnum
from functools import cached_property

import msgspec

from harness.core.decide import decide
from harness.core.facts import Facts
from harness.core.judged import is_rounded, is_within_two_ulp, judge_row
from harness.core.judging import WRONG_VALUES
from harness.core.metrics import EXACT_FRONTIER
from harness.core.output_metrics import OutputMetrics
from harness.core.policy import Policy
from harness.core.tolerance import Tolerance
from harness.core.verdict import Family, Verdict


class Need(StrEnum):
    """What can be asked about a cell, in the order in which it is asked."""

    NOISE = "noise"
    """The rounding noise of the model."""

    REVEALED = "revealed"
    """The values that positions, such as those of ArgMax, were chosen by."""

    UNDEFINED = "undefined"
    """The values that reach operators whose result ONNX leaves undefined for some."""

    OWN_CPU = "own_cpu"
    """What the CPU EP of the target's own runtime does with the model."""

    REPEATED = "repeated"
    """The golden once more, in another process."""

    ZEROED = "zeroed"
    """Whether zeros in place of what a node computes would be noticed."""

    REFERENCES = "references"
    """What others make of the model: onnx.reference, the CPU EP without optimizations, float64."""


USUAL = (
    Policy(fixed=Tolerance(rtol=1e-5, atol=1e-5), judge_by="table"),
    Policy(fixed=Tolerance(rtol=1e-3, atol=1e-7), judge_by="table"),
    Policy(fixed=Tolerance(rtol=1e-3, atol=1e-5), judge_by="table"),
    Policy(judge_by="noise"),
)
"""The policies that come along: those of Polygraphy, ONNX and onnxruntime, and limits of noise.

A cell that one of them would fail is asked everything, so that judging it again needs no device."""


def missing(facts: Facts, policy: Policy, askable: Collection[Need]) -> Need | None:
    """What is to be asked next; None where the cell can be decided.

    Args:
        facts: All that is known by now; ``answered`` says what has been asked.
        policy: What the cell is judged by.
        askable: What makes sense for this model and target.
    """
    known = _Known(facts, policy)
    return next(
        (
            need
            for need in Need
            if need in askable and need.value not in facts.answered and _NEEDED[need](known)
        ),
        None,
    )


class _Known:
    """What is known of a cell, and what follows from it."""

    def __init__(self, facts: Facts, policy: Policy) -> None:
        self.facts = facts
        self.policy = policy

    @cached_property
    def verdict(self) -> Verdict:
        """What the cell would get if nothing more were asked."""
        return decide(self.facts, self.policy).verdict

    @cached_property
    def is_in_question(self) -> bool:
        """Whether the golden fails the EP, under this policy or, of a model as it came, under a usual one."""
        facts = self.facts
        if facts.golden != "cpu":
            return False
        if self.verdict in WRONG_VALUES:
            return True
        return not facts.converted and any(is_in_doubt(row, facts.precision) for row in facts.outputs)


def _needs_own_cpu(known: _Known) -> bool:
    facts = known.facts
    if facts.ended is None:
        return known.is_in_question
    if facts.ended.how == "raised":
        return True
    return facts.ended.how in {"died", "hung"} and not facts.is_cpu


def _needs_noise(known: _Known) -> bool:
    facts = known.facts  # whatever the policy: those of ``USUAL`` need it as well
    if facts.ended is not None or facts.golden != "cpu":
        return False
    if facts.converted:
        errors = (row.precision_error for row in facts.outputs)
        return any(error is not None and error.error for error in errors)
    return any(_may_exceed_noise(row) for row in (*facts.outputs, *facts.again))


def _may_exceed_noise(row: OutputMetrics) -> bool:
    """Whether an output of rounded numbers is off by more than any model's noise allows."""
    details = row.details
    if (
        not row.max_abs
        or not is_rounded(row)
        or (details is not None and (details.differs or details.special))
    ):
        return False
    return not is_within_two_ulp(row)


def _needs_references(known: _Known) -> bool:
    """Whether a golden is about to fail the EP, under this policy or a usual one, or is in doubt itself."""
    facts = known.facts
    if facts.golden != "cpu" or facts.ended is not None:
        return False
    return bool(facts.dispute) or known.is_in_question


def _wrong_position(known: _Known) -> bool:
    return known.facts.golden == "cpu" and known.verdict in {Verdict.MISMATCH, Verdict.SHAPE_MISMATCH}


def _in_question(known: _Known) -> bool:
    return known.is_in_question


def is_in_doubt(row: OutputMetrics, precision: str) -> bool:
    """Whether one of the usual policies would fail an output of what computes at a precision."""
    if row.frontier == EXACT_FRONTIER:
        return False
    usual = (msgspec.structs.replace(policy, precision=precision) for policy in USUAL)
    return any(judge_row(row, policy).fault for policy in usual)


def _needs_zeroed(known: _Known) -> bool:
    """Whether a right answer rests on nodes of the EP, and on a golden that is not known to be weak."""
    facts = known.facts
    if facts.converted or facts.golden != "cpu" or facts.weak_golden:
        return False
    return known.verdict.family is Family.PASSED


_NEEDED = {
    Need.ZEROED: _needs_zeroed,
    Need.OWN_CPU: _needs_own_cpu,
    Need.NOISE: _needs_noise,
    Need.REVEALED: _wrong_position,
    Need.UNDEFINED: _in_question,
    Need.REPEATED: _in_question,
    Need.REFERENCES: _needs_references,
}

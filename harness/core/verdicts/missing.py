"""Find the questions that come before a cell can be decided: pure, from its facts and a policy."""

from collections.abc import Callable, Collection
from enum import StrEnum
from functools import cached_property

import msgspec

from harness.core.comparison.metrics import EXACT_FRONTIER
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import Tolerance
from harness.core.records.facts import Facts
from harness.core.records.verdict import Family, Verdict
from harness.core.verdicts.decide import verdict_of
from harness.core.verdicts.judge_output import judge_row
from harness.core.verdicts.judgement import is_rounded, is_within_two_ulp
from harness.core.verdicts.judging import WRONG_VALUES, policy_at


class Need(StrEnum):
    """A question about a cell, in the order in which questions are asked."""

    NOISE = "noise"
    """The rounding noise of the model."""

    PLAYED = "played"
    """The CPU EP's results in the ways of the scenario ``generate``."""

    REVEALED = "revealed"
    """The values by which positions, such as those of ArgMax, were chosen."""

    WIDER = "wider"
    """The noise of other explanations of an error: what the EP delivers, what a document allows."""

    UNDEFINED = "undefined"
    """The values that reach operators whose result ONNX leaves undefined for some values."""

    OWN_CPU = "own_cpu"
    """The result of the CPU EP of the target's own runtime."""

    REPEATED = "repeated"
    """The golden computed once more, in another process."""

    ZEROED = "zeroed"
    """Whether zeros in place of a node's result would be noticed."""

    REFERENCES = "references"
    """The answers of references: onnx.reference, the CPU EP without optimizations, float64."""


SHIPPED_POLICIES = (
    Policy(fixed=Tolerance(rtol=1e-5, atol=1e-5), judge_by="table"),
    Policy(fixed=Tolerance(rtol=1e-3, atol=1e-7), judge_by="table"),
    Policy(fixed=Tolerance(rtol=1e-3, atol=1e-5), judge_by="table"),
    Policy(),
)
"""The shipped policies: those of Polygraphy, ONNX and onnxruntime, and limits of noise.

If one of them would fail a cell, everything is asked, so that a second judgement needs no device."""


def missing(facts: Facts, policy: Policy, askable: Collection[Need], *, by_usual: bool = True) -> Need | None:
    """Return the next question; None where the cell can be decided.

    ``askable`` are the needs that apply to this model and target; ``facts.answered`` are those already asked.
    With ``by_usual`` everything is asked about cells that only a usual policy would fail.
    """
    known = _Known(facts, policy, by_usual=by_usual)
    open_needs = (need for need in Need if need in askable and need.value not in facts.answered)
    return next((need for need in open_needs if _NEEDED[need](known)), None)


class _Known:
    """The facts of a cell, and what follows from them."""

    def __init__(self, facts: Facts, policy: Policy, *, by_usual: bool) -> None:
        self.facts = facts
        self.by_usual = by_usual
        self.policy = policy_at(facts, policy)
        self.ran_with_golden = facts.ended is None and facts.golden == "cpu"

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict if no further question were asked."""
        return verdict_of(self.facts, self.policy)

    @cached_property
    def is_in_question(self) -> bool:
        """Whether the golden fails the EP: under this policy, or an unconverted model under a usual one."""
        facts = self.facts
        if facts.golden != "cpu":
            return False
        if self.verdict in WRONG_VALUES:
            return True
        if facts.converted or not self.by_usual:
            return False
        return any(_is_in_doubt(row, facts) for row in facts.outputs)


def _is_in_doubt(row: OutputMetrics, facts: Facts) -> bool:
    """Return whether a usual policy would fail an output at the computing precision of a cell."""
    if row.frontier == EXACT_FRONTIER:
        return False
    usual = (
        msgspec.structs.replace(policy, precision=facts.precision, finest=facts.finest)
        for policy in SHIPPED_POLICIES
    )
    return any(judge_row(row, policy).fault for policy in usual)


def _needs_noise(known: _Known) -> bool:
    """Return whether an output is off by more than rounding, which all of ``SHIPPED_POLICIES`` ask."""
    facts = known.facts
    if not known.ran_with_golden:
        return False
    if facts.converted:
        errors = (row.precision_error for row in facts.outputs)
        return any(error is not None and error.error for error in errors)
    return any(_may_exceed_noise(row) for row in (*facts.outputs, *facts.again))


def _may_exceed_noise(row: OutputMetrics) -> bool:
    """Return whether an output is off by more than any model's noise allows.

    An output with one right answer is, if it differs at all. Noise shows which of its elements rounding
    moves, and whether it destroys the whole answer.
    """
    if row.differs or row.is_special:
        return False
    if not is_rounded(row):
        return bool(row.mismatched) or (row.details is not None and row.details.ties > 0)
    return bool(row.max_abs) and not is_within_two_ulp(row)


def _needs_wider(known: _Known) -> bool:
    """Return whether an error is beyond the noise, or whether a coarse precision destroys the digits.

    The error may also be the CPU EP's, if no node ran on the EP.
    """
    wrong = {Verdict.MISMATCH}
    placement = known.facts.placement
    if placement is not None and not placement.ep_nodes:
        wrong.add(Verdict.REFERENCE_DISPUTED)
    if known.policy.is_coarser(known.policy.noise_at):
        wrong.add(Verdict.PRECISION_LOSS)
    return (
        known.ran_with_golden and known.verdict in wrong and any(map(_may_exceed_noise, known.facts.outputs))
    )


def _fails_golden(known: _Known, among: Collection[Verdict] = WRONG_VALUES) -> bool:
    return known.facts.golden == "cpu" and known.verdict in among


def _fails_expected(known: _Known) -> bool:
    """Return whether expected data fail the EP where the CPU EP has no golden.

    ONNX may contradict these data.
    """
    return known.facts.golden == "expected" and known.verdict in WRONG_VALUES


def _needs_own_cpu(known: _Known) -> bool:
    facts = known.facts
    if facts.ended is None:
        return known.is_in_question
    return facts.ended.how == "raised" or (facts.ended.how in {"died", "hung"} and not facts.is_cpu)


def _needs_zeroed(known: _Known) -> bool:
    """Return whether a right answer depends on nodes of the EP, and its golden is not known to be weak."""
    facts = known.facts
    if facts.converted or facts.golden != "cpu" or facts.weak_golden:
        return False
    return known.verdict.family is Family.PASSED


def _needs_references(known: _Known) -> bool:
    """Return whether the golden is in doubt, or would fail the EP under this policy or a usual one."""
    return known.ran_with_golden and (bool(known.facts.dispute) or known.is_in_question)


_BY_CHOICE = {Verdict.MISMATCH, Verdict.SHAPE_MISMATCH, Verdict.NONDETERMINISTIC}
"""Verdicts of positions whose values may tie, in the first run or in a further one."""

_NEEDED: dict[Need, Callable[[_Known], bool]] = {
    Need.NOISE: _needs_noise,
    Need.PLAYED: _fails_golden,  # by a way for which the model may not be made
    Need.REVEALED: lambda known: _fails_golden(known, _BY_CHOICE),
    Need.WIDER: _needs_wider,  # after the values that may tie at the model's own precision
    Need.UNDEFINED: lambda known: (
        known.is_in_question or _fails_expected(known) or _fails_golden(known, {Verdict.NONDETERMINISTIC})
    ),
    Need.OWN_CPU: _needs_own_cpu,
    Need.REPEATED: lambda known: known.is_in_question,
    Need.ZEROED: _needs_zeroed,
    Need.REFERENCES: _needs_references,
}

"""Judge an error by what explains it, and by what is left of the answer.

Rounding noise explains it, a precision that the EP delivers by its own default, or a document.
"""

import math

import msgspec

from harness.core.comparison import wording
from harness.core.comparison.noise_limits import (
    DEFAULT_LIMITS,
    DOCUMENTED_LIMITS,
    NoiseLimits,
    beyond,
    rms_limit,
)
from harness.core.comparison.output_metrics import Noise, OutputDetails, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import FLOORS, default_tolerance
from harness.core.records.verdict import Verdict
from harness.core.verdicts.judgement import (
    OutputJudgement,
    delivered_by,
    excess,
    is_rounded,
    is_within_two_ulp,
    least_rtol,
    noise_at,
    right_output,
    wrong,
)


def judge_noise(row: OutputMetrics, noise: Noise, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge an output whose noise is known."""
    of_rms = rms_limit(policy.limits, row.elements)
    headroom = beyond(noise, policy.limits, row.elements)
    limited = msgspec.structs.replace(noise, rms_limit=of_rms, max_limit=policy.limits.max)
    row = _with_noise(msgspec.structs.replace(row, headroom=headroom), noise, limited)
    if is_within_two_ulp(row):
        return right_output(row)
    if headroom > 1:
        return judge_wider(row, details, policy)
    if noise.is_all:
        return judge_all_noise(row, noise, policy)
    if policy.is_coarser(noise.precision):
        return judge_bits(row, noise.precision, policy)
    return judge_lost(row, policy)


def judge_wider(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge an error that the model's own noise does not explain by wider noise: see ``Noise.wider``."""
    for noise in row.noises:
        if noise.document and noise.is_measured and _explains(noise, row.elements, DOCUMENTED_LIMITS):
            if row.is_lost:
                return wrong(row, Verdict.PRECISION_LOSS, wording.documented_loss(row, noise, policy.remedy))
            return msgspec.structs.replace(right_output(row), approximate=wording.approximate(row, noise))
        delivered = delivered_by(noise, policy)
        if delivered and _explains(noise, row.elements, policy.limits):
            if noise.is_all:
                return judge_all_noise(row, noise, policy)
            return judge_bits(row, delivered, policy)
    return wrong(row, Verdict.MISMATCH, excess(row, details, policy))


def judge_by_tables(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge an output without any noise by the tables of the precisions that the EP delivers."""
    for delivered in policy.delivers if policy.fixed is None else ():
        table = default_tolerance(row.dtype, FLOORS.get(delivered, policy.precision))
        if least_rtol(row.frontier, table.atol) <= table.rtol:
            return judge_bits(row, delivered, policy)
    return wrong(row, Verdict.MISMATCH, excess(row, details, policy))


def judge_bits(row: OutputMetrics, delivered: str, policy: Policy) -> OutputJudgement:
    """Judge an output that is right at a precision coarser than the model's own: is it of use?"""
    least = policy.least_bits(row.name, delivered)
    if row.delivered_bits is not None and max(row.delivered_bits, _bits_of_count(row)) < least:
        return wrong(
            row, Verdict.PRECISION_LOSS, wording.precision_loss(row, delivered, least, policy.remedy)
        )
    if delivered not in policy.delivers:
        return right_output(row)
    return msgspec.structs.replace(
        right_output(row), delivered=delivered, approximate=wording.delivered_words(row, delivered)
    )


def _bits_of_count(row: OutputMetrics) -> float:
    """Return the remaining bits of an output whose elements are counted, as positions are, not measured."""
    if is_rounded(row) or not row.mismatched:
        return -math.inf
    return -math.log2(row.mismatched / row.elements)


def judge_all_noise(row: OutputMetrics, noise: Noise, policy: Policy) -> OutputJudgement:
    """Judge an output that rounding destroys; at the model's own precision nobody can compute it.

    An EP need not lose what a coarser precision may lose: CUDA computes only products in TF32.
    """
    of_own = (one for one in row.noises if not policy.is_coarser(one.precision))
    if any(one.is_all for one in of_own) or not policy.is_coarser(noise.precision):
        return wrong(row, Verdict.ILL_CONDITIONED, wording.ill_conditioned(row, noise))
    if is_rounded(row) and row.delivered_bits is not None and not row.is_lost:
        return judge_bits(row, noise.delivers or noise.precision, policy)
    return wrong(row, Verdict.PRECISION_LOSS, wording.nothing_left(row, noise, policy.remedy))


def judge_lost(row: OutputMetrics, policy: Policy) -> OutputJudgement:
    """Judge an output that passes a tolerance but may have lost more than half of its value."""
    if not row.is_lost:
        return right_output(row)
    noise = noise_at(row, policy)
    # whatever the limits of the policy are
    if noise is not None and _explains(noise, row.elements, DEFAULT_LIMITS):
        return judge_all_noise(row, noise, policy)
    row = msgspec.structs.replace(row, mismatched=max(1, row.elements))
    return wrong(row, Verdict.MISMATCH, wording.lost_words(row))


def _with_noise(row: OutputMetrics, noise: Noise, other: Noise) -> OutputMetrics:
    """Return a row with another noise in place of one of its own."""
    own, *wider = (other if one is noise else one for one in row.noises)
    return msgspec.structs.replace(row, noise=msgspec.structs.replace(own, wider=tuple(wider)))


def _explains(noise: Noise, elements: int, limits: NoiseLimits) -> bool:
    return beyond(noise, limits, elements) <= 1

"""Judge one output under a policy: whether it is right, and if not, its fault.

This is the only place that turns the metrics of an output into a fault, for comparisons, runs and records
that are judged again.
"""

import math
from collections.abc import Iterable

import msgspec

from harness.core.comparison import wording
from harness.core.comparison.output_metrics import LOST, OutputDetails, OutputMetrics, PrecisionError
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.records.verdict import Verdict
from harness.core.verdicts.error_explanation import (
    judge_all_noise,
    judge_by_tables,
    judge_lost,
    judge_noise,
    judge_wider,
)
from harness.core.verdicts.judgement import (
    SAYS_NOTHING,
    OutputJudgement,
    excess,
    is_rounded,
    is_within_two_ulp,
    least_rtol,
    noise_at,
    part_of_two_ulp,
    right_output,
    wrong,
)

FAR_FROM_CPU = 16.0
"""Limit of the error of a converted model where the tolerance passes.

The unit is the CPU EP's error, or the unit roundoff.
"""

_STEP_SLOP = 1e-3
"""Part of a step by which a dequantized value may exceed whole steps; records round to this."""

_NOTHING_MORE = OutputDetails()
_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}


def judge_row(row: OutputMetrics, policy: Policy) -> OutputJudgement:
    """Judge one output; ``mismatched`` of its row counts elements under the row's own tolerance."""
    details = row.details or _NOTHING_MORE
    if details.differs:
        return _judge_form(row, details)
    if details.distribution:
        fault = Verdict.NAN_MISMATCH if details.special else Verdict.MISMATCH
        return right_output(row) if row.frontier else wrong(row, fault, details.message)
    if policy.converted and (row.precision_error is not None or details.own or details.lead is not None):
        return _judge_converted(row, details, policy)
    if details.special:
        return wrong(row, Verdict.NAN_MISMATCH, details.message)
    if details.copied and policy.judge_by == "noise":
        unknown = not row.noises and not policy.delivers  # no rounding explains another value
        if unknown or is_within_two_ulp(row):
            return wrong(row, Verdict.MISMATCH, excess(row, details, policy))
    judge = _judge_ties if details.ties else _judge_flushed if details.flushed_part else _judge_values
    return judge(row, details, policy)


def judge_rows(rows: Iterable[OutputMetrics], policy: Policy) -> tuple[OutputJudgement, ...]:
    """Judge all outputs."""
    return tuple(judge_row(row, policy) for row in rows)


def wrong_for_other_inputs(row: OutputMetrics, first: OutputMetrics | None, policy: Policy) -> bool:
    """Return whether an output for other inputs is certainly wrong, where nothing else is known about them.

    This applies to records without ``other_check``, and to converted models. The output must fail the
    tolerance. In addition its error as a whole must be far above the error for the first inputs, or it must
    equal the output for those, bit for bit.
    """
    table = msgspec.structs.replace(policy, judge_by="table")
    if judge_row(row, table).fault is None:
        return False
    details = row.details or _NOTHING_MORE
    if details.stale or details.differs:
        return details.stale
    if first is None or not is_rounded(row):
        return False
    return (row.relative_error or 0.0) > max(FAR_FROM_CPU * (first.relative_error or 0.0), LOST)


def worst(judged: Iterable[OutputJudgement], noun: str = "outputs") -> tuple[Verdict, str] | None:
    """Return the fault that decides among several outputs; None where all are right.

    The first in the table of verdicts decides; those that say nothing about the EP come last.
    """
    rows = tuple(judged)
    bad = [(one.fault, one.why) for one in rows if one.fault is not None]
    if not bad:
        return None
    fault, why = min(bad, key=lambda pair: (pair[0] in SAYS_NOTHING, _RANK[pair[0]]))
    more = f" ({len(bad)} of {len(rows)} {noun} are wrong)" if len(rows) > 1 else ""
    return fault, why + more


def explains(error: PrecisionError, precision: str) -> bool:
    """Return whether a computing precision explains an error of a converted model that a tolerance passes."""
    if error.far:
        return False
    if error.error is None:
        return True  # a relative error is undefined: the tolerance alone decides
    cpu_error = error.cpu_error or 0.0
    explained = FAR_FROM_CPU * max(UNIT_ROUNDOFF[precision], 0.0 if cpu_error > LOST else cpu_error)
    return error.error <= min(LOST, explained)


def _judge_form(row: OutputMetrics, details: OutputDetails) -> OutputJudgement:
    """Judge an output of another shape or element type; no value is compared."""
    if details.own == "lost":
        return wrong(row, Verdict.NO_GOLDEN, details.message)
    fault = Verdict.SHAPE_MISMATCH if details.differs == "shape" else Verdict.DTYPE_MISMATCH
    return wrong(row, fault, details.message)


def _judge_values(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge numbers: by steps of their quantization, by noise, or by a tolerance."""
    row, fits = _at_tolerance(row, policy)
    if fits:
        row = msgspec.structs.replace(row, mismatched=0)
    if details.steps and details.steps <= policy.steps + _STEP_SLOP:
        return right_output(row if fits else _with_granted(row, details, policy))
    if not is_rounded(row):
        return right_output(row) if fits else _judge_exact(row, details, policy)
    by_noise = policy.judge_by == "noise" or (policy.judge_by == "both" and not fits)
    if by_noise and (noise := noise_at(row, policy)):
        return judge_noise(row, noise, details, policy)
    if by_noise and is_within_two_ulp(row):
        # Any noise allows this much, so the noise has not been measured. In float16 this exceeds the
        # tolerance.
        return right_output(msgspec.structs.replace(row, headroom=part_of_two_ulp(row)))
    if fits:
        return judge_lost(row, policy)
    return _judge_beyond(row, details, policy, by_noise=by_noise)


def _judge_beyond(
    row: OutputMetrics, details: OutputDetails, policy: Policy, *, by_noise: bool
) -> OutputJudgement:
    """Judge an output beyond its tolerance, whose noise at the requested precision is unknown."""
    if not by_noise:
        return wrong(row, Verdict.MISMATCH, excess(row, details, policy))
    # A record may have the noise of another precision.
    return judge_wider(row, details, policy) if row.noises else judge_by_tables(row, details, policy)


def _judge_exact(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge an output that differs, and whose elements each have one right answer.

    Noise excuses only the elements that it moves; no tolerance excuses anything.
    """
    noise = noise_at(row, policy) if policy.judge_by != "table" else None
    if noise is None or noise.unmoved is None:
        if noise is not None and noise.is_all:  # for text, or in a record of an older version
            return judge_all_noise(row, noise, policy)
        return wrong(row, Verdict.MISMATCH, excess(row, details, policy))
    if noise.unmoved:
        return judge_wider(row, details, policy)
    return judge_all_noise(row, noise, policy) if noise.is_all else right_output(row)


def _judge_flushed(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge an output most of which is subnormal on one side, and zero on the other."""
    noise = noise_at(row, policy)
    if noise is not None and noise.is_all:
        return judge_all_noise(row, noise, policy)
    return wrong(row, Verdict.MISMATCH, wording.flushed_words(row, details.flushed_part))


def _with_granted(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputMetrics:
    """Return a row that is right only because the policy grants steps, with these steps."""
    details = msgspec.structs.replace(details, granted=policy.steps)
    return msgspec.structs.replace(row, headroom=(details.steps or 0.0) / policy.steps, details=details)


def _judge_ties(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge positions that differ although their values may tie."""
    if details.ties_of:
        values = policy.tolerance_for(details.ties_of)
        if least_rtol(details.tie_frontier, values.atol) <= values.rtol:
            return right_output(msgspec.structs.replace(row, headroom=0.0))
    return _judge_exact(row, details, policy)


def _judge_converted(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge an output of a converted model; see ``harness.core.verdicts.precise``."""
    error = row.precision_error
    if details.own == "equal":
        return right_output(row)
    if details.own == "lost":
        return wrong(row, Verdict.NO_GOLDEN, details.message)
    if error is None or not error.measured:
        return _judge_unmeasured(row, details, policy)
    if error.reference:
        return _judge_variant(row, error, details, policy)
    tolerance = policy.tolerance_for(row.dtype)
    within = error.in_limits or least_rtol(error.own_frontier, tolerance.atol) <= tolerance.rtol
    row, fits = _at_tolerance(row, policy)
    row = msgspec.structs.replace(row, precision_error=msgspec.structs.replace(error, within=within))
    if within or (fits and not details.special and explains(error, policy.precision)):
        return right_output(row)
    lost = wrong(row, Verdict.NO_GOLDEN, details.hint) if error.lost else None
    return lost or _explained(row, details, policy) or _converted_fault(row, error, details)


def _judge_variant(
    row: OutputMetrics, error: PrecisionError, details: OutputDetails, policy: Policy
) -> OutputJudgement:
    """Judge an output of a variant by the answer of another variant, which means the same.

    It is right if it keeps as many bits of that answer as its precision demands, or lies within the tolerance
    of its precision. If the CPU EP's own answer for the variant is as far off, the variant is at fault.
    """
    least = policy.least_bits(row.name, policy.precision)
    most = 2.0**-least
    row, fits = _at_tolerance(row, policy)
    kept = error.error is not None and error.error <= most
    row = msgspec.structs.replace(row, precision_error=msgspec.structs.replace(error, within=kept))
    if not details.special and (kept or (fits and explains(error, policy.precision))):
        return right_output(row)
    if (explained := _explained(row, details, policy)) is not None and explained.fault is None:
        return explained
    what = wording.output(row.name)
    if error.cpu_error is None or error.cpu_error <= most or error.error is None:
        return _converted_fault(row, error, details)
    if policy.precision != "float32" and error.error <= LOST:
        bits = max(0.0, -math.log2(error.error))
        told = (
            f"{what} keeps {bits:.1f} bits of the answer of {error.reference}, and {least:.1f} are needed; "
            "the CPU EP's answer for this variant is as far off: the variant loses them"
        )
        return wrong(row, Verdict.PRECISION_LOSS, told)
    told = (
        f"{what} is not what {error.reference} computes: relative error {error.error:.2g}, the CPU EP's own "
        f"{error.cpu_error:.2g}: the variant is another model"
    )
    return wrong(row, Verdict.MISMATCH, told)


def _judge_unmeasured(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement:
    """Judge an output of a converted model that has no errors against both answers.

    A variant of a package may choose other positions than the golden, from values that it rounds: each may be
    off by what its precision may lose of all, so two of them may change places within twice that.
    """
    if (lead := details.lead) is None:
        table = msgspec.structs.replace(policy, converted=False, judge_by="table")
        return _judge_values(row, details, table)
    most = 2 * 2.0 ** -policy.least_bits(row.name, policy.precision)
    if lead <= most:
        return right_output(msgspec.structs.replace(row, headroom=lead / most))
    told = details.message or f"{wording.output(row.name)} has other positions"
    why = f"the golden's choice leads by {lead:.2g} x the RMS of the values, and {most:.2g} could be rounding"
    return wrong(row, Verdict.MISMATCH, f"{told}; {why}")


def _explained(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputJudgement | None:
    """Judge an output of a converted model by what the EP delivers.

    Return None if that does not explain the error.
    """
    judged = None if details.special else judge_wider(row, details, policy)
    return None if judged is None or judged.fault is Verdict.MISMATCH else judged


def _converted_fault(row: OutputMetrics, error: PrecisionError, details: OutputDetails) -> OutputJudgement:
    too_wide = (
        f"{wording.output(row.name)}: {wording.relative(error)}; the tolerance is wider than the values"
    )
    fault = Verdict.NAN_MISMATCH if details.special else Verdict.MISMATCH
    return wrong(row, fault, details.message or too_wide)


def _at_tolerance(row: OutputMetrics, policy: Policy) -> tuple[OutputMetrics, bool]:
    """Return a row at the policy's tolerance, and whether it passes.

    The number of failing elements is unknown if they were counted under another tolerance.
    """
    tolerance = policy.tolerance_for(row.dtype)
    fits = least_rtol(row.frontier, tolerance.atol) <= tolerance.rtol
    if (row.rtol, row.atol) == (tolerance.rtol, tolerance.atol):
        return row, fits
    details = row.details and msgspec.structs.replace(row.details, message="")
    row = msgspec.structs.replace(
        row,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        mismatched=1,
        headroom=None,
        details=None if details == _NOTHING_MORE else details,
    )
    return row, fits

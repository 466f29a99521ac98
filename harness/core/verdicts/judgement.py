"""A judged output, and the parts of a judgement."""

import math

import msgspec

from harness.core.comparison import wording
from harness.core.comparison.noise_limits import rms_limit
from harness.core.comparison.output_metrics import Frontier, Noise, OutputDetails, OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import EXACT, FLOORS, UNIT_ROUNDOFF, default_tolerance
from harness.core.records.verdict import Verdict

_TWO_ULP = 4.0
"""Relative error, in unit roundoffs, of two units in the last place, which noise limits always allow.

A model with only exact operators has almost no noise, and one bit would exceed its limit."""


class OutputJudgement(msgspec.Struct, frozen=True, kw_only=True):
    """One output, judged under a policy.

    Attributes:
        row: Its metrics. ``mismatched``, ``headroom``, ``rtol``, ``atol`` and the limits of its noise are
            those of the policy.
        fault: ``shape_mismatch``, ``dtype_mismatch``, ``nan_mismatch``, ``mismatch`` or ``precision_loss``;
            ``ill_conditioned`` or ``no_golden`` if the output cannot tell right from wrong; None if it is
            right.
        why: One line for people; empty where it is right.
        approximate: For a right output whose error is larger than its model's rounding: the EP's document
            that allows the error, and the size of the error; else empty.
        delivered: The coarser precision that explains the error of a right output; else empty.
    """

    row: OutputMetrics
    fault: Verdict | None = None
    why: str = ""
    approximate: str = ""
    delivered: str = ""


SAYS_NOTHING = frozenset({Verdict.ILL_CONDITIONED, Verdict.NO_GOLDEN})
"""Faults of an output for which nobody is to blame."""


def right_output(row: OutputMetrics) -> OutputJudgement:
    """Return an output that is right: none of its elements counts as wrong."""
    return OutputJudgement(row=row if not row.mismatched else msgspec.structs.replace(row, mismatched=0))


def wrong(row: OutputMetrics, fault: Verdict, why: str) -> OutputJudgement:
    """Return an output with a fault; the fault's meaning is the reason if no other one is given."""
    if not row.mismatched and fault not in SAYS_NOTHING:
        row = msgspec.structs.replace(row, mismatched=1)
    return OutputJudgement(row=row, fault=fault, why=why or f"{wording.output(row.name)}: {fault.meaning}")


def is_rounded(row: OutputMetrics) -> bool:
    """Return whether a tolerance applies to this output; other types have one right answer."""
    return default_tolerance(row.dtype, "float32") != EXACT


def is_within_two_ulp(row: OutputMetrics) -> bool:
    """Return whether no element is off by more than two units in the last place of its type."""
    return row.dtype in UNIT_ROUNDOFF and part_of_two_ulp(row) <= 1


def part_of_two_ulp(row: OutputMetrics) -> float:
    """Return the largest error of an output of a rounding type, in multiples of two ULP."""
    # ``max_rel`` does not serve: it leaves out elements whose golden is zero.
    return least_rtol(row.frontier, 0.0) / (_TWO_ULP * UNIT_ROUNDOFF[row.dtype])


def least_rtol(frontier: Frontier, atol: float) -> float:
    """Return the smallest rtol of a frontier for an ``atol``; infinite where none passes."""
    for grid_atol, rtol in frontier:
        # The frontier ends with its first rtol of 0, which holds for every greater atol, too.
        if grid_atol == atol or (rtol == 0.0 and grid_atol < atol):
            return rtol
    return math.inf


def noise_at(row: OutputMetrics, policy: Policy) -> Noise | None:
    """Return the noise at the precision that the policy asks for; None if the record lacks it."""
    known = (one for one in row.noises if not one.document)
    return next((one for one in known if one.precision == policy.noise_at), None)


def delivered_by(noise: Noise, policy: Policy) -> str:
    """Return the precision that an EP delivers by its own default and that makes this noise.

    Empty if none.
    """
    if noise.document or noise.precision == policy.noise_at:
        return ""
    floor = FLOORS.get(noise.precision, noise.precision)
    known = (one for one in policy.delivers if FLOORS.get(one) == floor)
    return next((one for one in known if noise.delivers in {"", one}), "")


def excess(row: OutputMetrics, details: OutputDetails, policy: Policy) -> str:
    """Describe by how much an output exceeds the limit, and what may explain that."""
    steps = ""
    if details.steps is not None:
        granted = f", {policy.steps:g} granted" if policy.steps else ""
        steps = f"up to {details.steps:.3g} steps of its quantization{granted}"
    told = details.message or _needs(row)
    if policy.judge_by != "table" and is_rounded(row) and (noise := noise_at(row, policy)):
        of_rms = rms_limit(policy.limits, row.elements)
        told = wording.beyond_noise(row.name, noise, of_rms, policy.limits.max)
        wider = (one for one in row.noises if one.document or delivered_by(one, policy))
        told = "; ".join((told, *map(wording.beyond_wider, wider)))
    elif (noise := noise_at(row, policy)) and noise.unmoved and noise.unmoved < row.mismatched:
        told += f"; rounding explains {row.mismatched - noise.unmoved} of them"
    return "; ".join(filter(None, (told, steps, details.hint)))


def _needs(row: OutputMetrics) -> str:
    name = wording.output(row.name)
    if not is_rounded(row):
        return f"{name}: wrong values, where only equality is right"
    if row.is_lost:
        return f"{name}: relative error {row.relative_error:.2g}, more than any tolerance allows"
    needed = least_rtol(row.frontier, row.atol)
    what = f"needs rtol {needed:.3g}" if math.isfinite(needed) else "passes with no rtol"
    return f"{name}: {what} at atol {row.atol:g}, and has {row.rtol:g}"

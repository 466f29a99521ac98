"""Judge one output under a policy: whether it is right, and if not, its fault.

This is the only place that turns the metrics of an output into a fault, for comparisons, runs and records
that are judged again.
"""

import math
from collections.abc import Iterable

import msgspec

from harness.core import wording
from harness.core.noise import DEFAULT_LIMITS, DOCUMENTED_LIMITS, NoiseLimits, beyond, rms_limit
from harness.core.output_metrics import LOST, Frontier, Noise, OutputDetails, OutputMetrics, PrecisionError
from harness.core.policy import Policy
from harness.core.tolerance import EXACT, FLOORS, UNIT_ROUNDOFF, default_tolerance
from harness.core.verdict import Verdict

FAR = 16.0
"""Limit of the error of a converted model where the tolerance passes: in multiples of the CPU EP's error, or
of the unit roundoff."""

_TWO_ULP = 4.0
"""Relative error, in unit roundoffs, of two units in the last place, which limits of noise always allow.

A model whose operators are all exact has next to no noise, and one bit would exceed its limit."""

_STEP_SLOP = 1e-3
"""Part of a step by which a dequantized value may exceed whole steps; records round to this."""

_NOTHING_MORE = OutputDetails()
_RANK = {verdict: rank for rank, verdict in enumerate(Verdict)}


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One output under a policy.

    Attributes:
        row: Its metrics. ``mismatched``, ``headroom``, ``rtol``, ``atol`` and the limits of its noise are
            those of the policy.
        fault: ``shape_mismatch``, ``dtype_mismatch``, ``nan_mismatch``, ``mismatch`` or ``precision_loss``;
            ``ill_conditioned`` or ``no_golden`` if the output cannot tell right from wrong; None if it is
            right.
        why: One line for people; empty where it is right.
        approximate: For a right output whose error is larger than the rounding of its model: what the EP
            documents that allows it, and how large it is; else empty.
        delivered: The coarser precision that explains the error of a right output; else empty.
    """

    row: OutputMetrics
    fault: Verdict | None = None
    why: str = ""
    approximate: str = ""
    delivered: str = ""


SAYS_NOTHING = frozenset({Verdict.ILL_CONDITIONED, Verdict.NO_GOLDEN})
"""Faults of an output that are nobody's."""


def judge_row(row: OutputMetrics, policy: Policy) -> Judged:
    """Judge one output; ``mismatched`` of its row counts elements under the row's own tolerance."""
    details = row.details or _NOTHING_MORE
    if details.differs:
        return _judge_form(row, details)
    if details.distribution:
        fault = Verdict.NAN_MISMATCH if details.special else Verdict.MISMATCH
        return _right(row) if row.frontier else _wrong(row, fault, details.message)
    if policy.converted and (row.precision_error is not None or details.own):
        return _judge_converted(row, details, policy)
    if details.special:
        return _wrong(row, Verdict.NAN_MISMATCH, details.message)
    return _judge_ties(row, details, policy) if details.ties else _judge_values(row, details, policy)


def judge_rows(rows: Iterable[OutputMetrics], policy: Policy) -> tuple[Judged, ...]:
    """Judge all outputs."""
    return tuple(judge_row(row, policy) for row in rows)


def wrong_for_other_inputs(row: OutputMetrics, first: OutputMetrics | None, policy: Policy) -> bool:
    """Return whether an output for other inputs is wrong beyond doubt, where nothing else is known of these.

    That is so in records without ``other_check``, and of converted models. The output must not only fail the
    tolerance: its error as a whole must be far above that for the first inputs, or it must be the output for
    those, bit for bit.
    """
    table = msgspec.structs.replace(policy, judge_by="table")
    if judge_row(row, table).fault is None:
        return False
    details = row.details or _NOTHING_MORE
    if details.stale or details.differs:
        return details.stale
    if first is None or not is_rounded(row):
        return False
    return (row.relative_error or 0.0) > max(FAR * (first.relative_error or 0.0), LOST)


def worst(judged: Iterable[Judged], noun: str = "outputs") -> tuple[Verdict, str] | None:
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


def is_rounded(row: OutputMetrics) -> bool:
    """Return whether a tolerance applies to this output; other types have one right answer."""
    return default_tolerance(row.dtype, "float32") != EXACT


def is_within_two_ulp(row: OutputMetrics) -> bool:
    """Return whether no element is off by more than two units in the last place of its type."""
    return row.dtype in UNIT_ROUNDOFF and _part_of_two_ulp(row) <= 1


def _part_of_two_ulp(row: OutputMetrics) -> float:
    """Return the largest error, of a type that rounds, in multiples of two units in the last place."""
    # Not by ``max_rel``, which leaves out elements whose golden is zero.
    return _least_rtol(row.frontier, 0.0) / (_TWO_ULP * UNIT_ROUNDOFF[row.dtype])


def explains(error: PrecisionError, precision: str) -> bool:
    """Return whether a computing precision explains an error of a converted model that a tolerance passes."""
    if error.error is None:
        return True  # a relative error is undefined: the tolerance alone decides
    cpu_error = error.cpu_error or 0.0
    explained = FAR * max(UNIT_ROUNDOFF[precision], 0.0 if cpu_error > LOST else cpu_error)
    return error.error <= min(LOST, explained)


def _judge_form(row: OutputMetrics, details: OutputDetails) -> Judged:
    """Judge an output of another shape or element type; no value is compared."""
    if details.own == "lost":
        return _wrong(row, Verdict.NO_GOLDEN, details.message)
    fault = Verdict.SHAPE_MISMATCH if details.differs == "shape" else Verdict.DTYPE_MISMATCH
    return _wrong(row, fault, details.message)


def _judge_values(row: OutputMetrics, details: OutputDetails, policy: Policy) -> Judged:
    """Judge numbers: by steps of their quantization, by noise, or by a tolerance."""
    row, fits = _at_tolerance(row, policy)
    if fits:
        row = msgspec.structs.replace(row, mismatched=0)
    if details.steps and details.steps <= policy.steps + _STEP_SLOP:
        return _right(row if fits else _with_granted(row, details, policy))
    if not is_rounded(row):
        return _right(row) if fits else _judge_exact(row, details, policy)
    by_noise = policy.judge_by == "noise" or (policy.judge_by == "both" and not fits)
    if by_noise:
        if noise := _noise_at(row, policy):
            return _judge_noise(row, noise, details, policy)
        if is_within_two_ulp(row):
            # Any noise allows as much, so it has not been measured. In float16 it exceeds the tolerance.
            return _right(msgspec.structs.replace(row, headroom=_part_of_two_ulp(row)))
    if fits:
        return _judge_lost(row, policy)
    if not by_noise:
        return _wrong(row, Verdict.MISMATCH, _excess(row, details, policy))
    # A record may have the noise of another precision than this policy asks for.
    return _judge_wider(row, details, policy) if row.noises else _judge_by_tables(row, details, policy)


def _judge_by_tables(row: OutputMetrics, details: OutputDetails, policy: Policy) -> Judged:
    """Judge an output without any noise by the tables of the precisions that the EP delivers."""
    for delivered in policy.delivers if policy.fixed is None else ():
        table = default_tolerance(row.dtype, FLOORS.get(delivered, policy.precision))
        if _least_rtol(row.frontier, table.atol) <= table.rtol:
            return _judge_bits(row, delivered, policy)
    return _wrong(row, Verdict.MISMATCH, _excess(row, details, policy))


def _judge_exact(row: OutputMetrics, details: OutputDetails, policy: Policy) -> Judged:
    """Judge an output that is wrong, and of which each element has one right answer."""
    noise = _noise_at(row, policy)
    if noise is not None and noise.is_all:
        return _judge_all_noise(row, noise, policy)
    return _wrong(row, Verdict.MISMATCH, _excess(row, details, policy))


def _noise_at(row: OutputMetrics, policy: Policy) -> Noise | None:
    """Return the noise at the precision that the policy asks for; None if a record does not have it."""
    known = (one for one in row.noises if not one.document)
    return next((one for one in known if one.precision == policy.noise_at), None)


def _with_granted(row: OutputMetrics, details: OutputDetails, policy: Policy) -> OutputMetrics:
    """Return a row that is right only because of the steps that the policy grants, with these steps."""
    details = msgspec.structs.replace(details, granted=policy.steps)
    return msgspec.structs.replace(row, headroom=(details.steps or 0.0) / policy.steps, details=details)


def _judge_noise(row: OutputMetrics, noise: Noise, details: OutputDetails, policy: Policy) -> Judged:
    of_rms = rms_limit(policy.limits, row.elements)
    headroom = beyond(noise, policy.limits, row.elements)
    limited = msgspec.structs.replace(noise, rms_limit=of_rms, max_limit=policy.limits.max)
    row = _with_noise(msgspec.structs.replace(row, headroom=headroom), noise, limited)
    if is_within_two_ulp(row):
        return _right(row)
    if headroom > 1:
        return _judge_wider(row, details, policy)
    if noise.is_all:
        return _judge_all_noise(row, noise, policy)
    if policy.is_coarser(noise.precision):
        return _judge_bits(row, noise.precision, policy)
    return _judge_lost(row, policy)


def _with_noise(row: OutputMetrics, noise: Noise, other: Noise) -> OutputMetrics:
    """Return a row with another noise in the place of one that it has."""
    own, *wider = (other if one is noise else one for one in row.noises)
    return msgspec.structs.replace(row, noise=msgspec.structs.replace(own, wider=tuple(wider)))


def _judge_all_noise(row: OutputMetrics, noise: Noise, policy: Policy) -> Judged:
    """Judge an output that rounding takes; at the model's own precision nobody can compute it."""
    of_own = (one for one in row.noises if not policy.is_coarser(one.precision))
    if any(one.is_all for one in of_own) or not policy.is_coarser(noise.precision):
        return _wrong(row, Verdict.ILL_CONDITIONED, wording.ill_conditioned(row, noise))
    return _wrong(row, Verdict.PRECISION_LOSS, wording.nothing_left(row, noise, policy.remedy))


def _judge_wider(row: OutputMetrics, details: OutputDetails, policy: Policy) -> Judged:
    """Judge an error that the noise does not explain, by what else may: see ``Noise.wider``."""
    for noise in row.noises:
        if noise.document and _explains(noise, row.elements, DOCUMENTED_LIMITS):
            return msgspec.structs.replace(_right(row), approximate=wording.approximate(row, noise))
        delivered = _delivered(noise, policy)
        if delivered and _explains(noise, row.elements, policy.limits):
            if noise.is_all:
                return _judge_all_noise(row, noise, policy)
            return _judge_bits(row, delivered, policy)
    return _wrong(row, Verdict.MISMATCH, _excess(row, details, policy))


def _delivered(noise: Noise, policy: Policy) -> str:
    """Return the precision that an EP delivers by its own default, and whose noise this is; empty if none."""
    if noise.document or noise.precision == policy.noise_at:
        return ""
    known = (one for one in policy.delivers if FLOORS.get(one) == noise.precision)
    return next((one for one in known if noise.delivers in {"", one}), "")


def _judge_bits(row: OutputMetrics, delivered: str, policy: Policy) -> Judged:
    """Judge an output that is right at a precision coarser than the model's own: is it of use?"""
    least = policy.least_bits(row.name, delivered)
    if row.delivered_bits is not None and row.delivered_bits < least:
        return _wrong(
            row, Verdict.PRECISION_LOSS, wording.precision_loss(row, delivered, least, policy.remedy)
        )
    if delivered not in policy.delivers:
        return _right(row)
    return msgspec.structs.replace(
        _right(row), delivered=delivered, approximate=wording.delivered(row, delivered)
    )


def _judge_lost(row: OutputMetrics, policy: Policy) -> Judged:
    """Judge an output that a tolerance passes, but of which more than half may be lost."""
    if not row.is_lost:
        return _right(row)
    noise = _noise_at(row, policy)
    if noise is not None and _explains(noise, row.elements, DEFAULT_LIMITS):  # whatever those of the policy
        return _judge_all_noise(row, noise, policy)
    row = msgspec.structs.replace(row, mismatched=max(1, row.elements))
    return _wrong(row, Verdict.MISMATCH, wording.lost(row))


def _explains(noise: Noise, elements: int, limits: NoiseLimits) -> bool:
    return beyond(noise, limits, elements) <= 1


def _judge_ties(row: OutputMetrics, details: OutputDetails, policy: Policy) -> Judged:
    """Judge positions that differ, and whose values may tie."""
    if details.ties_of:
        values = policy.tolerance_for(details.ties_of)
        if _least_rtol(details.tie_frontier, values.atol) <= values.rtol:
            return _right(msgspec.structs.replace(row, headroom=0.0))
    return _judge_exact(row, details, policy)


def _judge_converted(row: OutputMetrics, details: OutputDetails, policy: Policy) -> Judged:
    """Judge an output of a converted model; see ``harness.core.precise``."""
    error = row.precision_error
    if details.own == "equal":
        return _right(row)
    if details.own == "lost":
        return _wrong(row, Verdict.NO_GOLDEN, details.message)
    if error is None or not error.measured:
        return _judge_values(row, details, msgspec.structs.replace(policy, converted=False, judge_by="table"))
    tolerance = policy.tolerance_for(row.dtype)
    within = error.in_limits or _least_rtol(error.own_frontier, tolerance.atol) <= tolerance.rtol
    row, fits = _at_tolerance(row, policy)
    row = msgspec.structs.replace(row, precision_error=msgspec.structs.replace(error, within=within))
    if within or (fits and not details.special and explains(error, policy.precision)):
        return _right(row)
    if error.lost:
        return _wrong(row, Verdict.NO_GOLDEN, details.hint)
    return _explained(row, details, policy) or _converted_fault(row, error, details)


def _explained(row: OutputMetrics, details: OutputDetails, policy: Policy) -> Judged | None:
    """Judge an output of a converted model by what the EP delivers; None where that does not explain it."""
    judged = None if details.special else _judge_wider(row, details, policy)
    return None if judged is None or judged.fault is Verdict.MISMATCH else judged


def _converted_fault(row: OutputMetrics, error: PrecisionError, details: OutputDetails) -> Judged:
    too_wide = (
        f"{wording.output(row.name)}: {wording.relative(error)}; the tolerance is wider than the values"
    )
    fault = Verdict.NAN_MISMATCH if details.special else Verdict.MISMATCH
    return _wrong(row, fault, details.message or too_wide)


def _at_tolerance(row: OutputMetrics, policy: Policy) -> tuple[OutputMetrics, bool]:
    """Return a row at the policy's tolerance, and whether it passes.

    How many elements fail is not known if they were counted under another tolerance.
    """
    tolerance = policy.tolerance_for(row.dtype)
    fits = _least_rtol(row.frontier, tolerance.atol) <= tolerance.rtol
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


def _least_rtol(frontier: Frontier, atol: float) -> float:
    """Return the smallest rtol that a frontier has for an ``atol``; infinite where none passes."""
    for grid_atol, rtol in frontier:
        # The frontier ends with its first rtol of 0, which holds for every greater atol, too.
        if grid_atol == atol or (rtol == 0.0 and grid_atol < atol):
            return rtol
    return math.inf


def _right(row: OutputMetrics) -> Judged:
    return Judged(row=row if not row.mismatched else msgspec.structs.replace(row, mismatched=0))


def _wrong(row: OutputMetrics, fault: Verdict, why: str) -> Judged:
    if not row.mismatched and fault not in SAYS_NOTHING:
        row = msgspec.structs.replace(row, mismatched=1)
    return Judged(row=row, fault=fault, why=why or f"{wording.output(row.name)}: {fault.meaning}")


def _excess(row: OutputMetrics, details: OutputDetails, policy: Policy) -> str:
    """Describe by how much an output exceeds what is allowed, and what may explain that."""
    steps = ""
    if details.steps is not None:
        granted = f", {policy.steps:g} granted" if policy.steps else ""
        steps = f"up to {details.steps:.3g} steps of its quantization{granted}"
    excess = details.message or _needs(row)
    if policy.judge_by != "table" and is_rounded(row) and (noise := _noise_at(row, policy)):
        of_rms = rms_limit(policy.limits, row.elements)
        excess = wording.beyond_noise(row.name, noise, of_rms, policy.limits.max)
        wider = (one for one in row.noises if one.document or _delivered(one, policy))
        excess = "; ".join((excess, *map(wording.beyond_wider, wider)))
    return "; ".join(filter(None, (excess, steps, details.hint)))


def _needs(row: OutputMetrics) -> str:
    name = wording.output(row.name)
    if not is_rounded(row):
        return f"{name}: wrong values, where only equality is right"
    if row.is_lost:
        return f"{name}: relative error {row.relative_error:.2g}, more than any tolerance allows"
    needed = _least_rtol(row.frontier, row.atol)
    what = f"needs rtol {needed:.3g}" if math.isfinite(needed) else "passes with no rtol"
    return f"{name}: {what} at atol {row.atol:g}, and has {row.rtol:g}"

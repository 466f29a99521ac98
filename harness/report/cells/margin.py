"""The precision that a cell delivered where it is lower than requested, and how many bits are left to lose.

It is the precision that explains the error within the limits, as for the verdict; an error that none explains
shows no precision.
"""

from harness.core.comparison.noise_limits import DEFAULT_LIMITS, NoiseLimits, beyond
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import FLOORS, UNIT_ROUNDOFF
from harness.core.findings.delivered_precision import delivered_precision
from harness.core.records.record import Record
from harness.core.records.verdict import Family, Verdict

NEAR_BITS = 2.0
"""Bits above the limit of ``precision_loss`` within which a right answer is near it."""

_SHORT = {"float32": "fp32", "float16": "fp16", "bfloat16": "bf16"}

_LIMIT_OF_ALL = "bits."
"""The setting of a record's policy that limits every output without its own limit."""


def lower_precision(record: Record) -> str:
    """Return the delivered precision, such as ``bf16``, if it is lower than requested; else empty."""
    if record.verdict.family is not Family.PASSED and record.verdict is not Verdict.PRECISION_LOSS:
        return ""
    shown = [one for row in record.outputs if _is_coarser(one := _delivered(row, record), _asked(record))]
    coarsest = max(shown, key=_roundoff, default="")
    return _SHORT.get(coarsest, coarsest)


def bits_to_spare(record: Record) -> float | None:
    """Return by how many bits a right answer is above the limit of ``precision_loss``, in its worst output.

    Return None if that limit does not apply: the model's own precision was delivered, or nothing shows which.
    """
    if record.verdict.family is not Family.PASSED:
        return None
    own = str(record.policy.get("own_precision") or _asked(record))
    found = [one for row in record.outputs if (one := _to_spare(row, record, own)) is not None]
    return min(found, default=None)


def is_near_limit(record: Record) -> bool:
    """Return whether a right answer is within ``NEAR_BITS`` of the limit."""
    left = bits_to_spare(record)
    return left is not None and left < NEAR_BITS


def _to_spare(row: OutputMetrics, record: Record, own: str) -> float | None:
    delivered = _delivered(row, record)
    if row.delivered_bits is None or not _is_coarser(delivered, own):
        return None
    limit = record.policy.get(_LIMIT_OF_ALL + row.name, record.policy.get(_LIMIT_OF_ALL))
    given = {row.name: float(limit)} if isinstance(limit, int | float) else {}
    return row.delivered_bits - Policy(bits=given).least_bits(row.name, delivered)


def _delivered(row: OutputMetrics, record: Record) -> str:
    """Return the precision whose noise explains the error of an output; empty if none does."""
    if row.noise is None:  # the tables judged
        return delivered_precision([row]) if record.approximate else ""
    limits = NoiseLimits(
        rms=float(record.policy.get("limits.rms", DEFAULT_LIMITS.rms)),
        max=float(record.policy.get("limits.max", DEFAULT_LIMITS.max)),
    )
    of_precision = (noise for noise in row.noises if not noise.document)
    explains = (noise for noise in of_precision if beyond(noise, limits, row.elements) <= 1)
    found = next(explains, None)
    return "" if found is None else found.delivers or found.precision


def _asked(record: Record) -> str:
    return str(record.policy.get("precision") or Policy().precision)


def _is_coarser(one: str, other: str) -> bool:
    return _roundoff(one) > _roundoff(other)


def _roundoff(precision: str) -> float:
    """Return the unit roundoff of a precision; 0 for an unknown one."""
    return UNIT_ROUNDOFF.get(FLOORS.get(precision, precision), 0.0)

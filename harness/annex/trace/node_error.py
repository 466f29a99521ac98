"""The error of one output of a trial, in multiples of the rounding noise at the delivered precision."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from harness.core.comparison.noise_limits import DEFAULT_LIMITS, beyond
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.findings.delivered_precision import DELIVERED
from harness.core.noise.noise import PRECISIONS
from harness.core.records.precision import COMPUTE_HEAVY
from harness.core.records.trace import BAND, TraceError
from harness.core.verdicts.judgement import is_within_two_ulp

OF_INT8 = "int8"
"""The precision of a model that was quantized."""

_UNIFORM = 3.0**-0.5
"""Root mean square of errors that are uniform up to one unit roundoff."""


_FEWEST_BITS = {"float32": 14.0, "float16": 10.0, "bfloat16": 5.0}
"""Precision -> right bits from which on the result of one node counts as computed in it.

The node alone, on golden inputs: one rounding of its result leaves 12.3 bits in float16 and 9.3 in bfloat16,
with its operands rounded as well some 11.5 and 8.5. Over a whole model fewer are left: see
``harness.core.findings.delivered_precision``.
"""


def delivered_by_most(nodes: Iterable[tuple[str, Sequence[OutputMetrics]]]) -> str:
    """Return the precision whose noise most nodes show; the finest one without a majority.

    A node is its operator with the rows of its results on golden inputs. Operators that sum products decide
    where there are some: an EP may compute them alone in a coarser precision. The faults of a few nodes have
    no majority.
    """
    each = list(nodes)
    heavy = [bits for op_type, rows in each if op_type in COMPUTE_HEAVY and (bits := _fewest_bits(rows))]
    precisions = [_of_bits(bits) for bits in heavy] or [_shown(rows) for _, rows in each]
    votes = Counter(filter(None, precisions))
    precision, count = max(votes.items(), key=lambda pair: pair[1], default=("", 0))
    return precision if precision in DELIVERED and 2 * count > votes.total() else DELIVERED[0]


def error_of(
    rows: Sequence[OutputMetrics], delivers: str, steps: Mapping[str, float] = MappingProxyType({})
) -> TraceError:
    """Return the error of several outputs together: the largest of each figure.

    ``steps`` are, for results that are quantized to int8, the relative error that quantization gives them.
    """
    noises = [
        _quantized_multiple(row, steps.get(row.name, 0.0))
        if delivers == OF_INT8
        else _multiple(row, delivers)
        for row in rows
    ]
    known = [noise for noise in noises if noise is not None]
    unknown = [row for row, noise in zip(rows, noises, strict=True) if noise is None]
    relative = [_relative(row) for row in rows]
    largest = max(relative, default=math.inf)
    return TraceError(
        noise=max(known) if len(known) == len(rows) else None,
        exact=all(_is_exact(row) for row in rows),
        allowed=bool(unknown)
        and not any(row.mismatched for row in unknown)
        and max(known, default=0.0) <= BAND,
        relative=largest if math.isfinite(largest) else None,
        sqnr_db=min((row.sqnr_db for row in rows if row.sqnr_db is not None), default=None),
        cosine=min((row.cosine for row in rows if row.cosine is not None), default=None),
        max_abs=max((row.max_abs for row in rows if row.max_abs is not None), default=None),
        special=sum(row.details.special for row in rows if row.details is not None),
        flushed=sum(row.details.flushed for row in rows if row.details is not None),
        differs=next((row.details.differs for row in rows if row.details and row.details.differs), ""),
    )


def _multiple(row: OutputMetrics, delivers: str) -> float | None:
    """Return the error in multiples of the noise, on the scale where ``BAND`` is the limit.

    Where the record has no noise of the delivered precision, that of a finer one is scaled: noise is
    proportional to the unit roundoff. At a precision coarser than the type of the result, inputs and results
    of any operator are rounded, even of one that only copies: noise is then at least that of one rounding.
    Where a document of the EP allows a larger error, as WGSL does, that is the noise.
    """
    if _is_exact(row):
        return 0.0
    if row.noise is None:
        return _of_last_places(row, delivers)
    rounding = [one for one in row.noises if not one.document] or [row.noise]
    noise = next((one for one in rounding if one.precision == delivers), rounding[0])
    documented = [one for one in row.noises if one.document]
    multiples = [_of_limit(noise, row) * _own_share(row, noise, delivers)]
    multiples += [_of_limit(one, row) for one in documented]
    least = min(multiples)
    return least if math.isfinite(least) else None


def _of_limit(noise: Noise, row: OutputMetrics) -> float:
    return BAND * beyond(noise, DEFAULT_LIMITS, row.elements)


def _of_last_places(row: OutputMetrics, delivers: str) -> float | None:
    """Return an error within two units in the last place in multiples of one rounding; None for a larger one.

    The engine draws no noise for it, since every policy lets it pass. So it is within the band.
    """
    if not is_within_two_ulp(row) or row.relative_error is None:
        return None
    unit = max(UNIT_ROUNDOFF[row.dtype], PRECISIONS[delivers])
    return min(BAND, row.relative_error / (unit * _UNIFORM))


def _quantized_multiple(row: OutputMetrics, relative: float) -> float | None:
    """Return the root mean square of an error in multiples of the noise of quantization.

    A step is the same for small elements as for large ones, so no element counts by itself. What comes from
    earlier nodes is about as large as in bfloat16.
    """
    if _is_exact(row):
        return 0.0
    noise = row.noise
    if row.rmse is None or row.sqnr_db is None or (noise is not None and noise.unmoved is not None):
        return None
    steps = relative * row.rmse * 10 ** (row.sqnr_db / 20)
    earlier = 0.0
    if noise is not None and noise.rms:
        earlier = row.rmse / noise.rms * PRECISIONS["bfloat16"] / PRECISIONS.get(noise.precision, 1.0)
    expected = math.hypot(steps, earlier)
    return row.rmse / expected if expected else None


def _own_share(row: OutputMetrics, noise: Noise, delivers: str) -> float:
    """Return the noise of the record over that of the delivered precision, for the whole output."""
    unit, own = PRECISIONS[delivers], PRECISIONS.get(noise.precision, PRECISIONS[delivers])
    if unit <= min(own, UNIT_ROUNDOFF.get(row.dtype, unit)):
        return 1.0
    ratio = max(1.0, unit / own)
    if not noise.rms or row.rmse is None or row.sqnr_db is None:
        return 1 / ratio
    spread = row.rmse / noise.rms
    size = row.rmse * 10 ** (row.sqnr_db / 20)
    return spread / math.hypot(spread * ratio, size * unit * _UNIFORM)


def _relative(row: OutputMetrics) -> float:
    if _is_exact(row):
        return 0.0
    return math.inf if row.relative_error is None else row.relative_error


def _is_exact(row: OutputMetrics) -> bool:
    special = row.details is not None and (row.details.special or row.details.differs)
    if row.max_abs is None:  # texts, or no finite pair
        return not (row.mismatched or special)
    return row.max_abs == 0 and not special


def _fewest_bits(rows: Sequence[OutputMetrics]) -> float | None:
    """Return the fewest right bits of the results of a node; None if they are exact.

    They show the precision of operands: noise would not, because that of a sum grows with its terms, and
    where only operands are rounded to a coarser precision, the sum is not.
    """
    return min((row.delivered_bits for row in rows if row.delivered_bits is not None), default=None)


def _of_bits(bits: float) -> str:
    return next((name for name, fewest in _FEWEST_BITS.items() if bits >= fewest), "")


def _shown(rows: Sequence[OutputMetrics]) -> str:
    """Return the coarsest precision whose noise the results of a node show; empty if they are exact."""
    likes = ["float16" if row.noise.like == "tf32" else row.noise.like for row in rows if row.noise]
    return max((like for like in likes if like in DELIVERED), key=DELIVERED.index, default="")

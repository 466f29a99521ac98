"""The precision that each column delivered, whatever precision was requested."""

from collections.abc import Iterable

import msgspec

from harness.core.records.precision import COMPUTE_HEAVY
from harness.core.records.record import Record
from harness.core.records.verdict import WRONG_NUMBERS, Family
from harness.report.cells.column import Column
from harness.report.words.figures import FiveNumbers, spread

SCALE_BITS = 24
"""Right end of the plot: the significand of float32."""

_BANDS = (
    # Delivered bits of each arithmetic on such models, from every layer rounded (deep models) to only the
    # operands of one product rounded: bfloat16 7.7 to 9.7, float16 (and TF32, with the same significand) 10.6
    # to 12.7, float32 20 and more. The edges lie in the gaps.
    (6.0, "less than bfloat16"),
    (10.2, "about bfloat16"),
    (16.0, "about float16"),
    (float("inf"), "about float32"),
)


class ColumnPrecision(msgspec.Struct, frozen=True, kw_only=True):
    """Delivered bits of one column over its compute-heavy cells with float32 outputs.

    Attributes:
        exact: Cells whose outputs equal the golden exactly, which have no figure.
        bits: Spread over the measured cells; each cell counts with its least precise output.
        reading: The arithmetic between the quartiles of the cells; empty without figures.
    """

    column: Column
    measured: int
    exact: int
    bits: FiveNumbers | None
    reading: str


def measure_column(column: Column, records: Iterable[Record]) -> ColumnPrecision:
    """Measure one column.

    Cells with wrong values count too: an EP that computes in bfloat16 fails a float32 tolerance, and would be
    invisible without these cells.
    """
    figures = []
    exact = 0
    for record in records:
        if not _tells_precision(record):
            continue
        outputs = [output for output in record.outputs if output.dtype == "float32"]
        bits = [output.delivered_bits for output in outputs if output.delivered_bits is not None]
        if bits:
            figures.append(min(bits))
        elif outputs and all(output.max_abs == 0.0 for output in outputs):
            exact += 1
    found = spread(figures)
    return ColumnPrecision(
        column=column,
        measured=len(figures),
        exact=exact,
        bits=found,
        reading=_reading(found) if found else "",
    )


def on_scale(bits: float) -> float:
    """Return the place of a figure on the plot, in percent of its width."""
    return round(100 * min(max(bits, 0.0), SCALE_BITS) / SCALE_BITS, 2)


def _tells_precision(record: Record) -> bool:
    judged = record.verdict.family is Family.PASSED or record.verdict in WRONG_NUMBERS
    return judged and record.placement is not None and not COMPUTE_HEAVY.isdisjoint(record.placement.ep_ops)


def _reading(found: FiveNumbers) -> str:
    low, high = _band(found.q1), _band(found.q3)
    return low if low == high else f"mixed: {low} to {high.removeprefix('about ')}"


def _band(bits: float) -> str:
    return next(name for edge, name in _BANDS if bits < edge)

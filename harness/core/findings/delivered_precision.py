"""The precision that an EP delivered in a cell, whatever was asked for: from its outputs' rows. Pure."""

from collections.abc import Iterable

from harness.core.comparison.output_metrics import OutputMetrics

DELIVERED = ("float32", "float16", "bfloat16")
"""Precisions that can be told apart, the finest first."""

_FEWEST_BITS = {"float32": 14.0, "float16": 9.0, "bfloat16": 5.0}
"""Precision -> delivered bits from which on an output without known noise counts as computed in this
precision.

Usual are 20, 10.6 and 7.7 bits. The borders lie between them; the border of bfloat16 is as far below.
"""


def delivered_precision(outputs: Iterable[OutputMetrics]) -> str:
    """Return the coarsest precision that the outputs show; empty if none shows any.

    An output shows the precision whose noise is nearest to its error. If the model's noise is unknown, its
    delivered bits decide. Exact outputs show nothing, nor do outputs whose error no precision explains.
    """
    shown = [precision for row in outputs if (precision := _of(row)) in DELIVERED]
    return max(shown, key=DELIVERED.index, default="")


def _of(row: OutputMetrics) -> str:
    if row.noise is not None and row.noise.like:
        return row.noise.like
    bits = row.delivered_bits
    if bits is None:
        return ""
    return next((name for name, fewest in _FEWEST_BITS.items() if bits >= fewest), "")

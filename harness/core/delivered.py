"""The precision that an EP delivered in a cell, whatever was asked: from the rows of its outputs. Pure."""

from collections.abc import Iterable

from harness.core.output_metrics import OutputMetrics

DELIVERED = ("float32", "float16", "bfloat16")
"""Precisions that can be told apart, the finest first."""

_FEWEST_BITS = {"float32": 14.0, "float16": 9.0, "bfloat16": 5.0}
"""Precision -> delivered bits from which on an output without known noise counts as computed in it.

Usual are 20, 10.6 and 7.7; the borders are between them, and for bfloat16 as far below.
"""


def delivered_precision(outputs: Iterable[OutputMetrics]) -> str:
    """Return the coarsest precision that the outputs behave like; empty if none shows any.

    An output shows it by the precision whose noise is nearest to its error, or, where the noise of the model
    is not known, by its delivered bits. Exact outputs, and those whose error no precision explains, show
    nothing.
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

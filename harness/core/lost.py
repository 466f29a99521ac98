"""Answers of which more than half is lost: no tolerance makes them right, however small their values are.

An absolute tolerance that is wide beside the values of an output passes anything, zeros included. So whatever
tolerance passes an output, its error as a whole must stay below half of the golden. Where rounding alone does
as much to this very model, there is nothing to tell right from wrong by.
"""

import math
import sys

from harness.core.output_metrics import OutputMetrics
from harness.core.spread import DEFAULT_LIMITS, rms_limit

LOST = 0.5
"""Relative error from which on an answer is lost."""


def is_lost(row: OutputMetrics) -> bool:
    """Whether an error exceeds half of the golden, as roots of sums of squares; no if that is all 0."""
    return row.delivered_bits is not None and relative_error(row.delivered_bits) > LOST


def is_noise(row: OutputMetrics) -> bool:
    """Whether the rounding noise of the model, where it is known, explains an error, whatever judges it."""
    return row.noise is not None and row.noise.rms <= rms_limit(DEFAULT_LIMITS, row.elements)


def relative_error(delivered_bits: float) -> float:
    """``norm(out - golden) / norm(golden)``; infinite where no float64 holds it."""
    return math.inf if delivered_bits <= -sys.float_info.max_exp else float(2.0**-delivered_bits)

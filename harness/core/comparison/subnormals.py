"""Subnormal numbers that were flushed to zero, as many processors do by default."""

import numpy as np
from numpy.typing import NDArray

from harness.core.values.value import Array

SMALLEST_NORMAL = {"float64": 2.0**-126, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
"""Element type -> smallest number that is not subnormal.

Accelerators without double units compute float64 in single precision, and flush as there.
"""

USEFUL = frozenset({"float16"})
"""Element types whose subnormal numbers are of use: the probability of one of 50,000 words is below 6e-5."""


def flushed(golden: Array, actual: Array, dtype: str) -> NDArray[np.bool_]:
    """Return which elements are zero on one side and subnormal on the other.

    Args:
        golden: Numbers of float64, or of complex128.
        actual: Likewise, of the same shape.
        dtype: The element type of the original numbers; one without subnormals has no flushed elements.
    """
    smallest = SMALLEST_NORMAL.get(dtype, 0.0)
    found: NDArray[np.bool_] = (golden == 0) != (actual == 0)
    if found.any():
        with np.errstate(invalid="ignore"):
            found &= np.maximum(np.abs(golden), np.abs(actual)) < smallest
    return found

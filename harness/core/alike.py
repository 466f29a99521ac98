"""Elements of like magnitude in a tensor, and what is usual among them.

Noise belongs to an element. Where few draws tell little of one, others of its size tell what they may have
missed; those that are far larger or smaller tell nothing.
"""

import numpy as np
from numpy.typing import NDArray

from harness.core.value import Floats

_SMALLEST_PART = 16
"""Zeros have no magnitude: the smallest other elements are like them, one in so many, and one at least."""

_NO_EXPONENT = -(1 << 20)
"""Below every exponent: that of zero."""


def usual(sizes: Floats, numbers: Floats, counted: NDArray[np.bool_], part: float) -> Floats:
    """Return, for each element, a quantile of the numbers of those of like magnitude.

    Args:
        sizes: Magnitudes of all elements, finite, one-dimensional.
        numbers: A number for each of them.
        counted: Which elements count.
        part: The quantile, from 0 to 1.

    Returns:
        Of float64; 0 where no element that counts is from half as large to twice as large, by binades.
    """
    exponents = np.where(sizes > 0, np.frexp(sizes)[1], _NO_EXPONENT)
    chosen = np.flatnonzero(counted & (sizes > 0))
    chosen = chosen[np.argsort(exponents[chosen], kind="stable")]
    sorted_exponents, sorted_numbers = exponents[chosen], numbers[chosen]
    levels, places = np.unique(exponents, return_inverse=True)
    found = np.zeros(levels.size)
    for index, level in enumerate(levels):
        if level == _NO_EXPONENT:
            zeros = numbers[counted & (sizes == 0)]
            smallest = chosen[np.argsort(sizes[chosen], kind="stable")][: _count(chosen.size)]
            near = numbers[smallest] if smallest.size else zeros
        else:
            start, stop = np.searchsorted(sorted_exponents, [level - 1, level + 2])
            near = sorted_numbers[start:stop]
        found[index] = np.quantile(near, part) if near.size else 0.0
    usual_numbers: Floats = found[places.reshape(-1)]
    return usual_numbers


def _count(elements: int) -> int:
    return -(-elements // _SMALLEST_PART)

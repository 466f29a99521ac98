"""Elements of similar magnitude in a tensor, and the usual noise among them.

Noise belongs to an element. Few draws say little about one element. Elements of similar magnitude show what
these draws may have missed; far larger or smaller ones do not.
"""

import numpy as np
from numpy.typing import NDArray

from harness.core.values.value import Floats

_SMALLEST_PART = 16
"""Zeros have no magnitude: they are grouped with the smallest nonzero elements, one in so many, and at
least one."""

_NO_EXPONENT = -(1 << 20)
"""Exponent of zero: below every other one."""


def usual(sizes: Floats, numbers: Floats, counted: NDArray[np.bool_], part: float) -> Floats:
    """Return, for each element, a quantile of the numbers of the elements of similar magnitude.

    Args:
        sizes: Magnitudes of all elements, finite, one-dimensional.
        numbers: A number for each of them.
        counted: Which elements count.
        part: The quantile, from 0 to 1.

    Returns:
        The result is float64. It is 0 if no counted element has between half and twice the magnitude, by
        binades.
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

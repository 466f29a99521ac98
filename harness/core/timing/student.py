"""Student's t distribution, the trigamma function, and which of many small p-values are discoveries."""

import functools
import math
from collections.abc import Mapping

_STEPS = 300
_TINY = 1e-300
_CLOSE = 1e-14
_ASYMPTOTIC = 8.0
"""From where on a series of five terms has ten digits."""


def survival(t: float, degrees: float) -> float:
    """Return the probability that Student's t exceeds ``t``.

    Args:
        t: Any number; infinite ones have a probability of 0 and 1.
        degrees: Degrees of freedom, above 0, whole or not.
    """
    if math.isinf(t):
        return 0.0 if t > 0 else 1.0
    tail = 0.5 * _incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
    return tail if t >= 0 else 1 - tail


@functools.lru_cache(maxsize=1024)
def critical(probability: float, degrees: float) -> float:
    """Return the ``t`` that Student's t exceeds with the given probability, which is at most 0.5."""
    low, high = 0.0, 1.0
    while survival(high, degrees) > probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if survival(middle, degrees) > probability else (low, middle)
    return high


def discoveries(p_values: Mapping[str, float], rate: float) -> frozenset[str]:
    """Return the names whose p-values are discoveries; on average a share of ``rate`` of these is false.

    The step-up procedure of Benjamini and Hochberg, "Controlling the false discovery rate", Journal of the
    Royal Statistical Society B 57, 1995. It holds for independent tests and for positively dependent ones,
    such as cells of one night (Benjamini and Yekutieli, Annals of Statistics 29, 2001).
    """
    ordered = sorted(p_values, key=p_values.__getitem__)
    last = 0
    for rank, name in enumerate(ordered, 1):
        if p_values[name] <= rate * rank / len(ordered):
            last = rank
    return frozenset(ordered[:last])


def trigamma(x: float) -> float:
    """Return the second derivative of the logarithm of the gamma function, ``x`` above 0 (DLMF 5.15).

    Twice the number is the degrees of freedom of which the logarithm of chi-squared has this variance.
    """
    value = 0.0
    while x < _ASYMPTOTIC:
        value += 1 / x**2
        x += 1
    return value + 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5) + 1 / (42 * x**7)


def trigamma_inverse(value: float) -> float:
    """Return the ``x`` whose trigamma is ``value``, above 0; from 1e-3 to 1e6."""
    low, high = 1e-3, 1e6
    for _ in range(80):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if trigamma(middle) > value else (low, middle)
    return high


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularized incomplete beta function (DLMF 8.17), by its continued fraction, 8.17.22."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    # Lentz's method: numerator and denominator of the fraction, step by step.
    c, d = 1.0, 1 / _away_from_0(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_0(1 + term * d)
            c = _away_from_0(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return front * value / a


def _away_from_0(value: float) -> float:
    return value if abs(value) > _TINY else _TINY

"""Limits of an error in multiples of its model's rounding noise; ``harness.core.noise.noise`` measures it."""

import math

import msgspec

from harness.core.comparison.output_metrics import Noise


class NoiseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Multiples of the noise within which a result passes.

    Attributes:
        rms: Limit of the root mean square of the error over that of the spread.
        max: Limit of the largest error of an element over the spread of that element.
    """

    rms: float = 3.0
    max: float = 32.0


DEFAULT_LIMITS = NoiseLimits()

EACH = 2.0
"""Limit of ``Noise.each`` as a multiple of that of ``Noise.rms``: small elements vary more.

Healthy results reach at most 4.6: transforms of 1,000 points, and float16 that is summed in float16.
"""

DOCUMENTED_LIMITS = NoiseLimits(rms=3.0**0.5, max=6.0)
"""Multiples of the noise of documented errors within which a document allows a result.

Errors of the largest allowed size have a root mean square of 3 ** 0.5 spreads, and a sum of many errors
exceeds six spreads in some 2e-9 of its elements.
"""


def rms_limit(limits: NoiseLimits, elements: int) -> float:
    """Return ``limits.rms`` for an output of so many elements.

    A root mean square over few elements is uncertain, both of the error and of the spread. So the limit for n
    elements is ``1 + 1 / sqrt(n)`` times the limit for many.
    """
    return limits.rms * (1 + 1 / math.sqrt(max(1, elements)))


def beyond(noise: Noise, limits: NoiseLimits, elements: int) -> float:
    """Return an error of so many elements in units of the limits: more than 1 is beyond them."""
    if noise.unmoved is not None:
        return math.inf if noise.unmoved else 0.0
    of_rms = rms_limit(limits, elements)
    return max(noise.rms / of_rms, (noise.each or 0.0) / (EACH * of_rms), noise.max / limits.max)

"""Rounding to fewer bits by arithmetic alone, as the operators of every opset can."""

import numpy as np

from benchmarks.detection.net import Array, Net, Site

SIGNIFICAND = 24
"""Bits of float32's significand, the hidden one included."""


def round_to_bits(net: Net, site: Site, value: str, bits: int) -> str:
    """Round a float32 value to nearest with a significand of some bits, the hidden one included.

    T. J. Dekker's splitting (Numerische Mathematik 18, 1971): with c = (2**s + 1) x, the high part of x is
    c - (c - x), which has 24 - s bits. It overflows where |x| > 2**(127 - s), which no model here has but in
    masks; those are let through.
    """
    big = float(2 ** (SIGNIFICAND - bits) + 1)
    within = site.op("Clip", value, net.scalar(-1e30), net.scalar(1e30))
    scaled = site.op("Mul", within, net.scalar(big))
    high = site.op("Sub", scaled, site.op("Sub", scaled, within))
    return site.op("Where", site.op("Greater", site.op("Abs", value), net.scalar(1e29)), value, high)


def round_array(values: Array, bits: int) -> Array:
    """Float32 weights to nearest with a significand of some bits, the hidden one included."""
    mantissa, exponent = np.frexp(values.astype(np.float64))
    rounded: Array = np.ldexp(np.rint(np.ldexp(mantissa, bits)), exponent - bits)
    return rounded.astype(np.float32)

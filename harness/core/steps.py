"""Quantized outputs: differences in units of their scale, which is what one rounding decides."""

import msgspec
import numpy as np

from harness.core.metrics import widen
from harness.core.value import Array, Tensor


class Quantized(msgspec.Struct, frozen=True, kw_only=True):
    """An output whose values lie on a grid.

    Attributes:
        scale: Distance of two neighbouring values, positive, broadcast against the output; 1 for integers.
    """

    scale: Array


def largest_step(quantized: Quantized, golden: Tensor, actual: Tensor) -> float | None:
    """The largest difference of two outputs of one shape, in steps of their scale.

    Only elements that are finite on both sides count. None where the scale does not fit the shape.
    """
    right, found = widen(golden.array, golden.dtype), widen(actual.array, actual.dtype)
    try:
        scale = np.broadcast_to(np.abs(quantized.scale), right.shape)
    except ValueError:
        return None
    with np.errstate(all="ignore"):
        steps = np.abs(found - right) / scale
    return float(steps[np.isfinite(steps) & (scale > 0)].max(initial=0.0))

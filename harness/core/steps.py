"""Quantized outputs: differences in units of their scale, which is what one rounding decides."""

import math

import msgspec
import numpy as np

from harness.core.metrics import widen
from harness.core.tolerance import Tolerance
from harness.core.value import Array, Tensor


class Quantized(msgspec.Struct, frozen=True, kw_only=True):
    """An output whose values lie on a grid.

    Attributes:
        scale: Distance of two neighbouring values, positive, broadcast against the output; 1 for integers.
        granted: Steps that an element may be off, beside its tolerance.
    """

    scale: Array
    granted: float = 0.0


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """How far two quantized outputs are apart.

    Attributes:
        largest: Largest difference in steps, over the elements that are finite on both sides.
        beyond: Elements further off than what is granted, NaN and infinity that differ included.
        headroom: Largest difference as a part of what is granted and tolerated; None where it is infinite.
    """

    largest: float
    beyond: int
    headroom: float | None


def in_steps(quantized: Quantized, golden: Tensor, actual: Tensor, tolerance: Tolerance) -> Steps | None:
    """Measure two outputs of one shape; None where the scale does not fit them."""
    right, found = widen(golden.array, golden.dtype), widen(actual.array, actual.dtype)
    try:
        scale = np.broadcast_to(np.abs(quantized.scale), right.shape)
    except ValueError:
        return None
    with np.errstate(all="ignore"):
        error = np.abs(found - right)
        allowed = tolerance.atol + tolerance.rtol * np.abs(right) + quantized.granted * scale
        same = (found == right) | (np.isnan(found) & np.isnan(right))
        beyond = ~(same | (error <= allowed))
        steps = (error / scale)[np.isfinite(error) & (scale > 0)]
        used = float(np.where(same, 0.0, error / allowed).max(initial=0.0))
    return Steps(
        largest=float(steps.max(initial=0.0)),
        beyond=int(beyond.sum()),
        headroom=used if math.isfinite(used) else None,
    )

"""The distance of an output from the expected one, by the same rule as in a bundle's script.

Form comes first: structure, element type, shape. Then NaN and infinity, which must be at the same places.
What remains is one number for each tensor, which is compared with a limit.
"""

import math
from collections.abc import Mapping

import numpy as np

from harness.core.values.value import STRING, Array, Tensor, Value, leaves

CODES = frozenset(
    {STRING, "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0", "float4e2m1"}
)
"""Types whose distance is the share of elements that differ: numpy alone cannot compute with them."""


def why_wrong(expected: Value, found: Value, limit: float | None, name: str = "output") -> str:
    """Return why an output is wrong; empty if it is right.

    ``limit`` is, for each tensor in it, the largest ``distance`` that is no fault; None if values are not
    compared.
    """
    wanted, given = (dict(leaves(name, value)) for value in (expected, found))
    if list(wanted) != list(given):
        return f"{name}: another structure than expected"
    reasons = (_leaf_difference(leaf, part, given[leaf], limit) for leaf, part in wanted.items())
    return next((reason for reason in reasons if reason), "")


def values_difference(
    expected: Mapping[str, Value], found: Mapping[str, Value], limits: Mapping[str, float]
) -> str:
    """Return which of several outputs is wrong, and why; empty if all are right.

    Further outputs do not matter. Values of an output without a limit are not compared.
    """
    for name, value in expected.items():
        if name not in found:
            return f"{name}: there is no such output"
        reason = why_wrong(value, found[name], limits.get(name), name)
        if reason:
            return reason
    return ""


def distance(expected: Tensor, found: Tensor) -> float:
    """Return ``norm(found - expected) / norm(expected)`` over the elements that are finite on both sides.

    Both have the same type and shape.

    Returns:
        0 if all elements are equal; infinity if only the expected ones are all 0. For strings, float8 and
        float4 it is the share of elements that differ. Integers that are equal in float64 but differ count as
        different by 1.
    """
    if not expected.array.size:
        return 0.0
    if expected.dtype in CODES:
        return float(np.mean(_codes(expected) != _codes(found)))
    one, other = _wide(expected), _wide(found)
    finite = np.isfinite(one) & np.isfinite(other)
    one, other = one[finite], other[finite]
    unequal = (expected.array != found.array).reshape(-1)[finite]
    # Scaled, because squares of float64 may overflow.
    scale = max(float(np.abs(one).max(initial=0)), float(np.abs(other).max(initial=0)))
    if not unequal.any():
        return 0.0
    apart = np.abs(other / scale - one / scale)
    if expected.array.dtype.kind in "iu":
        apart[unequal & (apart == 0)] = 1 / scale
    norm = float(np.linalg.norm(one / scale))
    return float(np.linalg.norm(apart)) / norm if norm else math.inf


def _leaf_difference(name: str, expected: Tensor | None, found: Tensor | None, limit: float | None) -> str:
    if expected is None or found is None:
        return "" if expected is found else f"{name}: one of the two is an empty optional"
    if expected.dtype != found.dtype:
        return f"{name}: element type {found.dtype}, expected {expected.dtype}"
    if expected.array.shape != found.array.shape:
        return f"{name}: shape {list(found.array.shape)}, expected {list(expected.array.shape)}"
    if expected.dtype not in CODES:
        count = _other_specials(_wide(expected), _wide(found))
        if count:
            return f"{name}: {count} of {expected.array.size} elements differ in NaN or infinity"
    apart = distance(expected, found)
    if limit is None or apart <= limit:
        return ""
    return f"{name}: distance {apart:.3g} from the expected values, and the limit is {limit:.3g}"


def _other_specials(one: Array, other: Array) -> int:
    special = ~(np.isfinite(one) & np.isfinite(other))
    one, other = one[special], other[special]
    same = (one == other) | (np.isnan(one) & np.isnan(other))
    return int(np.count_nonzero(~same))


def _codes(value: Tensor) -> Array:
    flat = np.ascontiguousarray(value.array).reshape(-1)
    return flat if value.dtype == STRING else flat.view(np.uint8)


def _wide(value: Tensor) -> Array:
    flat = value.array.reshape(-1)
    return flat.astype(np.complex128 if flat.dtype.kind == "c" else np.float64)

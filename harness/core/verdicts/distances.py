"""How far three answers to a converted model are apart: golden, the CPU EP's own, and the EP's."""

import math

import msgspec
import numpy as np

from harness.core.comparison.metrics import BLOCK, special_codes, widen
from harness.core.values.value import Array, Tensor


class Distances(msgspec.Struct, frozen=True, kw_only=True):
    """Norms, each the root of a sum of squares over the elements that are finite on both sides.

    Attributes:
        golden: Norm of the golden.
        own: Norm of the CPU EP's own answer; 0 without one.
        error: Distance between result and golden.
        own_error: Distance between own answer and golden.
        between: Distance between result and own answer.
        max_error: The largest element of the difference between result and golden.
        max_own_error: The same of own answer and golden.
        max_between: The same of result and own answer.
        special: Whether result and golden differ in NaN or infinity anywhere.
        own_special: Whether own answer and golden do.
        has_own: Whether there is an own answer.
    """

    golden: float
    own: float
    error: float
    own_error: float
    between: float
    max_error: float
    max_own_error: float
    max_between: float
    special: bool
    own_special: bool
    has_own: bool


def distances(golden: Tensor, own: Tensor | None, actual: Tensor) -> Distances:
    """Measure three tensors of one shape and floating type, block by block."""
    flats = [value.array.reshape(-1) if value is not None else None for value in (golden, own, actual)]
    sums = dict.fromkeys(("golden", "own", "error", "own_error", "between"), 0.0)
    largest = {"error": 0.0, "own_error": 0.0, "between": 0.0}
    special = own_special = False

    def add(name: str, difference: Array) -> None:
        sums[name] += float(np.vdot(difference, difference).real)
        if name in largest and difference.size:
            largest[name] = max(largest[name], float(np.abs(difference).max()))

    with np.errstate(all="ignore"):
        for start in range(0, golden.array.size, BLOCK):
            right, other, result = (
                None if flat is None else widen(flat[start : start + BLOCK], golden.dtype) for flat in flats
            )
            assert right is not None and result is not None  # noqa: S101, PT018 - both are tensors
            add("golden", right[np.isfinite(right)])
            special = special or _differ(right, result)
            add("error", _difference(right, result))
            if other is not None:
                add("own", other[np.isfinite(other)])
                own_special = own_special or _differ(right, other)
                add("own_error", _difference(right, other))
                add("between", _difference(other, result))
    return Distances(
        **{name: math.sqrt(total) for name, total in sums.items()},
        max_error=largest["error"],
        max_own_error=largest["own_error"],
        max_between=largest["between"],
        special=special,
        own_special=own_special,
        has_own=own is not None,
    )


def _difference(one: Array, other: Array) -> Array:
    both = np.isfinite(one) & np.isfinite(other)
    return other[both] - one[both]


def _differ(one: Array, other: Array) -> bool:
    finite = np.isfinite(one) & np.isfinite(other)
    return not bool(finite.all()) and not np.array_equal(special_codes(one), special_codes(other))

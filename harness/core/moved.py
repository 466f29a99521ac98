"""Elements with one right answer that rounding noise moves: positions, flags, whole numbers behind a jump."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.core.metrics import widen
from harness.core.tolerance import UNIT_ROUNDOFF
from harness.core.value import STRING, Floats, NamedValues, Tensor, leaves_of

Moves = Mapping[str, Floats]
"""Leaf -> of its shape: how far some draw moves each element at most; 0 where none does."""


def moved_of(golden: NamedValues, samples: Sequence[NamedValues]) -> dict[str, Floats]:
    """Return how far runs with noise move the elements of integer and boolean leaves from the golden.

    The samples are runs of one data set, the one without noise among them. What they never move, no rounding
    excuses. A leaf whose shape some run changes has no answer.
    """
    drawn = [dict(_leaves(sample)) for sample in samples]
    found = {}
    for name, right in _leaves(golden):
        if right.dtype in UNIT_ROUNDOFF or right.dtype == STRING or right.dtype.startswith("complex"):
            continue
        others = [one[name] for one in drawn if name in one]
        form = (right.dtype, right.array.shape)
        if len(others) < len(drawn) or any((one.dtype, one.array.shape) != form for one in others):
            continue
        moved = np.zeros(right.array.shape)
        for one in others:
            moved = np.maximum(moved, _distance(right, one))
        found[name] = moved
    return found


def not_by_noise(golden: Tensor, actual: Tensor, moved: Floats) -> NDArray[np.bool_]:
    """Return which elements of an integer or boolean leaf noise does not explain.

    It moves them never, or less far.
    """
    differs: NDArray[np.bool_] = np.asarray(golden.array != actual.array)
    differs &= (moved == 0) | (_distance(golden, actual) > moved)
    return differs


def _distance(golden: Tensor, actual: Tensor) -> Floats:
    """Return how far apart elements are, at least 1 where they differ: float64 has not all of an int64."""
    right, found = (widen(one.array, one.dtype).astype(np.float64) for one in (golden, actual))
    far: Floats = np.maximum(np.abs(found - right), golden.array != actual.array)
    return far


def _leaves(values: NamedValues) -> list[tuple[str, Tensor]]:
    return [(leaf, part) for leaf, part in leaves_of(values) if part is not None]

"""Elements with one right answer that rounding noise moves: positions, flags, whole numbers behind a jump."""

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.metrics import widen_tensor
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.values.value import STRING, Floats, NamedValues, Tensor, leaves_of


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """How runs with noise move the elements of a leaf.

    Attributes:
        reach: How far the runs move each element at most, of the leaf's shape; 0 where none does.
        most: The largest number of elements that one run moves.
    """

    reach: Floats
    most: int

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Which elements noise moves."""
        return np.asarray(self.reach > 0)


Moves = Mapping[str, Move]
"""Leaf of integers or booleans -> its move."""


def moved_of(golden: NamedValues, samples: Sequence[NamedValues]) -> dict[str, Move]:
    """Return how runs with noise move the elements of integer and boolean leaves from the golden.

    The samples are runs of one data set, including the one without noise. Rounding does not excuse elements
    that these runs never move. A leaf whose shape some run changes has no answer.
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
        reach, most = np.zeros(right.array.shape), 0
        for one in others:
            far = _distance(right, one)
            reach, most = np.maximum(reach, far), max(most, int(np.count_nonzero(far)))
        found[name] = Move(reach=reach, most=most)
    return found


def unmoved(golden: Tensor, actual: Tensor, move: Move) -> int:
    """Return how many differing elements noise does not explain.

    Noise never moves such an element, or moves it less far. If more elements differ than any run moves at
    once, those beyond that number count, too.
    """
    far = _distance(golden, actual)
    beyond = np.count_nonzero((far > 0) & ((move.reach == 0) | (far > move.reach)))
    return max(int(beyond), int(np.count_nonzero(far)) - move.most)


def _distance(golden: Tensor, actual: Tensor) -> Floats:
    """Return the distance of elements, at least 1 where they differ: float64 cannot represent every int64."""
    right, found = (widen_tensor(one).astype(np.float64) for one in (golden, actual))
    far: Floats = np.maximum(np.abs(found - right), golden.array != actual.array)
    return far


def _leaves(values: NamedValues) -> list[tuple[str, Tensor]]:
    return [(leaf, part) for leaf, part in leaves_of(values) if part is not None]

"""Elements with one right answer that rounding noise moves: positions, flags, whole numbers behind a jump."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from harness.core.tolerance import UNIT_ROUNDOFF
from harness.core.value import STRING, NamedValues, Tensor, leaves_of

Moves = Mapping[str, NDArray[np.bool_]]
"""Leaf -> of its shape: true where some draw has another element."""


def moved_of(golden: NamedValues, samples: Sequence[NamedValues]) -> dict[str, NDArray[np.bool_]]:
    """Return which elements of integer and boolean leaves differ from the golden in any run with noise.

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
        moved = np.zeros(right.array.shape, np.bool_)
        for one in others:
            moved |= np.asarray(one.array != right.array)
        found[name] = moved
    return found


def _leaves(values: NamedValues) -> list[tuple[str, Tensor]]:
    return [(leaf, part) for leaf, part in leaves_of(values) if part is not None]

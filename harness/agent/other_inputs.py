"""Other inputs than those of a data set, made of the same numbers; what comes back has to change."""

from __future__ import annotations

from typing import Any

import numpy as np

MATRIX = 2
"""Dimensions from which on a tensor is data. Vectors may be sizes, axes or factors, which have to stay."""


def other_inputs(feeds: dict[str, Any]) -> dict[str, Any] | None:
    """The same inputs with the elements of some tensors in reverse order.

    Both the CPU EP and an EP under test derive them so, from the same data set. The values stay in the domain
    of every operator that takes elements one by one. Only floating tensors of two dimensions or more change;
    if there are none, integers of that shape, then floating vectors.

    Args:
        feeds: What ``InferenceSession.run`` takes. What is no numpy array stays as it is.

    Returns:
        None where nothing would change.
    """
    for kinds, dimensions in (("fc", MATRIX), ("iu", MATRIX), ("fc", 1)):
        changed = {
            name: reversed_
            for name, value in feeds.items()
            if isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.ndim >= dimensions
            for reversed_ in [value.reshape(-1)[::-1].reshape(value.shape)]
            if not np.array_equal(value, reversed_)
        }
        if changed:
            return {**feeds, **changed}
    return None

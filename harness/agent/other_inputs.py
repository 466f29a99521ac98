"""Inputs other than those of a data set, made from the same numbers; the outputs should change."""

from __future__ import annotations

from typing import Any

import numpy as np

_MATRIX = 2
"""Least number of dimensions of a tensor that counts as data.

Vectors may be sizes, axes or factors, which must stay.
"""

_FIRST = 64  # elements, by which a large tensor of data is told from a mask


def reversed_inputs(feeds: dict[str, Any]) -> dict[str, Any] | None:
    """Return the inputs with the elements of some tensors in reverse order; None if nothing would change.

    The CPU EP and an EP under test both derive them from the same data set. The values stay in the domain of
    every element-wise operator. Only floating tensors of two dimensions or more change; if there are none,
    integers of two dimensions or more, then floating vectors, then texts and booleans. They have to be numpy
    arrays. Masks of padding stay if anything else changes: padding at the beginning would hide from the first
    tokens of a decoder all that they may see, and what they give then is undefined.
    """
    for kinds, dimensions in (("fc", _MATRIX), ("iu", _MATRIX), ("fc", 1), ("Ob", 1)):
        changed = {
            name: reversed_
            for name, value in feeds.items()
            if isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.ndim >= dimensions
            for reversed_ in [value.reshape(-1)[::-1].reshape(value.shape)]
            if not np.array_equal(value, reversed_)
        }
        if changed:
            data = {name: value for name, value in changed.items() if not _is_padding(value)}
            return {**feeds, **(data or changed)}
    return None


def _is_padding(value: Any) -> bool:
    """Return whether a tensor may be a mask of padding: zeros and ones, no row of which changes twice."""
    if value.ndim < _MATRIX or not (_is_binary(value.reshape(-1)[:_FIRST]) and _is_binary(value)):
        return False
    return bool((np.count_nonzero(value[..., 1:] != value[..., :-1], axis=-1) <= 1).all())


def _is_binary(value: Any) -> bool:
    return bool(((value == 0) | (value == 1)).all())

"""Numbers that are valid only together: probabilities, and corners of boxes. All are exact fractions."""

import numpy as np

from harness.core.values.value import Array

_GRID = 1024
_CORNERS = 4


def probabilities(shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return numbers from 0 to 1 whose sum along the last axis is 1; a few of them are much larger."""
    if not shape:
        raise ValueError("probabilities need an axis along which their sum is 1, and the shape is a scalar")
    weights = random.integers(1, 1000, shape, dtype=np.int64) ** 3
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


def boxes(shape: tuple[int, ...], random: np.random.Generator, picture: tuple[int, int] | None) -> Array:
    """Return corners x0, y0, x1, y1 along the last axis, x0 < x1 and y0 < y1.

    They are from 0 to 1, or pixels of a picture of a height and width.

    Raises:
        ValueError: The last axis is not of 4.
    """
    if not shape or shape[-1] != _CORNERS:
        spelled = "x".join(map(str, shape)) or "a scalar"
        raise ValueError(f"boxes need a last axis of {_CORNERS}, and the shape is {spelled}")
    first = random.integers(0, _GRID // 2, (*shape[:-1], 2))
    size = random.integers(_GRID // 16, _GRID // 2, (*shape[:-1], 2))
    corners = np.concatenate([first, first + size], axis=-1) / _GRID
    if picture is None:
        return np.asarray(corners)
    height, width = picture
    return np.asarray(np.rint(corners * np.array([width, height, width, height])))

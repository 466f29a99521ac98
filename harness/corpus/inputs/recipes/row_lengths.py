"""Rows of different lengths: token ids, masks and lengths that fit each other."""

import numpy as np

from harness.core.values.value import Array


def row_lengths(rows: int, longest: int) -> Array:
    """Return the length of each row: the first is full, the others are shorter, down to half of it."""
    return np.array([max(min(1, longest), longest - -(-row * longest // (2 * rows))) for row in range(rows)])


def tokens(
    shape: tuple[int, ...], low: int, high: int, random: np.random.Generator, *, padded: bool
) -> Array:
    """Return ids from ``low`` to below ``high``, lower ones more often, like words of a language.

    With ``padded``, each row is 0 from its length on.
    """
    count = max(high - low, 1)
    ids = low - 1 + np.clip(np.floor(np.power(float(count + 1), random.random(shape))), 1, count)
    return np.asarray(np.where(mask(shape), ids, 0) if padded else ids)


def mask(shape: tuple[int, ...]) -> Array:
    """Return 1 up to the length of each row of the first axis along the last one, and 0 for the rest."""
    if len(shape) < 2:  # noqa: PLR2004 - one row, or a scalar
        return np.ones(shape)
    return _within(row_lengths(shape[0], shape[-1]), shape).astype(np.float64)


def padding(shape: tuple[int, ...]) -> Array:
    """Return, as bool, which positions along the last axis are padding; an only row has some, too."""
    if len(shape) < 2:  # noqa: PLR2004 - one row, or a scalar
        return np.zeros(shape, np.bool_)
    several = max(shape[0], 2)
    return ~_within(row_lengths(several, shape[-1])[several - shape[0] :], shape)


def _within(lengths: Array, shape: tuple[int, ...]) -> Array:
    """Return which positions along the last axis lie within the length of their row of the first one."""
    of_rows = lengths.reshape((-1,) + (1,) * (len(shape) - 1))
    return np.asarray(np.broadcast_to(np.arange(shape[-1]) < of_rows, shape))


def lengths(shape: tuple[int, ...], longest: int) -> Array:
    """Return the length of each row in a shape ``(rows,)`` or ``(rows, 1)``."""
    rows = shape[0] if shape else 1
    found = row_lengths(rows, longest).reshape((-1,) + (1,) * max(len(shape) - 1, 0))
    return np.asarray(np.broadcast_to(found, shape) if shape else found[0])

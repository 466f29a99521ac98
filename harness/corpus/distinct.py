"""Whole numbers that differ from each other, as the indices of a scatter have to."""

import math

import numpy as np

from harness.core.value import Array

_GOLDEN_RATIO = 0.618
"""Part of a range by which neighbours of a sequence lie apart, so that they are in no order."""


def distinct(rows: int, axis: int, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Whole numbers from 0 to below ``rows``, int64, different along an axis where there are enough rows."""
    if not shape or not -len(shape) <= axis < len(shape):
        return random.integers(0, rows, shape)
    others = tuple(1 if at == axis % len(shape) else size for at, size in enumerate(shape))
    along = tuple(size if at == axis % len(shape) else 1 for at, size in enumerate(shape))
    first = random.integers(0, rows, others)
    return np.asarray((first + _steps(shape[axis], rows).reshape(along)) % rows)


def distinct_tuples(sizes: tuple[int, ...], shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Index tuples along the last axis of a shape, int64, into axes of these sizes; different as above.

    More sizes than the tuples have places belong to axes that are not indexed. Zeros where there are fewer.
    """
    if not shape or not 0 < shape[-1] <= len(sizes):
        return np.zeros(shape, np.int64)
    sizes = sizes[: shape[-1]]
    cells = math.prod(sizes)
    flat = (random.integers(0, cells) + _steps(math.prod(shape[:-1]), cells)) % cells
    return np.stack(np.unravel_index(flat, sizes), axis=-1).reshape(shape)


def _steps(count: int, cells: int) -> Array:
    """The first multiples of a number that has no factor in common with ``cells``: each cell comes once."""
    start = int(cells * _GOLDEN_RATIO) + 1
    step = next(one for one in range(start, 2 * cells + 2) if math.gcd(one, cells) == 1)
    return step * np.arange(count, dtype=np.int64)

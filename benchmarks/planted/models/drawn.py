"""Numbers that models are made of, by seed."""

import numpy as np

from benchmarks.planted.arithmetic import Array


def normal(seed: int, *shape: int, scale: float = 1.0, dtype: str = "float32") -> Array:
    """Return normal numbers."""
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(dtype)


def whole(seed: int, *shape: int, most: int = 20, dtype: str = "float32") -> Array:
    """Return whole numbers of either sign."""
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(dtype)


def even(seed: int, low: float, high: float, *shape: int) -> Array:
    """Return numbers that fill a range, in random order."""
    found = np.linspace(low, high, int(np.prod(shape)))
    return np.random.default_rng(seed).permutation(found).reshape(shape).astype(np.float32)


def picture() -> dict[str, Array]:
    """Return the input of models that take a picture of four channels."""
    return {"x": normal(22, 1, 4, 12, 12)}

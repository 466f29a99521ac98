"""Arithmetic by hand: every result of a node is rounded in one of several ways, the sums in some order.

It shares no code with the harness: it decides by itself how far rounding moves an answer.
"""

import math
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
DTYPES: dict[str, Any] = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": ml_dtypes.bfloat16,
}
TF32_BITS = 13
"""Bits of a float32's significand that TensorFloat-32 lacks (NVIDIA: 10 of 23 are kept)."""


class Arithmetic(Protocol):
    """How nodes compute."""

    def __call__(self, value: Any) -> Array:
        """Return the result of a node, rounded."""

    def total(self, value: Array, axis: int) -> Array:
        """Return sums along an axis, which is kept with extent 1."""


class Rounded:
    """Every node exactly, then rounded once; ``float64`` is as near to the truth as this goes."""

    def __init__(self, dtype: str = "float64") -> None:
        self.dtype = DTYPES[dtype]

    def __call__(self, value: Any) -> Array:
        """Return the nearest number of the type, as float64."""
        return np.asarray(value, np.float64).astype(self.dtype).astype(np.float64)

    def total(self, value: Array, axis: int) -> Array:
        """Return sums that are rounded at their end."""
        return self(np.sum(np.asarray(value, np.float64), axis=axis, keepdims=True))


class Drawn:
    """Float32, or another type, whose sums are added up one by one.

    ``jitter`` gives each rounding a random direction, ``order`` each sum a random order.
    """

    def __init__(self, seed: int, dtype: str = "float32", *, jitter: bool = True, order: bool = True) -> None:
        self.rng = np.random.default_rng(seed)
        self.dtype = DTYPES[dtype]
        self.jitter = jitter
        self.order = order

    def __call__(self, value: Any) -> Array:
        """Return one of the two neighbours; what the type can hold stays."""
        exact = np.asarray(value, np.float64)
        if self.jitter and self.dtype is not np.float64:
            digits = ml_dtypes.finfo(self.dtype).nmant  # type: ignore[no-untyped-call]
            unit = np.ldexp(1.0, np.frexp(np.abs(np.where(np.isfinite(exact), exact, 0)))[1] - 1 - digits)
            exact = exact + self.rng.uniform(-0.4999, 0.4999, exact.shape) * unit
        return exact.astype(self.dtype).astype(np.float64)

    def total(self, value: Array, axis: int) -> Array:
        """Return sums whose terms are added one by one, each partial sum rounded."""
        terms = np.moveaxis(np.asarray(value, np.float64), axis, 0)
        order = self.rng.permutation(len(terms)) if self.order else np.arange(len(terms))
        kept = np.float64 if self.dtype is np.float64 else np.float32
        found = np.zeros(terms.shape[1:], kept)
        for index in order:
            found = self._partial(found.astype(np.float64) + terms[index], kept)
        return np.expand_dims(self(found), axis)

    def _partial(self, exact: Array, kept: Any) -> Array:
        """Return a partial sum, whose roundings are drawn for each element."""
        if self.jitter and kept is np.float32:
            unit = np.ldexp(1.0, np.frexp(np.abs(np.where(np.isfinite(exact), exact, 0)))[1] - 24)
            exact = exact + self.rng.uniform(-0.4999, 0.4999, exact.shape) * unit
        return exact.astype(kept)


def product(q: Arithmetic, left: Array, right: Array) -> Array:
    """Return a matrix product of an array of any rank by one of two dimensions or of the same rank."""
    if isinstance(q, Rounded):
        return q(left @ right)
    terms = left[..., :, :, None] * right[..., None, :, :]
    return q.total(terms, terms.ndim - 2)[..., 0, :]


def mean(q: Arithmetic, value: Array, axis: int = -1) -> Array:
    """Return means along an axis, which is kept."""
    return q(q.total(value, axis % value.ndim) / value.shape[axis])


def softmax(q: Arithmetic, value: Array, axis: int = -1) -> Array:
    """Return the softmax along an axis, its exponentials rounded."""
    powers = q(np.exp(value - value.max(axis, keepdims=True)))
    return q(powers / q.total(powers, axis % value.ndim))


def sigmoid(value: Array) -> Array:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-value))


def tf32(value: Array) -> Array:
    """Return float32 with the bits of TensorFloat-32, to nearest."""
    bits = value.astype(np.float32).view(np.uint32).astype(np.uint64)
    half = np.uint64(1 << (TF32_BITS - 1))
    kept = ((bits + half) >> np.uint64(TF32_BITS)) << np.uint64(TF32_BITS)
    return kept.astype(np.uint32).view(np.float32).astype(np.float64)


def erf(value: Array) -> Array:
    """Return the error function in float64."""
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(value))

"""A corner: one operator, values at the edge of its domain, and the answer."""

from typing import Any

import msgspec
import numpy as np

from harness.core.values.value import Array

NAN, INF = np.nan, np.inf


class Corner(msgspec.Struct, frozen=True):
    """One model of one operator, or of two if only the second one's result shows the corner.

    Attributes:
        name: Name of the model; unique.
        expected: Its outputs in order: IEEE 754, ONNX's specification and numpy agree on them.
        constants: Which of ``inputs`` are initializers, because many providers support only these.
        then: A second operator on the first output.
    """

    name: str
    op: str
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    attributes: dict[str, Any] = {}
    constants: tuple[int, ...] = ()
    then: str = ""


def floats(*items: float, dtype: Any = np.float32) -> Array:
    """Return a vector of floats."""
    return np.array(items, dtype)


def ints(*items: int, dtype: Any = np.int64) -> Array:
    """Return a vector of integers."""
    return np.array(items, dtype)


CHOICE = np.arange(8) % 2 == 0
"""A condition that takes every other one of eight elements."""


def cast(name: str, x: Array, dtype: Any) -> Corner:
    """Return a corner of Cast, whose answer is numpy's."""
    return Corner(name, "Cast", (x,), (x.astype(dtype),))


def reduction(name: str, op: str, x: Array, axis: int, y: Array) -> Corner:
    """Return a corner of an operator that reduces one axis."""
    return Corner(f"{op.lower()}_{name}", op, (x, ints(axis)), (y,), {"keepdims": 0}, (1,))

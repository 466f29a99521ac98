"""A corner: one operator, values at the edge of what it is defined for, and the answer."""

from typing import Any

import msgspec
import numpy as np

from harness.core.value import Array

NAN, INF = np.nan, np.inf


class Corner(msgspec.Struct, frozen=True, kw_only=True):
    """One model of one operator, or of one and a second that makes its result visible.

    Attributes:
        name: Of the model; unique.
        op: The operator.
        inputs: In its order; None for one that is left out.
        expected: Its outputs, in its order: what IEEE 754, ONNX's specification and numpy agree on.
        attributes: Of the operator.
        constants: Which of ``inputs`` are initializers, because many providers want them so.
        then: A second operator on the first output, where the corner cannot be seen in the first one's.
        opset: That the model imports.
    """

    name: str
    op: str
    inputs: tuple[Array | None, ...]
    expected: tuple[Array, ...]
    attributes: dict[str, Any] = {}
    constants: tuple[int, ...] = ()
    then: str = ""
    opset: int = 20


def floats(*items: float, dtype: Any = np.float32) -> Array:
    """A vector of floats."""
    return np.array(items, dtype)


def ints(*items: int, dtype: Any = np.int64) -> Array:
    """A vector of integers."""
    return np.array(items, dtype)

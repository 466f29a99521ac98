"""How far two results of the same model are apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from harness.agent.wire import NARROW

Measure = Callable[[Any, Any], float]
"""Takes two arrays of one shape, all finite, and returns how far they are apart."""


def difference(values: list[Any], others: list[Any]) -> float:
    """Return the greatest relative distance between outputs in wire form, whose large tensors are in memory.

    Returns:
        0 if the bits are the same. For tensors of one shape, the largest |difference| divided by the largest
        |value|. Infinity if shapes, types, texts or the places of non-finite values differ, and for element
        types that numpy lacks.
    """
    return _furthest(values, others, _relative)


def distance(values: list[Any], others: list[Any]) -> float:
    """Return as ``difference`` does, but the largest |difference| itself, in the unit of its output."""
    return _furthest(values, others, _absolute)


def _furthest(values: list[Any], others: list[Any], measure: Measure) -> float:
    return max((_apart(value, other, measure) for value, other in zip(values, others)), default=0.0)


def _apart(value: Any, other: Any, measure: Measure) -> float:
    if value == other:
        return 0.0
    if value is None or other is None or value.keys() != other.keys():
        return math.inf
    if "sequence" in value:
        same_length = len(value["sequence"]) == len(other["sequence"])
        return _furthest(value["sequence"], other["sequence"], measure) if same_length else math.inf
    if "keys" in value:
        return max(_apart(value[part], other[part], measure) for part in ("keys", "values"))
    dtype = value["dtype"]
    if (dtype, value["shape"]) != (other["dtype"], other["shape"]) or dtype == "string" or dtype in NARROW:
        return math.inf
    return _arrays_apart(_array(value), _array(other), measure)


def _arrays_apart(one: Any, other: Any, measure: Measure) -> float:
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return math.inf
    return measure(one[finite], other[finite])


def _array(wire: Any) -> Any:
    array = np.frombuffer(getattr(wire["data"], "view", wire["data"]), wire["dtype"])
    return array if array.dtype.kind == "c" else array.astype(np.float64)


def _absolute(one: Any, other: Any) -> float:
    return float(np.abs(one - other).max(initial=0.0))


def _relative(one: Any, other: Any) -> float:
    return float(_absolute(one, other) / (np.abs(one).max(initial=0.0) or 1.0))

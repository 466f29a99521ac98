"""The distance between two results of the same model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from harness.agent.wire import NARROW


def difference(values: list[Any], others: list[Any], *, relative: bool = True) -> float:
    """Return the greatest distance between outputs in wire form whose large tensors are in memory.

    Returns:
        It is 0 if the bits are the same. For tensors of one shape it is the largest |difference|; if it is
        relative, that divided by the largest |value|. It is infinite if shapes, types, texts or the places of
        non-finite values differ, and for element types that numpy lacks.
    """
    return max((_apart(*pair, relative) for pair in zip(values, others)), default=0.0)


def _apart(value: Any, other: Any, relative: bool) -> float:  # noqa: FBT001 - as of ``difference``
    if value == other:
        return 0.0
    if value is None or other is None or value.keys() != other.keys():
        return math.inf
    if "sequence" in value:
        items = value["sequence"], other["sequence"]
        return difference(*items, relative=relative) if len(items[0]) == len(items[1]) else math.inf
    if "keys" in value:
        return max(_apart(value[part], other[part], relative) for part in ("keys", "values"))
    dtype = value["dtype"]
    if (dtype, value["shape"]) != (other["dtype"], other["shape"]) or dtype == "string" or dtype in NARROW:
        return math.inf
    return _arrays_apart(_array(value), _array(other), relative)


def _arrays_apart(one: Any, other: Any, relative: bool) -> float:  # noqa: FBT001 - as of ``difference``
    finite = np.isfinite(one) & np.isfinite(other)
    if not np.array_equal(one[~finite], other[~finite], equal_nan=True):
        return math.inf
    apart = np.abs(one[finite] - other[finite]).max(initial=0.0)
    return float(apart / (np.abs(one[finite]).max(initial=0.0) or 1.0) if relative else apart)


def _array(wire: Any) -> Any:
    array = np.frombuffer(getattr(wire["data"], "view", wire["data"]), wire["dtype"])
    return array if array.dtype.kind == "c" else array.astype(np.float64)

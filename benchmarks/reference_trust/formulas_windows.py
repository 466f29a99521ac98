"""Pooling as formulas in numpy and float64."""

import itertools
import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from benchmarks.reference_trust.subject import Attributes, Formula
from harness.core.values.value import Array


def _pooling(reduce: Callable[[Array, int, Attributes], Array]) -> Formula:
    """A pooling operator by what it makes of a window: its elements, and how many its padding adds."""

    def pool(values: list[Any], given: Attributes, _: int) -> list[Any] | None:
        x, kernel = values[0], given["kernel_shape"]
        rank = len(kernel)
        strides = given.get("strides") or [1] * rank
        dilations = given.get("dilations") or [1] * rank
        pads = given.get("pads") or [0] * (2 * rank)
        auto = given.get("auto_pad", "NOTSET")
        spans = [dilation * (length - 1) + 1 for length, dilation in zip(kernel, dilations, strict=True)]
        sizes, begins, ends = [], [], []
        for place, (extent, span, stride) in enumerate(zip(x.shape[2:], spans, strides, strict=True)):
            begin, end = pads[place], pads[place + rank]
            if auto == "VALID":
                begin = end = 0
            if auto.startswith("SAME"):
                size = math.ceil(extent / stride)
                total = max(0, (size - 1) * stride + span - extent)
                begin = total // 2 if auto == "SAME_UPPER" else total - total // 2
                end = total - begin
            else:
                steps = (extent + begin + end - span) / stride
                size = (math.ceil(steps) if given.get("ceil_mode") else math.floor(steps)) + 1
                # No window starts in the padding behind the data, or beyond it.
                if given.get("ceil_mode") and (size - 1) * stride >= extent + begin:
                    size -= 1
            sizes.append(size)
            begins.append(begin)
            ends.append(end)
        made = np.zeros((*x.shape[:2], *sizes))
        chosen = np.zeros(made.shape, np.int64)
        order: Literal["C", "F"] = "F" if given.get("storage_order") else "C"
        plane = np.arange(math.prod(x.shape[2:])).reshape(x.shape[2:], order=order)
        first = np.arange(math.prod(x.shape[:2])).reshape(x.shape[:2]) * plane.size
        for corner in itertools.product(*map(range, sizes)):
            inside, places, padded = [], [], 0
            for offset in itertools.product(*map(range, kernel)):
                where = [
                    at * stride + step * dilation - begin
                    for at, stride, step, dilation, begin in zip(
                        corner, strides, offset, dilations, begins, strict=True
                    )
                ]
                if all(0 <= one < extent for one, extent in zip(where, x.shape[2:], strict=True)):
                    inside.append(x[(slice(None), slice(None), *where)])
                    places.append(plane[tuple(where)])
                elif all(
                    one < extent + end for one, extent, end in zip(where, x.shape[2:], ends, strict=True)
                ):
                    padded += 1
            window = np.array(inside)
            at_corner: Any = (slice(None), slice(None), *corner)
            made[at_corner] = reduce(window, padded, given)
            chosen[at_corner] = first + np.array(places)[window.argmax(axis=0)]
        return [made, chosen]

    return pool


def _average(window: Array, padded: int, given: Attributes) -> Any:
    count = len(window) + (padded if given.get("count_include_pad") else 0)
    return window.sum(axis=0) / count


def _p_norm(window: Array, _: int, given: Attributes) -> Any:
    order = given.get("p", 2)
    return np.sum(np.abs(window) ** order, axis=0) ** (1 / order)


def _largest(window: Array, _: int, __: Attributes) -> Any:
    return window.max(axis=0)


average_pool = _pooling(_average)
lp_pool = _pooling(_p_norm)
max_pool = _pooling(_largest)

"""Operators as formulas in numpy and float64, to say which of two answers is right.

Each follows the text of the operator in ONNX's documentation, and shares no code with either implementation.
"""

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import helper

from benchmarks.reference_trust.subject import Subject
from harness.core.value import Array

Attributes = dict[str, Any]
Formula = Callable[[list[Any], Attributes, int], list[Any] | None]


def formula(one: Subject) -> list[Any] | None:
    """The outputs by the formula of the operator's text; None where there is none here."""
    made = FORMULAS.get(one.node.op_type)
    if made is None or one.node.domain:
        return None
    attributes = {item.name: _plain(helper.get_attribute_value(item)) for item in one.node.attribute}
    values = [_wide(one.feeds[name]) if name else None for name in one.node.input]
    return made(values, attributes, one.since)


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _wide(value: Any) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype.kind == "f" else value


def _along(parameter: Array, rank: int, axis: int = 1) -> Array:
    """A vector with its only axis where that of an image's channels is."""
    return parameter.reshape([-1 if place == axis else 1 for place in range(rank)])


def _batch_normalization(values: list[Any], given: Attributes, since: int) -> list[Any] | None:
    x, scale, bias, mean, variance = values[:5]
    if given.get("training_mode") or (since < 7 and not given.get("is_test")):
        return None
    epsilon = given.get("epsilon", 1e-5)
    if since < 9 and given.get("spatial", 1) == 0:
        return [scale * (x - mean) / np.sqrt(variance + epsilon) + bias]
    scale, bias, mean, variance = (_along(one, x.ndim) for one in (scale, bias, mean, variance))
    return [scale * (x - mean) / np.sqrt(variance + epsilon) + bias]


def _lp_normalization(values: list[Any], given: Attributes, _: int) -> list[Any]:
    (x,), order, axis = values, given.get("p", 2), given.get("axis", -1)
    norm = np.sum(np.abs(x) ** order, axis=axis, keepdims=True) ** (1 / order)
    return [np.divide(x, norm, out=np.zeros_like(x), where=norm != 0)]


def _lrn(values: list[Any], given: Attributes, _: int) -> list[Any]:
    (x,), size = values, given["size"]
    alpha, beta, bias = given.get("alpha", 1e-4), given.get("beta", 0.75), given.get("bias", 1.0)
    squares = np.zeros_like(x)
    for channel in range(x.shape[1]):
        first = max(0, channel - (size - 1) // 2)
        last = min(x.shape[1] - 1, channel + math.ceil((size - 1) / 2))
        squares[:, channel] = np.sum(x[:, first : last + 1] ** 2, axis=1)
    return [x / (bias + alpha / size * squares) ** beta]


def _pooling(reduce: Callable[[Array, int, Attributes], float]) -> Formula:
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
        for corner in itertools.product(*map(range, sizes)):
            inside, padded = [], 0
            for offset in itertools.product(*map(range, kernel)):
                where = [
                    at * stride + step * dilation - begin
                    for at, stride, step, dilation, begin in zip(
                        corner, strides, offset, dilations, begins, strict=True
                    )
                ]
                if all(0 <= one < extent for one, extent in zip(where, x.shape[2:], strict=True)):
                    inside.append(x[(slice(None), slice(None), *where)])
                elif all(
                    one < extent + end for one, extent, end in zip(where, x.shape[2:], ends, strict=True)
                ):
                    padded += 1
            made[(slice(None), slice(None), *corner)] = reduce(np.array(inside), padded, given)
        return [made]

    return pool


def _average(window: Array, padded: int, given: Attributes) -> Any:
    count = len(window) + (padded if given.get("count_include_pad") else 0)
    return window.sum(axis=0) / count


def _p_norm(window: Array, _: int, given: Attributes) -> Any:
    order = given.get("p", 2)
    return np.sum(np.abs(window) ** order, axis=0) ** (1 / order)


def _largest(window: Array, _: int, __: Attributes) -> Any:
    return window.max(axis=0)


def _max_pool(values: list[Any], given: Attributes, since: int) -> list[Any] | None:
    return _pooling(_largest)(values, given, since)


def _global_lp(values: list[Any], given: Attributes, _: int) -> list[Any]:
    (x,), order = values, given.get("p", 2)
    return [np.sum(np.abs(x) ** order, axis=tuple(range(2, x.ndim)), keepdims=True) ** (1 / order)]


def _softmax(values: list[Any], given: Attributes, since: int) -> list[Any]:
    (x,) = values
    shape = x.shape
    if since < 13:  # one row for all axes from that one on
        axis = given.get("axis", 1) % max(1, x.ndim)
        x = x.reshape(math.prod(shape[:axis]), -1)
        axis = 1
    else:
        axis = given.get("axis", -1)
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return [(powers / powers.sum(axis=axis, keepdims=True)).reshape(shape)]


def _log_softmax(values: list[Any], given: Attributes, since: int) -> list[Any]:
    return [np.log(_softmax(values, given, since)[0])]


FORMULAS: dict[str, Formula] = {
    "AveragePool": _pooling(_average),
    "BatchNormalization": _batch_normalization,
    "GlobalLpPool": _global_lp,
    "LRN": _lrn,
    "LogSoftmax": _log_softmax,
    "LpNormalization": _lp_normalization,
    "LpPool": _pooling(_p_norm),
    "MaxPool": _max_pool,
    "Softmax": _softmax,
}

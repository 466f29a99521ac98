"""Operators as formulas in numpy and float64, to say which of two answers is right.

Each follows the text of the operator in ONNX's documentation, and shares no code with either implementation.
"""

import math
from typing import Any

import numpy as np
from onnx import helper

from benchmarks.reference_trust.formulas_sizes import grid_sample, resize
from benchmarks.reference_trust.formulas_windows import average_pool, lp_pool, max_pool
from benchmarks.reference_trust.subject import Attributes, Formula, Subject
from harness.core.values.value import Array


def formula(one: Subject) -> list[Any] | None:
    """The outputs by the formula of the operator's text; None where there is none here."""
    made = FORMULAS.get(one.node.op_type)
    if made is None:
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


def _log_softmax(values: list[Any], given: Attributes, since: int) -> list[Any] | None:
    if since < 13:
        return None
    (x,), axis = values, given.get("axis", -1)
    below = x - x.max(axis=axis, keepdims=True)
    return [below - np.log(np.exp(below).sum(axis=axis, keepdims=True))]


def _mean_variance(values: list[Any], given: Attributes, _: int) -> list[Any]:
    (x,), axes = values, tuple(given.get("axes", (0, 2, 3)))
    mean = x.mean(axis=axes, keepdims=True)
    # The text: (X - E[X]) / sqrt(E[(X - E[X])^2]), and 1e-9 beside the root in the function's body.
    return [(x - mean) / (np.sqrt(np.mean((x - mean) ** 2, axis=axes, keepdims=True)) + 1e-9)]


def _unique(values: list[Any], given: Attributes, _: int) -> list[Any]:
    (x,), axis = values, given.get("axis")
    flat = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    rows = flat.reshape(flat.shape[0], -1)
    kept: list[int] = []
    inverse = []
    for number, row in enumerate(rows):
        same = [place for place, first in enumerate(kept) if np.array_equal(rows[first], row)]
        inverse.append(same[0] if same else len(kept))
        kept += [] if same else [number]
    order = list(range(len(kept)))
    if given.get("sorted", 1):
        order.sort(key=lambda place: tuple(rows[kept[place]]))
    counts = [inverse.count(place) for place in order]
    made = flat[[kept[place] for place in order]]
    ranks = {place: rank for rank, place in enumerate(order)}
    return [
        made if axis is None else np.moveaxis(made, 0, axis),
        np.array([kept[place] for place in order]),
        np.array([ranks[place] for place in inverse]),
        np.array(counts),
    ]


def _linear_regressor(values: list[Any], given: Attributes, _: int) -> list[Any] | None:
    if given.get("post_transform", "NONE") != "NONE":
        return None
    (x,), targets = values, given.get("targets", 1)
    weights = np.array(given["coefficients"], np.float32).astype(np.float64).reshape(targets, -1)
    bias = np.array(given.get("intercepts", [0.0] * targets), np.float32).astype(np.float64)
    return [x @ weights.T + bias]


def _normalizer(values: list[Any], given: Attributes, _: int) -> list[Any]:
    (x,), norm = values, given.get("norm", "MAX")
    by = {
        "MAX": lambda: x.max(axis=1, keepdims=True),
        "L1": lambda: np.abs(x).sum(axis=1, keepdims=True),
        "L2": lambda: np.sqrt((x**2).sum(axis=1, keepdims=True)),
    }[norm]()
    return [x / by]


FORMULAS: dict[str, Formula] = {
    "AveragePool": average_pool,
    "BatchNormalization": _batch_normalization,
    "GlobalLpPool": _global_lp,
    "GridSample": grid_sample,
    "LRN": _lrn,
    "LinearRegressor": _linear_regressor,
    "LogSoftmax": _log_softmax,
    "LpNormalization": _lp_normalization,
    "LpPool": lp_pool,
    "MaxPool": max_pool,
    "MeanVarianceNormalization": _mean_variance,
    "Normalizer": _normalizer,
    "Resize": resize,
    "Softmax": _softmax,
    "Unique": _unique,
}

"""Operators along axes: reductions, positions of extremes, softmax, cumulative sums, norms."""

import math
from typing import Any

from harness.annex.made.forms.input_values import DISTINCT, GENERAL, POSITIVE_VALUES, UNIT, ValueKind
from harness.annex.made.forms.setting import FROM_END, Form, Operand, Setting
from harness.corpus.model.element_types import is_floating

_PRODUCTS = frozenset({"ReduceProd", "CumProd"})
_FEW_FACTORS = 8
_FEW, _SMALL_TYPE = 200, frozenset({"int8", "uint8"})


def reduction(setting: Setting) -> Form:
    """Return a form of a reduction, whose axes are an attribute or, in later versions, an input."""
    shape = setting.shape(0)
    draw = setting.draw
    rank = len(shape)
    attributes = setting.maybe(60, {"keepdims": draw.below(2)})
    inputs: list[Operand | None] = [setting.operand(0, shape, _kind(setting, shape))]
    axes = sorted(draw.some(range(rank), draw.between(1, rank) if rank else 0))
    if draw.chance(40):
        axes = [axis - rank for axis in axes]
    if setting.has("noop_with_empty_axes") and draw.chance(30):
        attributes["noop_with_empty_axes"] = draw.below(2)
    if axes and draw.chance(80):
        if setting.takes(1):
            inputs.append(setting.given(1, axes))
        else:
            attributes["axes"] = axes
    return Form(inputs=tuple(inputs), attributes=attributes)


def _kind(setting: Setting, shape: tuple[int, ...]) -> ValueKind:
    if setting.name == "ReduceLogSum":
        return POSITIVE_VALUES if is_floating(setting.dtype(0)) else ValueKind(low=1.0)
    if setting.name in _PRODUCTS:
        # Products of many factors stay in the range of float16 and of int32.
        if is_floating(setting.dtype(0)):
            return ValueKind(low=0.875, high=1.125)
        return UNIT if math.prod(shape) > _FEW_FACTORS else GENERAL
    if setting.dtype(0) in _SMALL_TYPE:
        return UNIT
    return GENERAL


def arg(setting: Setting) -> Form:
    """Return a form of ArgMax or ArgMin over values that all differ."""
    shape = _distinct_shape(setting)
    attributes = setting.maybe(80, {"axis": setting.axis(len(shape), FROM_END)})
    attributes |= setting.maybe(50, {"keepdims": setting.draw.below(2)})
    if setting.has("select_last_index"):
        attributes |= setting.maybe(30, {"select_last_index": setting.draw.below(2)})
    return Form(inputs=(setting.operand(0, shape, DISTINCT),), attributes=attributes)


def _distinct_shape(setting: Setting) -> tuple[int, ...]:
    """Return a shape whose elements can all differ in the type of the first input."""
    shape = list(setting.shape(1))
    limit = _FEW if setting.dtype(0) in _SMALL_TYPE | {"bfloat16"} else 2000
    while math.prod(shape) > limit:
        shape[shape.index(max(shape))] //= 2
    return tuple(shape)


def top_k(setting: Setting) -> Form:
    """Return a form of TopK over values that all differ."""
    draw = setting.draw
    shape = _distinct_shape(setting)
    axis = setting.axis(len(shape))
    if axis < -1 and setting.since < FROM_END:
        axis += len(shape)
    attributes: dict[str, Any] = {"axis": axis}
    if setting.has("largest"):
        attributes |= setting.maybe(60, {"largest": draw.below(2), "sorted": draw.below(2)})
    count = draw.pick((1, shape[axis], draw.between(1, shape[axis])))
    data = setting.operand(0, shape, DISTINCT)
    if not setting.takes(1):
        return Form(inputs=(data,), attributes=attributes | {"k": count}, outputs=2)
    return Form(inputs=(data, setting.given(1, [count])), attributes=attributes, outputs=2)


def along_axis(setting: Setting) -> Form:
    """Return a form of Softmax, LogSoftmax, Hardmax or LpNormalization."""
    kind = GENERAL
    shape = setting.shape(1)
    if setting.name == "Hardmax":
        shape, kind = _distinct_shape(setting), DISTINCT
    axis = setting.axis(len(shape), 0 if setting.name == "LpNormalization" else FROM_END)
    attributes = setting.maybe(75, {"axis": axis})
    if not attributes and setting.since < _LAST_BY_DEFAULT and len(shape) < 2:  # noqa: PLR2004
        attributes = {"axis": 0}
    if setting.has("p"):
        attributes |= setting.maybe(50, {"p": setting.draw.between(1, 2)})
        kind = ValueKind(low=0.25)
    return Form(inputs=(setting.operand(0, shape, kind),), attributes=attributes)


_LAST_BY_DEFAULT = 13
"""Version from which on the default axis of Softmax and its like is the last one; before, it is axis 1."""


def cumulative(setting: Setting) -> Form:
    """Return a form of CumSum or CumProd."""
    shape = setting.shape(1)
    axis = setting.given(1, setting.axis(len(shape)))
    flags = {"exclusive": setting.draw.below(2), "reverse": setting.draw.below(2)}
    inputs = (setting.operand(0, shape, _kind(setting, shape)), axis)
    return Form(inputs=inputs, attributes=setting.maybe(70, flags))


def mean_variance(setting: Setting) -> Form:
    """Return a form of MeanVarianceNormalization over some axes."""
    draw = setting.draw
    # With few elements the variance may be zero, and the result is divided by it.
    shape = (draw.pick((1, 2, 3)), draw.pick((4, 5)), draw.between(3, 9), draw.between(3, 9))
    axes = draw.pick(([0, 2, 3], [2, 3], [0, 1, 2, 3], [1]))
    return Form(inputs=(setting.operand(0, shape),), attributes={"axes": axes})

"""Quantizing, dequantizing, and operators that compute on quantized values.

Scales are powers of two and values are at least 1/8 of a step away from a tie, so that rounding is certain.
"""

import math
from typing import Any

import numpy as np

from harness.annex.made.forms.input_values import ValueKind
from harness.annex.made.forms.setting import Form, Operand, Setting, broadcast
from harness.annex.made.forms.windows import window
from harness.corpus.model.element_types import NUMBERS, is_floating

_SCALE_STEPS = (0.0625, 0.125, 0.25, 0.5, 1.0)
_EIGHT_BITS = ValueKind(low=-60.0, high=60.0)


def _points(setting: Setting, index: int, shape: tuple[int, ...], dtype: str = "") -> Operand:
    dtype = dtype or setting.dtype(index)
    if is_floating(dtype) or dtype in {"int32", "int16", "uint16"}:
        return setting.given_as(dtype, np.zeros(shape))
    bits = 1 if "2" in dtype else 2 if "4" in dtype else 5
    low = 0 if dtype.startswith("u") else -(1 << bits - 1)
    high = (1 << bits) // 2 - 1 if low else (1 << bits) - 1
    return setting.given_as(dtype, setting.draw.whole(shape, low, high))


def linear(setting: Setting) -> Form:
    """Return a form of QuantizeLinear or DequantizeLinear: per tensor, per axis, or in blocks."""
    draw = setting.draw
    quantizes = setting.name == "QuantizeLinear"
    shape = list(setting.shape(1, 4))
    rank = len(shape)
    attributes: dict[str, Any] = {}
    scale: tuple[int, ...] = ()
    if setting.has("block_size") and draw.chance(30):
        axis, block = draw.below(rank), draw.pick((2, 3, 4))
        count = draw.between(1, 3)
        shape[axis] = block * count
        scale = (*shape[:axis], count, *shape[axis + 1 :])
        attributes = {"axis": axis, "block_size": block}
        if math.prod(scale) == 1:  # onnxruntime would treat it as the scale of the whole tensor
            scale = (*scale[:axis], 2, *scale[axis + 1 :])
            shape[axis] = 2 * block
    elif setting.has("axis") and draw.chance(50):
        axis = draw.below(rank)
        scale = (shape[axis],)
        attributes = {"axis": axis if draw.chance(60) else axis - rank}
    target = setting.output_type(0) if quantizes else setting.dtype(0)
    scales = setting.given(1, np.array(_SCALE_STEPS)[draw.whole(scale, 0, len(_SCALE_STEPS) - 1)])
    if quantizes:
        data = _between_ties(setting, shape, scales, attributes)
    else:
        data = setting.operand(0, shape, ValueKind(low=-100.0, high=100.0, fine=False))
    inputs: list[Operand | None] = [data, scales]
    # Without a zero point, the result of QuantizeLinear is uint8.
    if (quantizes and target != "uint8") or draw.chance(70):
        inputs.append(_points(setting, 2, scale, target))
    if setting.has("output_dtype") and not quantizes:
        attributes["output_dtype"] = NUMBERS[setting.output_type(0)]
    return Form(inputs=tuple(inputs), attributes=attributes)


def _between_ties(setting: Setting, shape: list[int], scales: Operand, attributes: dict[str, Any]) -> Operand:
    """Return values of some steps each, with a remainder of 1/8 or 3/8 of a step."""
    steps = setting.draw.whole(shape, -20, 20) + setting.draw.pick((0.125, 0.375))
    spread = scales.array.astype(np.float64)
    if "block_size" in attributes:
        spread = np.repeat(spread, attributes["block_size"], attributes["axis"])
    elif "axis" in attributes:
        axis = attributes["axis"] % len(shape)
        spread = spread.reshape([-1 if at == axis else 1 for at in range(len(shape))])
    return setting.given(0, steps * spread)


def dynamic(setting: Setting) -> Form:
    """Return a form of DynamicQuantizeLinear: from 0 to 255 sixteenths, so that the scale is a sixteenth."""
    shape = setting.shape(1, 4)
    count = int(np.prod(shape))
    steps = setting.draw.whole((max(count, 2),), 0, 255)
    steps[0], steps[-1] = 0, 255
    shape = shape if count > 1 else (2,)
    return Form(inputs=(setting.given(0, (steps / 16).reshape(shape)),), outputs=3)


def _scale_and_point(setting: Setting, index: int) -> list[Operand | None]:
    scale = setting.given(index, setting.draw.pick((0.03125, 0.0625, 0.125)))
    return [scale, _points(setting, index + 1, ())]


def quantized_matmul(setting: Setting) -> Form:
    """Return a form of QLinearMatMul."""
    rows, inner, columns = (setting.size(17) for _ in range(3))
    batch = setting.shape(0, 1)
    inputs: list[Operand | None] = [
        setting.operand(0, (*batch, rows, inner), _EIGHT_BITS),
        *_scale_and_point(setting, 1),
    ]
    inputs += [setting.operand(3, (*batch, inner, columns), _EIGHT_BITS), *_scale_and_point(setting, 4)]
    scale = setting.given(6, setting.draw.pick((0.25, 0.5, 1.0)))
    return Form(inputs=(*inputs, scale, _points(setting, 7, ())))


def quantized_convolution(setting: Setting) -> Form:
    """Return a form of QLinearConv; weights may have a scale for each channel."""
    draw = setting.draw
    slid = window(setting)
    inside, outside = draw.pick((1, 2, 3, 8)), draw.pick((1, 2, 3, 8))
    data = setting.operand(0, (1, inside, *slid.image), _EIGHT_BITS)
    weights = setting.operand(3, (outside, inside, *slid.kernel), _EIGHT_BITS, constant=True)
    inputs: list[Operand | None] = [data, *_scale_and_point(setting, 1), weights]
    if draw.chance(40):
        steps = np.array((0.03125, 0.0625))[draw.whole((outside,), 0, 1)]
        inputs += [setting.given(4, steps, constant=True), setting.given(5, np.zeros(outside))]
    else:
        inputs += _scale_and_point(setting, 4)
    inputs += [setting.given(6, draw.pick((0.25, 0.5, 1.0))), _points(setting, 7, ())]
    if draw.chance(50):
        inputs.append(setting.operand(8, (outside,), ValueKind(low=-500.0, high=500.0), constant=True))
    return Form(inputs=tuple(inputs), attributes=slid.attributes)


def quantized_binary(setting: Setting) -> Form:
    """Return a form of onnxruntime's QLinearAdd or QLinearMul."""
    shape = setting.shape(1, 4)
    inputs: list[Operand | None] = [setting.operand(0, shape, _EIGHT_BITS), *_scale_and_point(setting, 1)]
    inputs += [setting.operand(3, broadcast(setting, shape), _EIGHT_BITS), *_scale_and_point(setting, 4)]
    return Form(inputs=(*inputs, *_scale_and_point(setting, 6)))


def quantized_unary(setting: Setting) -> Form:
    """Return a form of onnxruntime's QLinearLeakyRelu or QLinearSigmoid."""
    attributes = {"alpha": 0.125} if setting.has("alpha") else {}
    data = setting.operand(0, setting.shape(1, 4), _EIGHT_BITS)
    inputs = (data, *_scale_and_point(setting, 1), *_scale_and_point(setting, 3))
    return Form(inputs=inputs, attributes=attributes)

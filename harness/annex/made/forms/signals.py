"""Operators of signals: Fourier transforms, windows, filter banks."""

from typing import Any

import numpy as np

from harness.annex.made.forms.input_values import UNIT
from harness.annex.made.forms.setting import Form, Operand, Setting
from harness.core.values.value import Floats
from harness.corpus.model.element_types import NUMBERS

_LENGTHS = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33)
"""Powers of two, their neighbours, and primes: implementations differ for each kind."""


def fourier(setting: Setting) -> Form:
    """Return a form of DFT along any axis, of real or complex numbers, perhaps with a length."""
    draw = setting.draw
    inverse = draw.chance(35)
    real = not inverse and draw.chance(60)
    shape = [draw.pick((1, 1, 2, 3)) for _ in range(draw.pick((1, 2, 2, 3)))]
    axis = draw.below(len(shape)) if len(shape) == 1 else draw.between(1, len(shape) - 1)
    shape[axis] = draw.pick(_LENGTHS)
    attributes: dict[str, Any] = {"inverse": 1} if inverse else {}
    if real:
        # The other half of the result follows by symmetry; with complex numbers there is no symmetry.
        attributes |= setting.maybe(50, {"onesided": draw.below(2)})
    length = setting.given(1, draw.pick(_LENGTHS), constant=True) if draw.chance(35) else None
    # Counted from the end, the last axis holds real and imaginary parts.
    place = axis - len(shape) - 1 if draw.chance(40) else axis
    inputs: list[Operand | None] = [setting.operand(0, (*shape, 1 if real else 2), UNIT), length]
    if setting.has("axis"):
        attributes["axis"] = axis
    else:
        inputs.append(setting.given(2, place, constant=True))
    while inputs[-1] is None:
        inputs.pop()
    return Form(inputs=tuple(inputs), attributes=attributes)


def short_fourier(setting: Setting) -> Form:
    """Return a form of STFT of real or complex signals, with a window, a length of frames, or both."""
    draw = setting.draw
    frame = draw.pick([one for one in _LENGTHS if one > 1])
    step = draw.between(1, frame)
    signal = frame + step * draw.below(4) + draw.below(step)
    real = draw.chance(70)
    inputs: list[Operand | None] = [
        setting.operand(0, (draw.pick((1, 1, 2)), signal, 1 if real else 2), UNIT),
        setting.given(1, step, constant=True),
    ]
    way = draw.below(3)
    inputs.append(setting.operand(2, (frame,), UNIT) if way else None)
    if way != 1:
        inputs.append(setting.given(3, frame, constant=True))
    # By default one-sided, which complex signals cannot be.
    attributes = setting.maybe(60, {"onesided": draw.below(2)}) if real else {"onesided": 0}
    return Form(inputs=tuple(inputs), attributes=attributes)


def window_function(setting: Setting) -> Form:
    """Return a form of BlackmanWindow, HammingWindow or HannWindow; its size is fed."""
    size = setting.given(0, np.array(setting.draw.between(2, 33)), constant=False)
    attributes = {"output_datatype": NUMBERS[setting.output_type(0)]}
    attributes |= setting.maybe(50, {"periodic": setting.draw.below(2)})
    return Form(inputs=(size,), attributes=attributes)


_APART = 1 / 64
"""Distance of each filter edge from the whole number to which it is rounded down."""


def filter_bank(setting: Setting) -> Form:
    """Return a form of MelWeightMatrix whose edges keep a distance from whole numbers, where they jump."""
    draw = setting.draw
    rate = draw.pick((8000, 16000, 22050))
    lengths, bins, lows = (16, 17, 64, 65, 128, 256), range(1, 13), (0.0, 20.0, 125.0)
    bank = (4, 128, rate, 0.0, rate / 4)
    for _ in range(50):
        size, length, low = draw.pick(bins), draw.pick(lengths), draw.pick(lows)
        tried = (size, length, rate, low, draw.pick((rate / 4, 3 * rate / 8, rate / 2)))
        edges = _edges(*tried)
        apart = np.abs(edges - np.round(edges))[edges > 0].min(initial=1.0) >= _APART
        if apart and _rises(edges) and int((length + 1) * tried[4] / rate) <= length // 2:
            bank = tried
            break
    inputs = tuple(setting.given(at, np.array(one)) for at, one in enumerate(bank))
    return Form(inputs=inputs, attributes={"output_datatype": NUMBERS[setting.output_type(0)]})


def _edges(bins: int, length: int, rate: int, low: float, high: float) -> Floats:
    """Return the edges of the filters, before they are rounded down: ONNX's text of MelWeightMatrix."""
    mel = [2595 * np.log10(1 + one / 700) for one in (low, high)]
    points = np.arange(bins + 2) * (mel[1] - mel[0]) / (bins + 2) + mel[0]
    return np.asarray((length + 1) * (700 * (10 ** (points / 2595) - 1)) / rate)


def _rises(edges: Floats) -> bool:
    """Return whether no two edges coincide; otherwise one side of a filter has no width to divide by."""
    return bool(np.all(np.diff(np.floor(edges)) > 0))

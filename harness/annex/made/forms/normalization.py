"""Normalizations with scale and bias."""

from typing import Any

from harness.annex.made.forms.input_values import POSITIVE_VALUES, ValueKind
from harness.annex.made.forms.setting import Form, Operand, Setting

_SCALES = ValueKind(low=-2.0, high=2.0)
_EPSILONS = (1e-5, 1e-3, 0.125)


def _epsilon(setting: Setting) -> dict[str, Any]:
    return setting.maybe(60, {"epsilon": setting.draw.pick(_EPSILONS)})


def batch(setting: Setting) -> Form:
    """Return a form of BatchNormalization outside of training."""
    shape = setting.shape(2, 5)
    kinds = (_SCALES, _SCALES, _SCALES, POSITIVE_VALUES)
    parameters = [setting.operand(at, shape[1:2], kind) for at, kind in enumerate(kinds, 1)]
    attributes = _epsilon(setting) | setting.maybe(20, {"momentum": 0.5})
    return Form(inputs=(setting.operand(0, shape), *parameters), attributes=attributes)


def instance(setting: Setting) -> Form:
    """Return a form of InstanceNormalization over images of at least four elements."""
    shape = list(setting.shape(3, 5))
    shape[2] = max(4, shape[2])
    inputs = (setting.operand(0, shape), *(setting.operand(at, shape[1:2], _SCALES) for at in (1, 2)))
    return Form(inputs=inputs, attributes=_epsilon(setting))


def group(setting: Setting) -> Form:
    """Return a form of GroupNormalization; before version 21 its parameters belong to groups."""
    draw = setting.draw
    groups, each = draw.pick((1, 2, 3, 4)), draw.pick((1, 2, 3))
    shape = (draw.pick((1, 2)), groups * each, 2 + draw.below(5), 1 + draw.below(5))
    count = groups if setting.since < _PER_CHANNEL else groups * each
    inputs = (setting.operand(0, shape), *(setting.operand(at, (count,), _SCALES) for at in (1, 2)))
    return Form(inputs=inputs, attributes={"num_groups": groups, **_epsilon(setting)})


_PER_CHANNEL = 21


def layer(setting: Setting) -> Form:
    """Return a form of LayerNormalization or RMSNormalization over the last axes."""
    draw = setting.draw
    shape = list(setting.shape(1, 4))
    axis = setting.axis(len(shape))
    # A mean over one or two elements leaves a difference that consists of rounding only.
    shape[-1] = max(4, shape[-1])
    scaled = shape[axis:]
    inputs: list[Operand | None] = [setting.operand(0, shape), setting.operand(1, scaled, _SCALES)]
    if setting.takes(2) and draw.chance(60):
        inputs.append(setting.operand(2, scaled, _SCALES))
    outputs = draw.pick((1, 1, 3)) if len(setting.operator.outputs) == 3 else 1  # noqa: PLR2004
    attributes = {"axis": axis} if axis != -1 or draw.chance(50) else {}
    return Form(inputs=tuple(inputs), attributes=attributes | _epsilon(setting), outputs=outputs)


def skip(setting: Setting) -> Form:
    """Return a form of onnxruntime's normalization of a sum."""
    draw = setting.draw
    shape = (draw.pick((1, 2, 3)), setting.size(9), draw.pick((4, 8, 12, 16, 33, 64)))
    inputs: list[Operand | None] = [setting.operand(0, shape), setting.operand(1, shape)]
    last = draw.between(3, len(setting.operator.inputs))
    inputs += [setting.operand(at, shape[-1:], _SCALES) for at in range(2, last)]
    return Form(inputs=tuple(inputs), attributes=_epsilon(setting))

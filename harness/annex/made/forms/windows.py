"""Operators that slide a window over an image: convolutions and pools."""

import math
from typing import Any

import msgspec
import numpy as np

from harness.annex.made.forms.input_values import DISTINCT, GENERAL, ValueKind
from harness.annex.made.forms.setting import Form, Operand, Setting
from harness.corpus.model.last_window import IGNORED_SINCE, begins_behind

_FACTORS = ValueKind(low=-1.0, high=1.0)
_INTEGERS = ValueKind(low=-20.0, high=20.0)
_POINTS = ValueKind(low=-3.0, high=3.0)


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """A window, sizes of an image that it fits into, and strides, pads, dilations or automatic padding."""

    kernel: tuple[int, ...]
    image: tuple[int, ...]
    attributes: dict[str, Any]


def window(setting: Setting, *, pads_below_kernel: bool = False) -> Window:
    """Return a window of one to three axes and an image that it fits into.

    With ``pads_below_kernel``, no window lies completely in the padding.
    """
    draw = setting.draw
    rank = draw.pick((1, 2, 2, 2, 2, 3))
    kernel = tuple(draw.pick((1, 1, 2, 3, 3, 3, 5)) for _ in range(rank))
    attributes: dict[str, Any] = {}
    strides = tuple(draw.pick((1, 1, 1, 2, 3)) for _ in range(rank))
    dilations = tuple(draw.pick((1, 1, 1, 2)) for _ in range(rank))
    if draw.chance(50):
        attributes["strides"] = strides
    if setting.has("dilations") and draw.chance(30):
        attributes["dilations"] = dilations
    else:
        dilations = (1,) * rank
    reach = [1 + (size - 1) * step for size, step in zip(kernel, dilations, strict=True)]
    most = 7 if rank == 3 else 17  # noqa: PLR2004
    image = tuple(one + draw.below(most) for one in reach)
    way = draw.below(100)
    if way < 50:  # noqa: PLR2004
        high = [size - 1 if pads_below_kernel else 2 for size in kernel]
        attributes["pads"] = [draw.between(0, min(2, one)) for one in (*high, *high)]
    elif way < 65 and "dilations" not in attributes:  # noqa: PLR2004
        attributes["auto_pad"] = draw.pick(("SAME_UPPER", "SAME_LOWER", "VALID"))
    return Window(kernel=kernel, image=image, attributes=attributes)


def convolution(setting: Setting) -> Form:
    """Return a form of Conv: groups, depthwise, with and without bias."""
    draw = setting.draw
    slid = window(setting)
    group, inside, outside = _channels(setting)
    attributes = {**slid.attributes, **({"group": group} if group > 1 else {})}
    attributes |= setting.maybe(70, {"kernel_shape": slid.kernel})
    data = setting.operand(0, (draw.pick((1, 1, 2, 3)), group * inside, *slid.image))
    weights = setting.operand(1, (group * outside, inside, *slid.kernel), _FACTORS)
    inputs: list[Operand | None] = [data, weights]
    if draw.chance(60):
        inputs.append(setting.operand(2, (group * outside,), _FACTORS))
    if setting.has("activation"):
        attributes["activation"] = draw.pick(("Relu", "Sigmoid", "Tanh"))
    return Form(inputs=tuple(inputs), attributes=attributes)


def _channels(setting: Setting) -> tuple[int, int, int]:
    """Return the number of groups, and the input and output channels of each."""
    draw = setting.draw
    if draw.chance(25):
        return draw.pick((2, 3, 4, 7, 8, 16)), 1, draw.pick((1, 1, 2))
    group = draw.pick((1, 1, 1, 2, 3))
    return group, draw.pick((1, 2, 3, 4, 5, 8, 17)), draw.pick((1, 2, 3, 4, 5, 8, 17))


def transposed(setting: Setting) -> Form:
    """Return a form of ConvTranspose, with padding of its output below the stride."""
    draw = setting.draw
    slid = window(setting, pads_below_kernel=True)
    attributes = dict(slid.attributes)
    attributes.pop("auto_pad", None)
    group, inside, outside = _channels(setting)
    if group > 1:
        attributes["group"] = group
    if "strides" in attributes and draw.chance(40):
        attributes["output_padding"] = [draw.below(one) for one in attributes["strides"]]
    attributes |= setting.maybe(60, {"kernel_shape": slid.kernel})
    image = tuple(min(size, 9) for size in slid.image)
    pads = attributes.get("pads", [0] * 2 * len(image))
    # So that the result is not empty.
    image = tuple(max(size, 1 + pads[at] + pads[at + len(image)]) for at, size in enumerate(image))
    data = setting.operand(0, (draw.pick((1, 2)), group * inside, *image))
    weights = setting.operand(1, (group * inside, outside, *slid.kernel), _FACTORS)
    inputs: list[Operand | None] = [data, weights]
    if draw.chance(60):
        inputs.append(setting.operand(2, (group * outside,), _FACTORS))
    return Form(inputs=tuple(inputs), attributes=attributes)


def integer_convolution(setting: Setting) -> Form:
    """Return a form of ConvInteger, with and without zero points."""
    draw = setting.draw
    slid = window(setting)
    inside, outside = draw.pick((1, 2, 3, 8)), draw.pick((1, 2, 3, 8))
    inputs: list[Operand | None] = [
        setting.operand(0, (1, inside, *slid.image), _INTEGERS),
        setting.operand(1, (outside, inside, *slid.kernel), _INTEGERS),
    ]
    if draw.chance(60):
        inputs.append(setting.operand(2, (), _POINTS))
        if draw.chance(60):
            inputs.append(setting.operand(3, (), _POINTS))
    return Form(inputs=tuple(inputs), attributes=slid.attributes)


def pool(setting: Setting) -> Form:
    """Return a form of a pool; MaxPool pools values that all differ."""
    draw = setting.draw
    slid = window(setting, pads_below_kernel=True)
    attributes: dict[str, Any] = {"kernel_shape": slid.kernel, **slid.attributes}
    if setting.has("ceil_mode") and "auto_pad" not in attributes:
        attributes |= setting.maybe(30, {"ceil_mode": draw.below(2)})
    if setting.has("count_include_pad"):
        attributes |= setting.maybe(40, {"count_include_pad": draw.below(2)})
    if setting.has("p"):
        attributes |= setting.maybe(60, {"p": draw.between(1, 3)})
    largest = setting.name == "MaxPool"
    if setting.dtype(0) in {"int8", "uint8"}:
        image = tuple(min(size, max(reach, 5)) for size, reach in zip(slid.image, slid.kernel, strict=True))
        attributes.pop("dilations", None)
        batch, channels = 1, 1
    else:
        image, batch, channels = slid.image, draw.pick((1, 2)), setting.size(5)
    outputs = 2 if largest and len(setting.operator.outputs) > 1 and draw.chance(40) else 1
    # ONNX has to define the contents of the last window.
    counts_all = setting.operator.domain or setting.since < IGNORED_SINCE
    if attributes.get("ceil_mode") and counts_all and begins_behind(image, slid.kernel, attributes):
        del attributes["ceil_mode"]
    kind = ValueKind(low=0.25) if setting.name == "LpPool" else DISTINCT if largest else GENERAL
    data = setting.operand(0, (batch, channels, *image), kind)
    return Form(inputs=(data,), attributes=attributes, outputs=outputs)


def unpool(setting: Setting) -> Form:
    """Return a form of MaxUnpool: each value goes to a different place in its image.

    Indices count through the whole output. The output's size follows from the kernel, strides and pads.
    """
    draw = setting.draw
    rank = draw.pick((1, 2, 2, 2, 3))
    kernel = [draw.between(1, 3) for _ in range(rank)]
    strides = [draw.between(1, size) for size in kernel]
    small = [draw.between(1, 4 if rank == 3 else 6) for _ in range(rank)]  # noqa: PLR2004
    large = [(size - 1) * step + one for size, step, one in zip(small, strides, kernel, strict=True)]
    batch, channels = draw.pick((1, 1, 2)), draw.pick((1, 2, 3))
    room, count = math.prod(large), math.prod(small)
    # With or without gaps between windows, every pooled image has room for its own values.
    planes = [at * room + np.sort(draw.permuted(room)[:count]) for at in range(batch * channels)]
    indices = np.concatenate(planes).reshape(batch, channels, *small)
    attributes: dict[str, Any] = {"kernel_shape": kernel}
    if strides != [1] * rank or draw.chance(50):
        attributes["strides"] = strides
    data = setting.operand(0, indices.shape)
    return Form(inputs=(data, setting.given(1, indices)), attributes=attributes)


def whole_pool(setting: Setting) -> Form:
    """Return a form of a pool over the whole image."""
    attributes = setting.maybe(60, {"p": setting.draw.between(1, 3)}) if setting.has("p") else {}
    kind = ValueKind(low=0.25) if setting.has("p") else GENERAL
    return Form(inputs=(setting.operand(0, setting.shape(3, 5), kind),), attributes=attributes)


def local_response(setting: Setting) -> Form:
    """Return a form of LRN."""
    draw = setting.draw
    attributes: dict[str, Any] = {"size": draw.pick((1, 3, 5))}
    attributes |= setting.maybe(50, {"alpha": draw.pick((0.0001, 0.5)), "beta": 0.5, "bias": 2.0})
    return Form(inputs=(setting.operand(0, setting.shape(4, 4)),), attributes=attributes)

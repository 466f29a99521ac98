"""Operators that move elements without computing: shapes, slices, pads, joins and splits."""

from typing import Any

import numpy as np

from harness.annex.made.forms.setting import FROM_END, Form, Operand, Setting
from harness.corpus.model.element_types import NUMBERS

_RANK_2 = 2


def plain(setting: Setting) -> Form:
    """Return a form of an operator that takes any tensor and has no attributes, such as Size."""
    attributes: dict[str, Any] = {}
    shape = setting.shape(empty=True)
    if setting.name == "Shape" and setting.has("start") and setting.draw.chance(60):
        attributes = {"start": setting.draw.between(-3, 3)}
        attributes |= setting.maybe(50, {"end": setting.draw.between(-3, 5)})
    if setting.name == "NonZero":
        shape = setting.shape(1)
    return Form(inputs=(setting.operand(0, shape),), attributes=attributes)


def transpose(setting: Setting) -> Form:
    """Return a form of Transpose."""
    shape = setting.shape(empty=True)
    attributes = setting.maybe(85, {"perm": setting.draw.order(len(shape))}) if shape else {}
    return Form(inputs=(setting.operand(0, shape),), attributes=attributes)


def flatten(setting: Setting) -> Form:
    """Return a form of Flatten."""
    shape = setting.shape(1)
    axis = setting.draw.between(0, len(shape))
    if setting.since >= FROM_END and setting.draw.chance(40):
        axis = setting.draw.between(-len(shape), len(shape))
    attributes = setting.maybe(80, {"axis": axis})
    return Form(inputs=(setting.operand(0, shape),), attributes=attributes)


def reshape(setting: Setting) -> Form:
    """Return a form of Reshape with copied (0) and computed (-1) sizes."""
    draw = setting.draw
    shape = setting.shape(empty=True)
    total = int(np.prod(shape, dtype=np.int64))
    target = _factors(setting, total) if total else [0]
    attributes: dict[str, Any] = {}
    if not total:
        target = list(shape)
        if setting.has("allowzero"):
            attributes["allowzero"] = 1
    else:
        for at, size in enumerate(target):
            if at < len(shape) and shape[at] == size and draw.chance(40):
                target[at] = 0
        if target and draw.chance(50):
            target[draw.below(len(target))] = -1
    return Form(inputs=(setting.operand(0, shape), setting.given(1, target)), attributes=attributes)


def _factors(setting: Setting, total: int) -> list[int]:
    """Return sizes with this product, some of them 1."""
    sizes: list[int] = []
    left, divisor = total, 2
    while left > 1:
        while left % divisor:
            divisor += 1
        left //= divisor
        if sizes and setting.draw.chance(50):
            sizes[setting.draw.below(len(sizes))] *= divisor
        else:
            sizes.append(divisor)
    sizes = sizes[:5] + ([int(np.prod(sizes[5:]))] if len(sizes) > 5 else [])  # noqa: PLR2004
    if len(sizes) < 5 and setting.draw.chance(30):  # noqa: PLR2004
        sizes.insert(setting.draw.below(len(sizes) + 1), 1)
    return sizes


def squeeze(setting: Setting) -> Form:
    """Return a form of Squeeze or Unsqueeze; axes are an attribute or, in later versions, an input."""
    draw = setting.draw
    shape = list(setting.shape(0, 4, empty=True))
    rank = len(shape) + draw.between(1, 2)
    axes = sorted(draw.some(range(rank), rank - len(shape)))
    squeezes = setting.name == "Squeeze"
    if squeezes:
        for axis in axes:
            shape.insert(axis, 1)
    if setting.since >= FROM_END and draw.chance(40):
        axes = [axis - rank for axis in axes]
    data = setting.operand(0, shape)
    if squeezes and draw.chance(20):
        return Form(inputs=(data,))
    if setting.takes(1):
        return Form(inputs=(data, setting.given(1, axes)))
    return Form(inputs=(data,), attributes={"axes": axes})


def expand(setting: Setting) -> Form:
    """Return a form of Expand, which broadcasts both ways."""
    draw = setting.draw
    shape = setting.shape(0, 4)
    target = [draw.pick((1, size)) if size > 1 else draw.pick((1, 2, 3)) for size in shape]
    if draw.chance(30):
        target = [draw.pick((1, 2)), *target]
    elif target and draw.chance(20):
        target = target[1:]
    return Form(inputs=(setting.operand(0, shape), setting.given(1, target)))


def tile(setting: Setting) -> Form:
    """Return a form of Tile."""
    shape = setting.shape(1, 4)
    repeats = [setting.draw.pick((1, 1, 2, 3)) for _ in shape]
    return Form(inputs=(setting.operand(0, shape), setting.given(1, repeats)))


def concat(setting: Setting) -> Form:
    """Return a form of Concat of one to five inputs."""
    draw = setting.draw
    shape = list(setting.shape(1, 5))
    axis = setting.axis(len(shape), FROM_END)
    inputs = []
    for _ in range(draw.between(1, 5)):
        shape[axis] = draw.pick((shape[axis], setting.size(), 0 if draw.chance(4) else 1))
        inputs.append(setting.operand(0, shape))
    return Form(inputs=tuple(inputs), attributes={"axis": axis}, aliases=True)


def split(setting: Setting) -> Form:
    """Return a form of Split into equal or unequal parts."""
    draw = setting.draw
    shape = list(setting.shape(1, 5))
    axis = setting.axis(len(shape), FROM_END)
    parts = draw.between(1, 4)
    sizes = [setting.size(6) for _ in range(parts)]
    attributes: dict[str, Any] = {"axis": axis}
    inputs: list[Operand | None] = []
    equal = draw.chance(40)
    if equal:
        sizes = [sizes[0]] * parts
    elif setting.takes(1):
        inputs = [setting.given(1, sizes)]
    else:
        attributes["split"] = sizes
    shape[axis] = sum(sizes)
    if equal and setting.has("num_outputs"):
        attributes["num_outputs"] = parts
        if sizes[0] > parts > 1 and draw.chance(40):
            shape[axis] -= 1
    return Form(inputs=(setting.operand(0, shape), *inputs), attributes=attributes, outputs=parts)


def cut(setting: Setting) -> Form:
    """Return a form of Slice: either direction, bounds inside and beyond the ends."""
    draw = setting.draw
    shape = setting.shape(1, 5)
    axes = sorted(draw.some(range(len(shape)), draw.between(1, len(shape))))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = shape[axis]
        step = draw.pick((1, 1, 2, 3, -1, -2)) if setting.takes(4) else 1
        low, high = sorted((draw.below(size), draw.between(1, size)))
        high = max(high, low + 1)
        start, end = (low, high) if step > 0 else (high - 1, low - 1)
        if step < 0 and end < 0:
            end = -size - 5
        elif step > 0 and end == size and draw.chance(50):
            end = draw.pick((size + 7, (1 << 31) - 1))
        elif end > 0 and draw.chance(30):
            end -= size
        if 0 < start < size and draw.chance(30):
            start -= size
        # A bound that counts from the end must not become 0.
        starts.append(start)
        ends.append(end if end != 0 or step < 0 or high < size else size)
        steps.append(step)
    data = setting.operand(0, shape)
    if not setting.takes(1):
        return Form(inputs=(data,), attributes={"starts": starts, "ends": ends, "axes": axes})
    inputs: list[Operand | None] = [data, setting.given(1, starts), setting.given(2, ends)]
    inputs.append(setting.given(3, axes))
    if any(step != 1 for step in steps) or draw.chance(40):
        inputs.append(setting.given(4, steps))
    return Form(inputs=tuple(inputs))


def pad(setting: Setting) -> Form:
    """Return a form of Pad in each mode, with some pads of 0 and, in mode constant, negative ones."""
    draw = setting.draw
    shape = setting.shape(1, 5)
    modes = ["constant", "edge", "reflect"]
    if setting.since >= _WRAPPING:
        modes.append("wrap")
    mode = draw.pick(modes)
    most = [3 if mode != "reflect" else min(3, size - 1) for size in shape]
    if mode == "wrap":
        most = [min(3, size) for size in shape]
    pads = [draw.between(0, high) if draw.chance(70) else 0 for high in (*most, *most)]
    if mode == "constant" and draw.chance(20):
        ends = zip((*shape, *shape), pads, strict=True)
        pads = [-1 if size > _RANK_2 and draw.chance(30) else one for size, one in ends]
    attributes: dict[str, Any] = setting.maybe(80, {"mode": mode}) if mode == "constant" else {"mode": mode}
    data = setting.operand(0, shape)
    if not setting.takes(1):
        attributes["pads"] = pads
        return Form(inputs=(data,), attributes=attributes)
    inputs: list[Operand | None] = [data, setting.given(1, pads)]
    if mode == "constant" and draw.chance(60):
        inputs.append(setting.operand(2, (), constant=_read_by_onnx(setting.dtype(2))))
    if setting.takes(3) and draw.chance(30):
        axes = sorted(draw.some(range(len(shape)), draw.between(1, len(shape))))
        inputs[1] = setting.given(1, [pads[at] for at in (*axes, *(len(shape) + axis for axis in axes))])
        inputs += [None] * (3 - len(inputs))
        inputs.append(setting.given(3, axes, constant=_read_by_onnx(setting.dtype(3))))
    return Form(inputs=tuple(inputs), attributes=attributes)


def _read_by_onnx(dtype: str) -> bool | None:
    """Return whether an input of Pad may be constant: onnx 1.23's inference reads constants as int64."""
    return False if dtype in {"int32", "uint32"} else None


_WRAPPING = 19
"""Version of Pad with the mode ``wrap``."""


def blocks(setting: Setting) -> Form:
    """Return a form of DepthToSpace or SpaceToDepth."""
    draw = setting.draw
    block = draw.between(1, 3)
    batch, channels, rows, columns = (setting.size(5) for _ in range(4))
    shape = (batch, channels * block * block, rows, columns)
    if setting.name == "SpaceToDepth":
        shape = (batch, channels, rows * block, columns * block)
    attributes: dict[str, Any] = {"blocksize": block}
    if setting.has("mode") and setting.name == "DepthToSpace":
        attributes |= setting.maybe(70, {"mode": draw.pick(("DCR", "CRD"))})
    return Form(inputs=(setting.operand(0, shape),), attributes=attributes)


def eye(setting: Setting) -> Form:
    """Return a form of EyeLike."""
    attributes: dict[str, Any] = {"dtype": NUMBERS[setting.output_type(0)]}
    attributes |= setting.maybe(60, {"k": setting.draw.between(-3, 3)})
    return Form(inputs=(setting.operand(0, setting.shape(_RANK_2, _RANK_2)),), attributes=attributes)


def triangle(setting: Setting) -> Form:
    """Return a form of Trilu."""
    inputs: list[Operand | None] = [setting.operand(0, setting.shape(_RANK_2, 5))]
    if setting.draw.chance(60):
        inputs.append(setting.given(1, setting.draw.between(-4, 4)))
    return Form(inputs=tuple(inputs), attributes=setting.maybe(70, {"upper": setting.draw.below(2)}))


def filled(setting: Setting) -> Form:
    """Return a form of ConstantOfShape; its shape is fed, or the model would fold to a constant."""
    from onnx import helper

    shape = [setting.size(7) for _ in range(setting.draw.between(1, 4))]
    operand = setting.given(0, shape, constant=False)
    value = helper.make_tensor("value", NUMBERS[setting.output_type(0)], [1], [setting.draw.below(2)])
    return Form(inputs=(operand,), attributes={"value": value})


def counting(setting: Setting) -> Form:
    """Return a form of Range; steps are dyadic, so that the number of elements is certain."""
    draw = setting.draw
    whole = "int" in setting.dtype(0)
    step = draw.pick((1, 2, -1, 3) if whole else (1.0, 0.5, -0.5, 2.0))
    start = draw.between(-3, 3)
    limit = start + step * draw.between(1, 20)
    return Form(inputs=tuple(setting.given(at, one) for at, one in enumerate((start, limit, step))))


def expand_dims(setting: Setting) -> Form:
    """Return a form of onnxruntime's ExpandDims."""
    shape = setting.shape(0, 4)
    axis = setting.given(1, setting.draw.between(-len(shape) - 1, len(shape)), constant=True)
    return Form(inputs=(setting.operand(0, shape), axis))

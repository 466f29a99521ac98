"""Operators that sample images: resizing, grids, regions."""

from typing import Any

import numpy as np

from harness.annex.made.forms.input_values import ValueKind
from harness.annex.made.forms.setting import Form, Operand, Setting
from harness.corpus.model.element_types import is_floating


def _image(setting: Setting, *, rank: int = 4) -> tuple[int, ...]:
    draw = setting.draw
    return (draw.pick((1, 1, 2)), draw.pick((1, 2, 3, 5)), *(draw.between(2, 9) for _ in range(rank - 2)))


def resize(setting: Setting) -> Form:
    """Return a form of Resize or Upsample: nearest, linear and cubic, by scales or by sizes.

    Scales are powers of two: a nearest neighbour is then at a tie, or far from one, in every precision. So
    nearest uses only modes with exact coordinates, and rounds ties as its attribute says. ONNX leaves open
    how an average becomes an integer, so integers are not averaged.
    """
    draw = setting.draw
    modes = ["nearest"]
    if is_floating(setting.dtype(0)):
        modes += ["linear", "cubic"] if setting.since > _UPSAMPLING else ["linear"]
    mode = draw.pick(modes)
    shape = _image(setting)
    scales = [1.0, 1.0, draw.pick((0.5, 1.0, 2.0, 4.0)), draw.pick((0.5, 1.0, 2.0, 4.0))]
    shape = (*shape[:2], *(2 * size for size in shape[2:]))
    attributes: dict[str, Any] = {"mode": mode}
    data = setting.operand(0, shape)
    if setting.name == "Upsample" or setting.since <= _UPSAMPLING:
        if setting.name == "Upsample":
            scales = [max(1.0, one) for one in scales]
        if setting.has("scales"):
            return Form(inputs=(data,), attributes=attributes | {"scales": scales})
        return Form(inputs=(data, setting.given(1, scales, constant=True)), attributes=attributes)
    ways = ["half_pixel", "asymmetric", "pytorch_half_pixel"]
    if mode != "nearest":
        ways.append("align_corners")
    attributes["coordinate_transformation_mode"] = draw.pick(ways)
    if mode == "nearest":
        kinds = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
        attributes |= setting.maybe(80, {"nearest_mode": draw.pick(kinds)})
    if mode == "cubic":
        attributes |= setting.maybe(40, {"cubic_coeff_a": draw.pick((-0.5, -0.75))})
        attributes |= setting.maybe(30, {"exclude_outside": 1})
    # Before that version, an empty tensor stands for an omitted input.
    roi, left_out = (
        None if setting.since >= _OPTIONAL_ROI else setting.given_as(dtype, [], constant=True)
        for dtype in (setting.dtype(1), "float32")
    )
    if draw.chance(30):
        sizes = [int(size * scale) for size, scale in zip(shape, scales, strict=True)]
        inputs = (data, roi, left_out, setting.given(3, sizes, constant=True))
        return Form(inputs=inputs, attributes=attributes)
    return Form(inputs=(data, roi, setting.given(2, scales, constant=True)), attributes=attributes)


_UPSAMPLING = 10
"""Version of Resize that still works like Upsample."""

_OPTIONAL_ROI = 13


def grid_sample(setting: Setting) -> Form:
    """Return a form of GridSample; its points keep a distance from the borders between cells."""
    draw = setting.draw
    image = _image(setting)
    later = setting.since >= _RENAMED
    mode = draw.pick(("linear", "nearest", "cubic") if later else ("bilinear", "nearest", "bicubic"))
    rows, columns = draw.between(1, 6), draw.between(1, 6)
    # Sixteenths with an odd numerator: off all cell borders of images of 2, 4 or 8 cells.
    steps = draw.whole((image[0], rows, columns, 2), -9, 8)
    array = (2 * steps + 1) / 16
    image = (*image[:2], *(draw.pick((2, 4, 8)) for _ in range(2)))
    attributes: dict[str, Any] = {"mode": mode}
    attributes |= setting.maybe(60, {"padding_mode": draw.pick(("zeros", "border", "reflection"))})
    if mode != "nearest":
        attributes |= setting.maybe(50, {"align_corners": draw.below(2)})
    return Form(inputs=(setting.operand(0, image), setting.given(1, array)), attributes=attributes)


_RENAMED = 20
"""Version of GridSample from which on its modes are linear and cubic for any rank."""


def affine_grid(setting: Setting) -> Form:
    """Return a form of AffineGrid."""
    draw = setting.draw
    size = list(_image(setting, rank=draw.pick((4, 5))))
    dims = len(size) - 2
    inputs = (setting.operand(0, (size[0], dims, dims + 1)), setting.given(1, size))
    return Form(inputs=inputs, attributes=setting.maybe(50, {"align_corners": draw.below(2)}))


def regions(setting: Setting) -> Form:
    """Return a form of RoiAlign."""
    draw = setting.draw
    image = _image(setting)
    count = draw.between(1, 3)
    corners = draw.whole((count, 2), 0, 3) + 0.25
    array = np.concatenate([corners, corners + draw.whole((count, 2), 1, 4)], -1)
    attributes: dict[str, Any] = {
        "output_height": draw.between(1, 3),
        "output_width": draw.between(1, 3),
        # 0 asks for an adaptive number, by a ceiling.
        "sampling_ratio": draw.between(1, 3),
    }
    attributes |= setting.maybe(40, {"mode": draw.pick(("avg", "max"))})
    attributes |= setting.maybe(40, {"spatial_scale": draw.pick((0.5, 1.0))})
    if setting.has("coordinate_transformation_mode"):
        modes = ("half_pixel", "output_half_pixel")
        attributes |= setting.maybe(50, {"coordinate_transformation_mode": draw.pick(modes)})
    images = setting.given(2, draw.whole((count,), 0, image[0] - 1))
    return Form(inputs=(setting.operand(0, image), setting.given(1, array), images), attributes=attributes)


def pooled_regions(setting: Setting) -> Form:
    """Return a form of MaxRoiPool with bins of whole pixels, because their edges are rounded."""
    draw = setting.draw
    pooled = [draw.between(1, 4), draw.between(1, 4)]
    bins = [draw.between(1, 3), draw.between(1, 3)]
    size = [count * one for count, one in zip(pooled, bins, strict=True)]
    image = (draw.pick((1, 2)), draw.pick((1, 2, 3)), *(one + draw.below(5) for one in size))
    scale = draw.pick((1.0, 0.5, 0.25))
    count = draw.between(1, 3)
    corners = [draw.whole((count,), 0, image[2 + at] - size[at]) for at in range(2)]
    last = [corner + one - 1 for corner, one in zip(corners, size, strict=True)]
    which = draw.whole((count,), 0, image[0] - 1)
    # x before y; the last pixel belongs to the region.
    regions_of = np.stack([which, *(one / scale for one in (*corners[::-1], *last[::-1]))], -1)
    attributes: dict[str, Any] = {"pooled_shape": pooled}
    attributes |= {"spatial_scale": scale} if scale != 1 or draw.chance(30) else {}
    return Form(inputs=(setting.operand(0, image), setting.given(1, regions_of)), attributes=attributes)


def columns_to_image(setting: Setting) -> Form:
    """Return a form of Col2Im whose blocks do not overlap by chance of their strides."""
    draw = setting.draw
    block = [draw.between(1, 3), draw.between(1, 3)]
    image = [draw.between(size, size + 4) for size in block]
    channels = draw.pick((1, 2, 3))
    count = int(np.prod([size - one + 1 for size, one in zip(image, block, strict=True)]))
    data = setting.operand(0, (draw.pick((1, 2)), channels * block[0] * block[1], count))
    return Form(inputs=(data, setting.given(1, image), setting.given(2, block)))


def center_crop(setting: Setting) -> Form:
    """Return a form of CenterCropPad."""
    draw = setting.draw
    shape = setting.shape(1, 4)
    axes = sorted(draw.some(range(len(shape)), draw.between(1, len(shape))))
    target = [draw.between(1, shape[axis] + 3) for axis in axes]
    data = setting.operand(0, shape)
    return Form(inputs=(data, setting.given(1, target, constant=True)), attributes={"axes": axes})


def deformable(setting: Setting) -> Form:
    """Return a form of DeformConv with offsets of odd eighths, which are never at a pixel."""
    draw = setting.draw
    kernel = [draw.between(1, 3), draw.between(1, 3)]
    image = [size + draw.between(0, 5) for size in kernel]
    out = [size - one + 1 for size, one in zip(image, kernel, strict=True)]
    inside, outside = draw.pick((1, 2, 3)), draw.pick((1, 2, 4))
    points = kernel[0] * kernel[1]
    offset = (2 * draw.whole((1, 2 * points, *out), -4, 3) + 1) / 8
    inputs: list[Operand | None] = [
        setting.operand(0, (1, inside, *image)),
        setting.operand(1, (outside, inside, *kernel)),
        setting.given(2, offset),
    ]
    if draw.chance(50):
        inputs.append(setting.operand(3, (outside,)))
        if draw.chance(50):
            inputs.append(setting.operand(4, (1, points, *out), ValueKind(low=0.0, high=1.0)))
    return Form(inputs=tuple(inputs))

"""Where the last window of a pool begins if its number is rounded up (``ceil_mode``).

A window can begin behind the input and its leading padding, and so contain nothing of the input. Until opset
21 ONNX's formulas count such a window, and define no value for it: onnxruntime's shape inference counts it,
its kernels omit it. From opset 22 on "sliding windows that would start in the right padded region are
ignored".
"""

from collections.abc import Mapping, Sequence
from typing import Any

IGNORED_SINCE = 22
"""Opset of ONNX from which on such a window is omitted."""


def begins_behind(image: Sequence[int], kernel: Sequence[int], attributes: Mapping[str, Any]) -> bool:
    """Return whether the last window along an axis of the input begins in the padding behind it.

    ``attributes`` are those of a pool, without strides, dilations and pads at their defaults.
    """
    rank = len(image)
    ones, zeros = [1] * rank, [0] * 2 * rank
    strides, gaps = attributes.get("strides", ones), attributes.get("dilations", ones)
    pads = attributes.get("pads", zeros)
    for axis, (size, step) in enumerate(zip(image, strides, strict=True)):
        before, behind = pads[axis], pads[axis + rank]
        window = 1 + (kernel[axis] - 1) * gaps[axis]
        last = -(-(size + before + behind - window) // step)
        if last * step >= size + before:
            return True
    return False

"""Where the last window of a pool begins if its number is rounded up (``ceil_mode``).

A window can begin behind the input and its padding in front, and so hold nothing of the input. Until opset 21
ONNX's formulas count such a window, and have no value for it: onnxruntime's shape inference counts it, its
kernels leave it out. From opset 22 on "sliding windows that would start in the right padded region are
ignored".
"""

from collections.abc import Sequence

IGNORED_SINCE = 22
"""Opset of ONNX from which on such a window is left out."""


def begins_behind(
    image: Sequence[int], reach: Sequence[int], strides: Sequence[int], pads: Sequence[int]
) -> bool:
    """Return whether the last window along an axis begins in the padding behind the input.

    Args:
        image: Sizes of the input.
        reach: Sizes of a window with its gaps.
        strides: Steps between windows.
        pads: Padding in front of each axis, and then behind each, as in the attribute.
    """
    rank = len(image)
    for axis, (size, window, step) in enumerate(zip(image, reach, strides, strict=True)):
        before, behind = pads[axis], pads[axis + rank]
        last = -(-(size + before + behind - window) // step)
        if last * step >= size + before:
            return True
    return False

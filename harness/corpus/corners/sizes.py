"""Sizes beside those of the blocks in which a kernel computes: 4, 8 and 16 at once, and what is left over.

All numbers are small and whole, so that every order of the sums has the same result.
"""

from collections.abc import Iterator

import numpy as np

from harness.core.values.value import Array
from harness.corpus.corners.corner import Corner

_COUNTS = (5, 6, 7, 9, 10, 15, 18, 33)
_OUTSIDE = 8


def _blocks() -> Iterator[Corner]:
    """Channels of a convolution, terms and columns of a product, neighbours of a pool."""
    for count in _COUNTS:
        x, w = _whole(1, count, 5, 6), _whole(_OUTSIDE, count, 3, 3)
        yield Corner(f"conv_{count}_channels", "Conv", (x, w), (_convolved(x, w),), {}, (1,))
        a, b = _whole(3, count), _whole(count, _OUTSIDE)
        yield Corner(f"matmul_{count}_terms", "MatMul", (a, b), (a @ b,), {}, (1,))
        a, b = _whole(3, 4), _whole(4, count)
        yield Corner(f"matmul_{count}_columns", "MatMul", (a, b), (a @ b,), {}, (1,))
        x = _whole(4, count)
        x[np.arange(4), np.arange(4) * 7 % count] = 6
        yield Corner(f"argmax_{count}_columns", "ArgMax", (x,), (x.argmax(-1),), {"axis": -1, "keepdims": 0})


def _whole(*shape: int) -> Array:
    """Return whole numbers from -5 to 5, of which neighbours along no axis repeat soon."""
    places = np.arange(np.prod(shape))
    return np.asarray((places * places + 3 * places) % 11 - 5, np.float32).reshape(shape)


def _convolved(x: Array, w: Array) -> Array:
    """Return the sums of products of each window, without padding."""
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))
    return np.asarray(np.einsum("nchwij,mcij->nmhw", windows, w), np.float32)


SIZES = (_blocks,)

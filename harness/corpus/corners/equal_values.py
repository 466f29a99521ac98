"""Ties: equal values to choose from, and numbers halfway between two others."""

from collections.abc import Iterator

import numpy as np

from harness.corpus.corners.corner import Corner, cast, floats, ints


def _chosen() -> Iterator[Corner]:
    """ArgMax and ArgMin take the first or the last as an attribute says, TopK the lower index."""
    row = np.array([[2, 7, 7, 1, 1, 7]], np.float32)
    for op, first, last in (("ArgMax", 1, 5), ("ArgMin", 3, 4)):
        for which, index in (("first", first), ("last", last)):
            attributes = {"axis": 1, "select_last_index": int(which == "last")}
            yield Corner(f"{op.lower()}_tie_{which}", op, (row,), (np.array([[index]]),), attributes)
    for which, largest, taken in (("largest", 1, [1, 2, 5]), ("smallest", 0, [3, 4, 0])):
        expected = (row[:, taken], np.array([taken]))
        attributes = {"axis": 1, "largest": largest}
        yield Corner(f"topk_tie_{which}", "TopK", (row, ints(3)), expected, attributes, constants=(1,))
    same, first_five = np.full((1, 40), 0.25, np.float32), np.arange(5).reshape(1, 5)
    yield Corner("topk_all_equal", "TopK", (same, ints(5)), (same[:, :5], first_five), constants=(1,))
    zeros = np.array([[-0.0, 0.0]], np.float32)
    yield Corner("argmax_sign_of_zero", "ArgMax", (zeros,), (np.array([[0]]),), {"axis": 1})


def _rounded() -> Iterator[Corner]:
    """Round and casts to a narrower type round halfway numbers to even."""
    half = floats(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 8388609, 4194304.5)
    yield Corner("round_halfway", "Round", (half,), (np.rint(half),))
    between = floats(1 + 2**-11, 1 + 3 * 2**-11, 65519, 65520, 2**-25, 3 * 2**-25)
    yield cast("cast_halfway_to_float16", between, np.float16)
    double = floats(1 + 2**-24, 1 + 3 * 2**-24, 1e300, 1e-50, dtype=np.float64)
    yield cast("cast_halfway_to_float32", double, np.float32)
    yield cast("cast_float32_to_bool", floats(0, -0.0, 0.5, -1, np.nan, np.inf), np.bool_)


def _quantized() -> Iterator[Corner]:
    """QuantizeLinear is ``saturate(round(x / scale) + zero_point)``, halfway to even."""
    x = floats(0.25, 0.75, 1.25, -0.25, -0.75, 63, 64, -64, 1000, -1000)
    scale = np.array(0.5, np.float32)
    for dtype, zero in ((np.int8, 3), (np.uint8, 128)):
        limits = np.iinfo(dtype)
        y = np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(dtype)
        kind, levels = y.dtype.name, (scale, np.array(zero, dtype))
        back = (y.astype(np.float32) - zero) * scale
        yield Corner(f"quantizelinear_halfway_{kind}", "QuantizeLinear", (x, *levels), (y,), {}, (1, 2))
        yield Corner(
            f"dequantizelinear_extremes_{kind}", "DequantizeLinear", (y, *levels), (back,), {}, (1, 2)
        )


TIES = (_chosen, _rounded, _quantized)

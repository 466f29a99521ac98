"""Ties: equal values of which one has to be chosen, and numbers halfway between two others."""

from collections.abc import Iterator

import numpy as np

from harness.corpus.corners.corner import Corner, floats, ints


def ties() -> Iterator[Corner]:
    """Every corner of this kind."""
    yield from _chosen()
    yield from _rounded()
    yield from _quantized()


def _chosen() -> Iterator[Corner]:
    """ArgMax and ArgMin take the first or the last as they are told, TopK the lower index."""
    row = np.array([[2, 7, 7, 1, 1, 7]], np.float32)
    for op, first, last in (("ArgMax", 1, 5), ("ArgMin", 3, 4)):
        for which, index in (("first", first), ("last", last)):
            yield Corner(
                name=f"{op.lower()}_tie_{which}",
                op=op,
                inputs=(row,),
                expected=(np.array([[index]]),),
                attributes={"axis": 1, "select_last_index": int(which == "last")},
            )
    for largest, taken in ((1, [1, 2, 5]), (0, [3, 4, 0])):
        yield Corner(
            name=f"topk_tie_{'largest' if largest else 'smallest'}",
            op="TopK",
            inputs=(row, ints(3)),
            expected=(row[:, taken], np.array([taken])),
            attributes={"axis": 1, "largest": largest},
            constants=(1,),
        )
    same = np.full((1, 40), 0.25, np.float32)
    yield Corner(
        name="topk_all_equal",
        op="TopK",
        inputs=(same, ints(5)),
        expected=(same[:, :5], np.arange(5).reshape(1, 5)),
        constants=(1,),
    )
    yield Corner(
        name="argmax_sign_of_zero",
        op="ArgMax",
        inputs=(np.array([[-0.0, 0.0]], np.float32),),
        expected=(np.array([[0]]),),
        attributes={"axis": 1},
    )


def _rounded() -> Iterator[Corner]:
    """Halfway is to even, in Round and in casts to a narrower type."""
    half = floats(0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 8388609, 4194304.5)
    yield Corner(name="round_halfway", op="Round", inputs=(half,), expected=(np.rint(half),))
    between = floats(1 + 2**-11, 1 + 3 * 2**-11, 65519, 65520, 2**-25, 3 * 2**-25)
    y = between.astype(np.float16)
    yield Corner(name="cast_halfway_to_float16", op="Cast", inputs=(between,), expected=(y,))
    double = floats(1 + 2**-24, 1 + 3 * 2**-24, 1e300, 1e-50, dtype=np.float64)
    y = double.astype(np.float32)
    yield Corner(name="cast_halfway_to_float32", op="Cast", inputs=(double,), expected=(y,))
    x = floats(0, -0.0, 0.5, -1, np.nan, np.inf)
    yield Corner(name="cast_float32_to_bool", op="Cast", inputs=(x,), expected=(x != 0,))


def _quantized() -> Iterator[Corner]:
    """``saturate(round(x / scale) + zero_point)``, halfway to even."""
    x = floats(0.25, 0.75, 1.25, -0.25, -0.75, 63, 64, -64, 1000, -1000)
    scale = np.array(0.5, np.float32)
    for dtype, zero in ((np.int8, 3), (np.uint8, 128)):
        limits = np.iinfo(dtype)
        y = np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(dtype)
        zero_point = np.array(zero, dtype)
        yield Corner(
            name=f"quantizelinear_halfway_{y.dtype.name}",
            op="QuantizeLinear",
            inputs=(x, scale, zero_point),
            expected=(y,),
            constants=(1, 2),
        )
        yield Corner(
            name=f"dequantizelinear_extremes_{y.dtype.name}",
            op="DequantizeLinear",
            inputs=(y, scale, zero_point),
            expected=((y.astype(np.float32) - zero) * scale,),
            constants=(1, 2),
        )

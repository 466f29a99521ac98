"""NaN and infinity: IEEE 754 has them spread, and ONNX's operators do as numpy does."""

from collections.abc import Iterator

import numpy as np

from harness.corpus.corners.corner import INF, NAN, Corner, floats, ints

_ALL = (NAN, -INF, -2.5, -0.0, 0.0, 0.5, 3.0, INF)


def not_finite() -> Iterator[Corner]:
    """Every corner of this kind."""
    yield from _elementwise()
    yield from _two_at_a_time()
    yield from _bounded()
    yield from _reduced()
    yield from _summed_products()
    yield from _told_apart()


def _elementwise() -> Iterator[Corner]:
    for dtype in (np.float32, np.float16, np.float64):
        x = floats(*_ALL, dtype=dtype)
        suffix = f"_{x.dtype.name}"
        yield Corner(name=f"relu_not_finite{suffix}", op="Relu", inputs=(x,), expected=(np.maximum(x, 0),))
        yield Corner(name=f"identity_not_finite{suffix}", op="Identity", inputs=(x,), expected=(x,))
    x = floats(*_ALL)
    for op, y in (
        ("Abs", np.abs(x)),
        ("Neg", -x),
        ("Floor", np.floor(x)),
        ("Ceil", np.ceil(x)),
        ("Round", np.rint(x)),
        ("Sqrt", np.sqrt(x)),
        ("Reciprocal", 1 / x),
        ("Exp", np.exp(x)),
        ("Log", np.log(x)),
        ("Tanh", np.tanh(x)),
        ("Sigmoid", 1 / (1 + np.exp(-x))),
        ("LeakyRelu", np.where(x < 0, np.float32(0.01) * x, x)),
    ):
        yield Corner(name=f"{op.lower()}_not_finite", op=op, inputs=(x,), expected=(y,))
    far = floats(-1000, -104, -88, 88, 89, 1000)
    yield Corner(name="exp_far_out", op="Exp", inputs=(far,), expected=(np.exp(far),))
    sigmoid = 1 / (1 + np.exp(-far.astype(np.float64)))
    yield Corner(name="sigmoid_far_out", op="Sigmoid", inputs=(far,), expected=(sigmoid.astype(np.float32),))
    yield Corner(name="tanh_far_out", op="Tanh", inputs=(far,), expected=(np.tanh(far),))


def _two_at_a_time() -> Iterator[Corner]:
    a, b = floats(NAN, 1, NAN, -INF, INF, 2), floats(1, NAN, NAN, 0, 0, 2)
    for dtype in (np.float32, np.float16, np.float64):
        left, right = a.astype(dtype), b.astype(dtype)
        for op, y in (("Max", np.maximum(left, right)), ("Min", np.minimum(left, right))):
            name = f"{op.lower()}_nan_{left.dtype.name}"
            yield Corner(name=name, op=op, inputs=(left, right), expected=(y,))
    zero = floats(0, -0.0, 0, INF, -INF, NAN)
    ones = floats(0, 1, 1, INF, INF, 1)
    yield Corner(name="div_by_zero", op="Div", inputs=(ones, zero), expected=(ones / zero,))
    yield Corner(
        name="mul_zero_by_infinity", op="Mul", inputs=(zero, ones[::-1]), expected=(zero * ones[::-1],)
    )
    yield Corner(name="sub_infinities", op="Sub", inputs=(ones, zero), expected=(ones - zero,))
    base = floats(0, 0, -8, INF, NAN, 1, -0.0, -2, -2, 2)
    power = floats(0, -1, 1 / 3, 0, 0, NAN, -1, 3, -1, 200)
    yield Corner(name="pow_corners", op="Pow", inputs=(base, power), expected=(np.power(base, power),))
    left, right = floats(5, -5, 5, -5, 5, INF, 0), floats(3, 3, -3, -3, INF, 3, 5)
    yield Corner(
        name="mod_of_floats",
        op="Mod",
        inputs=(left, right),
        expected=(np.fmod(left, right),),
        attributes={"fmod": 1},
    )
    big = floats(1e30, -1e30, 3e38)
    yield Corner(name="mul_overflows", op="Mul", inputs=(big, big), expected=(big * big,))
    half = floats(60000, -60000, 32, dtype=np.float16)
    yield Corner(name="add_overflows_float16", op="Add", inputs=(half, half), expected=(half + half,))


def _bounded() -> Iterator[Corner]:
    x = floats(*_ALL)
    low, high = np.float32(-1), np.float32(1)
    yield Corner(
        name="clip_nan",
        op="Clip",
        inputs=(x, np.array(low), np.array(high)),
        expected=(np.clip(x, low, high),),
        constants=(1, 2),
    )
    yield Corner(
        name="clip_at_infinity",
        op="Clip",
        inputs=(x, np.array(np.float32(-INF)), np.array(np.float32(INF))),
        expected=(x,),
        constants=(1, 2),
    )
    # "When min is greater than max, the clip operator sets all values to max" (since opset 13's text).
    yield Corner(
        name="clip_crossed_bounds",
        op="Clip",
        inputs=(x[2:], np.array(high), np.array(low)),
        expected=(np.full(x[2:].shape, low),),
        constants=(1, 2),
    )


def _reduced() -> Iterator[Corner]:
    x = np.array([[1, NAN, 3], [INF, 2, -INF], [-INF, -INF, -INF]], np.float32)
    axes = ints(1)
    for op, y in (
        ("ReduceMax", x.max(1)),
        ("ReduceMin", x.min(1)),
        ("ReduceSum", x.sum(1)),
        ("ReduceMean", x.mean(1)),
    ):
        yield Corner(
            name=f"{op.lower()}_not_finite",
            op=op,
            inputs=(x, axes),
            expected=(y,),
            attributes={"keepdims": 0},
            constants=(1,),
        )
    rows = np.array([[1000, 1001, 999], [-INF, 0, 1], [-1000, -1000, -1000], [3, NAN, 1]], np.float32)
    shifted = np.exp(rows.astype(np.float64) - rows.max(1, keepdims=True))
    softmax = shifted / shifted.sum(1, keepdims=True)
    for op, y in (("Softmax", softmax), ("LogSoftmax", np.log(softmax))):
        name = f"{op.lower()}_far_out"
        expected = (y.astype(np.float32),)
        yield Corner(name=name, op=op, inputs=(rows,), expected=expected, attributes={"axis": 1})
    window = np.array([-INF, -INF, 1, 2], np.float32).reshape(1, 1, 1, 4)
    yield Corner(
        name="maxpool_of_minus_infinity",
        op="MaxPool",
        inputs=(window,),
        expected=(np.array([-INF, 2], np.float32).reshape(1, 1, 1, 2),),
        attributes={"kernel_shape": [1, 2], "strides": [1, 2]},
    )


def _summed_products() -> Iterator[Corner]:
    a = np.array([[NAN, 1], [INF, 1], [2, 3], [1e30, 1]], np.float32)
    b = np.array([[0, 1e30], [1, 1]], np.float32)
    yield Corner(name="matmul_not_finite", op="MatMul", inputs=(a, b), expected=(a @ b,))
    image = np.array([1, NAN, 2, 3, INF, 4, 5, 6], np.float32).reshape(1, 1, 1, 8)
    kernel = np.array([0, 1], np.float32).reshape(1, 1, 1, 2)
    flat = image.reshape(-1)
    y = (flat[:-1] * 0 + flat[1:] * 1).reshape(1, 1, 1, 7)
    yield Corner(name="conv_not_finite", op="Conv", inputs=(image, kernel), expected=(y,), constants=(1,))


def _told_apart() -> Iterator[Corner]:
    x, other = floats(*_ALL), floats(*_ALL)[::-1].copy()
    for op, y in (
        ("Equal", x == other),
        ("Less", x < other),
        ("LessOrEqual", x <= other),
        ("Greater", x > other),
        ("GreaterOrEqual", x >= other),
    ):
        yield Corner(name=f"{op.lower()}_not_finite", op=op, inputs=(x, other), expected=(y,))
    yield Corner(name="equal_nan", op="Equal", inputs=(x, x), expected=(x == x,))  # noqa: PLR0124 - NaN is not
    yield Corner(name="isnan_corners", op="IsNaN", inputs=(x,), expected=(np.isnan(x),))
    yield Corner(name="isinf_corners", op="IsInf", inputs=(x,), expected=(np.isinf(x),))
    choice = np.arange(8) % 2 == 0
    y = np.where(choice, x, other)
    yield Corner(name="where_not_finite", op="Where", inputs=(choice, x, other), expected=(y,))
    nonzero = np.array(np.nonzero(x), np.int64)
    yield Corner(name="nonzero_not_finite", op="NonZero", inputs=(x,), expected=(nonzero,))

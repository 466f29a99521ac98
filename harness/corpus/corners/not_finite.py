"""NaN and infinity: they spread as in IEEE 754, and ONNX's operators agree with numpy."""

from collections.abc import Iterator

import numpy as np

from harness.corpus.corners.corner import CHOICE, INF, NAN, Corner, floats, reduction

_ALL = (NAN, -INF, -2.5, -0.0, 0.0, 0.5, 3.0, INF)


def _elementwise() -> Iterator[Corner]:
    for dtype in (np.float32, np.float16, np.float64):
        x = floats(*_ALL, dtype=dtype)
        yield Corner(f"relu_not_finite_{x.dtype.name}", "Relu", (x,), (np.maximum(x, 0),))
        yield Corner(f"identity_not_finite_{x.dtype.name}", "Identity", (x,), (x,))
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
        yield Corner(f"{op.lower()}_not_finite", op, (x,), (y,))
    far = floats(-1000, -104, -88, 88, 89, 1000)
    yield Corner("exp_far_out", "Exp", (far,), (np.exp(far),))
    sigmoid = 1 / (1 + np.exp(-far.astype(np.float64)))
    yield Corner("sigmoid_far_out", "Sigmoid", (far,), (sigmoid.astype(np.float32),))
    yield Corner("tanh_far_out", "Tanh", (far,), (np.tanh(far),))


def _two_at_a_time() -> Iterator[Corner]:
    a, b = floats(NAN, 1, NAN, -INF, INF, 2), floats(1, NAN, NAN, 0, 0, 2)
    for dtype in (np.float32, np.float16, np.float64):
        left, right = a.astype(dtype), b.astype(dtype)
        for op, y in (("Max", np.maximum(left, right)), ("Min", np.minimum(left, right))):
            yield Corner(f"{op.lower()}_nan_{left.dtype.name}", op, (left, right), (y,))
    zero = floats(0, -0.0, 0, INF, -INF, NAN)
    ones = floats(0, 1, 1, INF, INF, 1)
    yield Corner("div_by_zero", "Div", (ones, zero), (ones / zero,))
    yield Corner("mul_zero_by_infinity", "Mul", (zero, ones[::-1]), (zero * ones[::-1],))
    yield Corner("sub_infinities", "Sub", (ones, zero), (ones - zero,))
    base = floats(0, 0, -8, INF, NAN, 1, -0.0, -2, -2, 2)
    power = floats(0, -1, 1 / 3, 0, 0, NAN, -1, 3, -1, 200)
    yield Corner("pow_corners", "Pow", (base, power), (np.power(base, power),))
    left, right = floats(5, -5, 5, -5, 5, INF, 0), floats(3, 3, -3, -3, INF, 3, 5)
    yield Corner("mod_of_floats", "Mod", (left, right), (np.fmod(left, right),), {"fmod": 1})
    big = floats(1e30, -1e30, 3e38)
    yield Corner("mul_overflows", "Mul", (big, big), (big * big,))
    half = floats(60000, -60000, 32, dtype=np.float16)
    yield Corner("add_overflows_float16", "Add", (half, half), (half + half,))


def _bounded() -> Iterator[Corner]:
    x = floats(*_ALL)
    low, high, least, most = (np.array(bound, np.float32) for bound in (-1, 1, -INF, INF))
    yield Corner("clip_nan", "Clip", (x, low, high), (np.clip(x, low, high),), constants=(1, 2))
    yield Corner("clip_at_infinity", "Clip", (x, least, most), (x,), constants=(1, 2))
    # "When min is greater than max, the clip operator sets all values to max" (since opset 13's text).
    lowest = np.full(6, low)
    yield Corner("clip_crossed_bounds", "Clip", (x[2:], high, low), (lowest,), constants=(1, 2))


def _reduced() -> Iterator[Corner]:
    x = np.array([[1, NAN, 3], [INF, 2, -INF], [-INF, -INF, -INF]], np.float32)
    for op, y in (
        ("ReduceMax", x.max(1)),
        ("ReduceMin", x.min(1)),
        ("ReduceSum", x.sum(1)),
        ("ReduceMean", x.mean(1)),
    ):
        yield reduction("not_finite", op, x, 1, y)
    rows = np.array([[1000, 1001, 999], [-INF, 0, 1], [-1000, -1000, -1000], [3, NAN, 1]], np.float32)
    shifted = np.exp(rows.astype(np.float64) - rows.max(1, keepdims=True))
    softmax = shifted / shifted.sum(1, keepdims=True)
    for op, y in (("Softmax", softmax), ("LogSoftmax", np.log(softmax))):
        yield Corner(f"{op.lower()}_far_out", op, (rows,), (y.astype(np.float32),), {"axis": 1})
    window = np.array([-INF, -INF, 1, 2], np.float32).reshape(1, 1, 1, 4)
    highest = np.array([-INF, 2], np.float32).reshape(1, 1, 1, 2)
    attributes = {"kernel_shape": [1, 2], "strides": [1, 2]}
    yield Corner("maxpool_of_minus_infinity", "MaxPool", (window,), (highest,), attributes)


def _summed_products() -> Iterator[Corner]:
    a = np.array([[NAN, 1], [INF, 1], [2, 3], [1e30, 1]], np.float32)
    b = np.array([[0, 1e30], [1, 1]], np.float32)
    yield Corner("matmul_not_finite", "MatMul", (a, b), (a @ b,))
    image = np.array([1, NAN, 2, 3, INF, 4, 5, 6], np.float32).reshape(1, 1, 1, 8)
    kernel = np.array([0, 1], np.float32).reshape(1, 1, 1, 2)
    flat = image.reshape(-1)
    y = (flat[:-1] * 0 + flat[1:] * 1).reshape(1, 1, 1, 7)
    yield Corner("conv_not_finite", "Conv", (image, kernel), (y,), constants=(1,))


def _told_apart() -> Iterator[Corner]:
    x, other = floats(*_ALL), floats(*_ALL)[::-1].copy()
    for op, y in (
        ("Equal", x == other),
        ("Less", x < other),
        ("LessOrEqual", x <= other),
        ("Greater", x > other),
        ("GreaterOrEqual", x >= other),
    ):
        yield Corner(f"{op.lower()}_not_finite", op, (x, other), (y,))
    yield Corner("equal_nan", "Equal", (x, x), (x == x,))  # noqa: PLR0124 - NaN is not
    yield Corner("isnan_corners", "IsNaN", (x,), (np.isnan(x),))
    yield Corner("isinf_corners", "IsInf", (x,), (np.isinf(x),))
    yield Corner("where_not_finite", "Where", (CHOICE, x, other), (np.where(CHOICE, x, other),))
    yield Corner("nonzero_not_finite", "NonZero", (x,), (np.array(np.nonzero(x), np.int64),))


NOT_FINITE = (_elementwise, _two_at_a_time, _bounded, _reduced, _summed_products, _told_apart)

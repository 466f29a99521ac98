"""Productions that sum: products, convolutions, pools, reductions, normalizations, recurrent operators."""

from typing import Any

import numpy as np

from harness.annex.made.grown.elementwise_growth import GROWN_FLOATS, NEAR
from harness.annex.made.grown.growth import GREATEST, GrownTensor, Growth, MisfitError
from harness.corpus.model.last_window import IGNORED_SINCE, begins_behind

_AXES_INPUT_SINCE = 18
_GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
_SUM_OVER = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare",
             "ReduceLogSumExp")  # fmt: skip


def product(g: Growth) -> None:
    """Add MatMul with a weight, of any rank, a vector included."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS and one.rank > 0)
    inner = x.shape[-1]
    batches = [(2, inner, 3)] if x.rank == 2 or x.shape[-3:-2] == (2,) else []  # noqa: PLR2004 - they broadcast
    # onnxruntime's CPU EP refuses the product of a vector and a matrix without rows.
    vectors = [(inner,)] if x.size or not inner else []
    shape = g.random.pick([(inner, g.random.between(1, 8)), *vectors, *batches])
    w = g.drawn(x.dtype, shape, 0.25)
    g.op("MatMul", x, w, most=max(1, x.most * inner * w.most))


def own_product(g: Growth) -> None:
    """Add MatMul of a value with its own transpose."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS and one.rank > 1 and one.most <= NEAR)
    order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
    turned = g.op("Transpose", x, perm=order, most=x.most, exact=True)
    g.op("MatMul", x, turned, most=max(1, x.most * x.shape[-1] * x.most))


def general_product(g: Growth) -> None:
    """Add Gemm with every combination of its attributes, and each shape of bias."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS and one.rank == 2)  # noqa: PLR2004 - matrices only
    turned, other = g.random.below(2), g.random.below(2)
    rows, inner = x.shape[::-1] if turned else x.shape
    columns = g.random.between(1, 8)
    w = g.drawn(x.dtype, (columns, inner) if other else (inner, columns), 0.25)
    shape = g.random.pick([(columns,), (rows, columns), (1, columns), (rows, 1), ()])
    bias = g.drawn(x.dtype, shape) if g.chance(0.7) else None
    alpha, beta = g.random.pick([None, 0.5]), g.random.pick([None, 0.25])
    most = max(1, x.most * inner * w.most + 2)
    g.op("Gemm", x, w, bias, transA=turned, transB=other, alpha=alpha, beta=beta, most=most)


def convolution(g: Growth) -> None:
    """Add Conv of one to three dimensions, with groups, bias and an activation behind it."""
    x = _image(g)
    channels, space = x.shape[1], x.shape[2:]
    group = g.random.pick([one for one in range(1, channels + 1) if channels % one == 0])
    filters = group * g.random.between(1, 3)
    kernel = [g.random.between(1, min(3, size)) for size in space]
    w = g.drawn(x.dtype, (filters, channels // group, *kernel), 0.25)
    bias = g.drawn(x.dtype, (filters,)) if g.chance(0.6) else None
    window = _window(g, kernel, space)
    terms = (channels // group) * int(np.prod(kernel))
    most = max(1, x.most * w.most * terms + 2)
    y = g.op("Conv", x, w, bias, group=group, kernel_shape=kernel, most=most, **window)
    _behind(g, y)


def deconvolution(g: Growth) -> None:
    """Add ConvTranspose with strides, padding and extra rows."""
    x = _image(g)
    channels, space = x.shape[1], x.shape[2:]
    kernel = [g.random.between(1, 3) for _ in space]
    strides = [g.random.between(1, 2) for _ in space]
    w = g.drawn(x.dtype, (channels, g.random.between(1, 3), *kernel), 0.25)
    bias = g.drawn(x.dtype, (w.shape[1],)) if g.chance(0.5) else None
    extra = [g.random.below(step) for step in strides] if g.chance(0.4) else None
    most = max(1, x.most * w.most * channels * int(np.prod(kernel)) + 2)
    g.op("ConvTranspose", x, w, bias, kernel_shape=kernel, strides=strides, output_padding=extra, most=most)


def pool(g: Growth) -> None:
    """Add MaxPool and AveragePool with windows beside the default, or a global pool."""
    x = _image(g)
    kind = g.random.pick(["MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"])
    exact = "Max" in kind
    if kind.startswith("Global"):
        g.op(kind, x, most=x.most, exact=exact)
        return
    kernel = [g.random.between(1, min(3, size)) for size in x.shape[2:]]
    window = _window(g, kernel, x.shape[2:] if kind == "MaxPool" else ())
    if kind == "AveragePool" and not window.get("auto_pad"):
        window["count_include_pad"] = g.random.below(2)
    rounded_up = g.random.below(2) if "auto_pad" not in window else None
    if rounded_up and g.opset < IGNORED_SINCE and begins_behind(x.shape[2:], kernel, window):
        rounded_up = 0
    g.op(kind, x, kernel_shape=kernel, ceil_mode=rounded_up, most=x.most, exact=exact, **window)


def reduced(g: Growth) -> None:
    """Add a reduction over some axes, or all."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS and one.rank > 0 and one.size > 0 and one.most <= NEAR)
    kind = g.random.pick(_SUM_OVER)
    axes = g.random.some(range(x.rank), g.random.between(1, x.rank)) if g.chance(0.8) else None
    if axes is not None and g.chance(0.3):
        axes = [axis - x.rank for axis in axes]
    as_input = g.opset >= _AXES_INPUT_SINCE or kind == "ReduceSum"
    most = min(GREATEST, max(1, x.most) ** 2 * x.size)
    exact = kind in {"ReduceMax", "ReduceMin"}
    keep = g.random.pick([None, 0, 1])
    if as_input and axes is not None:
        g.op(kind, x, g.ints(*axes), keepdims=keep, most=most, exact=exact)
    else:
        g.op(kind, x, axes=axes, keepdims=keep, most=most, exact=exact)


def summed_up(g: Growth) -> None:
    """Add CumSum, forwards or backwards, with or without the element itself."""
    x = g.pick(lambda one: one.dtype in {"float32", "float64", "int64", "int32"} and one.rank > 0)
    axis = g.axis(x)
    given = {"exclusive": g.random.below(2), "reverse": g.random.below(2)}
    most = max(1, x.most * x.shape[axis])
    g.op("CumSum", x, g.weight(np.array(axis, np.int64)), most=most, exact="int" in x.dtype, **given)


def softmax(g: Growth) -> None:
    """Add Softmax or LogSoftmax along any axis."""
    x = g.pick(lambda one: one.dtype in GROWN_FLOATS and one.rank > 0 and one.size > 0 and one.most <= NEAR)
    kind = g.random.pick(["Softmax", "Softmax", "LogSoftmax"])
    g.op(kind, x, axis=g.axis(x), most=1 if kind == "Softmax" else 2 * x.most + 10)


def normalized(g: Growth) -> None:
    """Add a normalization, with an epsilon that keeps equal elements away from a division by zero."""
    kind = g.random.pick(["BatchNormalization", "InstanceNormalization", "LayerNormalization", "LRN",
                            "GroupNormalization", "RMSNormalization"])  # fmt: skip
    if kind in {"LayerNormalization", "RMSNormalization"}:
        x = g.pick(lambda one: one.dtype == "float32" and one.rank > 0 and one.size > 0 and one.most <= NEAR)
        scale = g.drawn(x.dtype, x.shape[-1:])
        bias = g.drawn(x.dtype, x.shape[-1:]) if kind == "LayerNormalization" and g.chance(0.6) else None
        g.op(kind, x, scale, *([bias] if bias else []), axis=-1, epsilon=0.25, most=NEAR)
        return
    x = _image(g)
    channels = x.shape[1]
    if x.dtype != "float32":
        raise MisfitError("of float32 only")
    if kind == "LRN":
        if x.rank != 4:  # noqa: PLR2004 - the CPU EP's kernel is of images
            raise MisfitError("of images only")
        g.op(kind, x, size=g.random.pick([1, 3, 5]), alpha=0.5, bias=1.0, beta=0.75, most=x.most)
        return
    scale, bias = g.drawn(x.dtype, (channels,)), g.drawn(x.dtype, (channels,))
    if kind == "BatchNormalization":
        mean, variance = g.drawn(x.dtype, (channels,)), g.weight(np.abs(g.draw(x.dtype, (channels,))) + 0.5)
        variance = g.weight(g.weights[variance.name].astype(x.dtype))
        y = g.op(kind, x, scale, bias, mean, variance, epsilon=0.25, most=8 * (x.most + 2))
        _behind(g, y)
    elif kind == "InstanceNormalization":
        g.op(kind, x, scale, bias, epsilon=0.25, most=NEAR)
    else:
        groups = g.random.pick([one for one in range(1, channels + 1) if channels % one == 0])
        g.op(kind, x, scale, bias, num_groups=groups, epsilon=0.25, most=NEAR)


def attention(g: Growth) -> None:
    """Add Softmax of a product, as in attention, with a scale and a mask of large negative numbers."""
    x = g.pick(lambda one: one.dtype == "float32" and one.rank > 2 and one.size > 0 and one.most <= 4)  # noqa: PLR2004
    turned = g.op("Transpose", x, perm=[*range(x.rank - 2), x.rank - 1, x.rank - 2], most=x.most, exact=True)
    scores = g.op("MatMul", x, turned, most=max(1, x.most * x.most * x.shape[-1]))
    scores = g.op("Mul", scores, g.weight(np.array(0.25, np.float32)), most=scores.most)
    if g.chance(0.5):
        length = x.shape[-2]
        mask = np.triu(np.full((length, length), -1000, np.float32), 1)
        scores = g.op("Add", scores, g.weight(mask), most=scores.most + 1000)
    shares = g.op("Softmax", scores, axis=-1, most=1)
    g.op("MatMul", shares, x, most=x.most)


def recurrent(g: Growth) -> None:
    """Add LSTM, GRU or RNN in each direction, with and without a bias."""
    x = g.pick(lambda one: one.dtype == "float32" and one.rank == 3 and one.size > 0)  # noqa: PLR2004 - sequences
    kind = g.random.pick(list(_GATES))
    direction = g.random.pick(["forward", "reverse", "bidirectional"])
    ways = 2 if direction == "bidirectional" else 1
    width = g.random.between(1, 4)
    rows = _GATES[kind] * width
    weights = [g.drawn("float32", (ways, rows, columns), 0.25) for columns in (x.shape[2], width)]
    bias = [g.drawn("float32", (ways, 2 * rows), 0.25)] if g.chance(0.6) else []
    before = g.random.below(2) if kind == "GRU" else None
    given: dict[str, Any] = {"hidden_size": width, "direction": direction, "linear_before_reset": before}
    g.ops(2, kind, x, *weights, *bias, most=2, **given)


def _behind(g: Growth, x: GrownTensor) -> None:
    """Add a node that runtimes fuse into the previous one."""
    kind = g.random.pick(["", "Relu", "Clip", "Sigmoid", "LeakyRelu", "Add"])
    if kind == "Add":
        shape = [1, x.shape[1], *[1] * (x.rank - 2)]
        g.op("Add", x, g.drawn(x.dtype, shape), most=x.most + 2)
    elif kind == "Clip":
        low, high = (g.weight(np.array(value, x.dtype)) for value in (0, 6))
        g.op("Clip", x, low, high, most=6)
    elif kind:
        g.op(kind, x, most=x.most)


def _image(g: Growth) -> GrownTensor:
    return g.pick(
        lambda one: one.dtype in {"float32", "float16"} and 3 <= one.rank <= 5 and one.size > 0  # noqa: PLR2004
    )


def _window(g: Growth, kernel: list[int], dilated: tuple[int, ...]) -> dict[str, Any]:
    """Return attributes of a window; if sizes of a space are given, it is dilated within them."""
    window: dict[str, Any] = {}
    if g.chance(0.5):
        window["strides"] = [g.random.between(1, 2) for _ in kernel]
    if dilated and g.chance(0.3):
        window["dilations"] = [
            g.random.between(1, 2) if 2 * (one - 1) < size else 1
            for one, size in zip(kernel, dilated, strict=True)
        ]
    drawn = g.random.below(100)
    if drawn < 50:  # noqa: PLR2004 - explicit padding, on each side its own
        window["pads"] = [g.random.below(size) for size in (*kernel, *kernel)]
    elif drawn < 70 and "dilations" not in window:  # noqa: PLR2004 - padding by rule
        window["auto_pad"] = g.random.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
    return window


SUM_PRODUCTIONS = (
    product, own_product, general_product, convolution, convolution, deconvolution, pool, pool, reduced,
    reduced, summed_up, softmax, normalized, attention,
)  # fmt: skip

RECURRENT = (recurrent,)

"""Models whose outputs are whole numbers, flags, positions, or jump otherwise."""

from collections.abc import Iterator

import numpy as np

from benchmarks.planted.arithmetic import Arithmetic, Array, product, softmax
from benchmarks.planted.models.drawn import normal, whole
from benchmarks.planted.models.model import Knobs, Model, Values

X = "(float[8, 32] x) => "
WHOLE = {"x": whole(3, 8, 32)}
DRAWN = {"x": normal(4, 8, 32)}
WEIGHT = {"w": normal(5, 32, 6)}


def choices() -> Iterator[Model]:
    """Yield the models."""
    yield from _exact()
    yield from _flags()
    yield from _positions()
    yield from _integers()


def _away(value: Array) -> Array:
    """Round half away from zero, as C's ``round`` does; ONNX rounds half to even."""
    return np.asarray(np.trunc(value + np.copysign(0.5, value)))


def _exact() -> Iterator[Model]:
    halves = "h = Constant<value_float = 0.5>() q = Constant<value_float = 0.25>() "
    rounds: dict[str, Knobs] = {
        "half away from zero": {"f": _away},
        "Floor in place of Round": {"f": np.floor},
    }
    for name, body, change in (
        ("round-of-product", "m = Mul(x, h) y = Round(m)", lambda x: x * 0.5),
        ("round-of-sum", "m = Add(x, h) y = Round(m)", lambda x: x + 0.5),
    ):
        yield Model(
            name=name,
            text=f"{X}(float[8, 32] y) {{ {halves} {body} }}",
            inputs=WHOLE,
            compute=lambda q, v, k, change=change: [k.get("f", np.round)(change(v["x"]))],  # type: ignore[misc]
            knobs=rounds,
        )
    for name, operator, right, wrong in (
        ("floor-of-product", "Floor", np.floor, np.trunc),
        ("ceil-of-product", "Ceil", np.ceil, lambda x: np.floor(x) + 1),
        ("cast-of-product", "Cast<to = 6>", np.trunc, np.round),
    ):
        kind = "int32" if operator.startswith("Cast") else "float"
        yield Model(
            name=name,
            text=f"{X}({kind}[8, 32] y) {{ {halves} m = Mul(x, q) y = {operator}(m) }}",
            inputs=WHOLE,
            compute=lambda q, v, k, right=right: [k.get("f", right)(v["x"] * 0.25)],  # type: ignore[misc]
            knobs={"another rounding to whole numbers": {"f": wrong}},
        )
    yield Model(
        name="quantize-exact",
        text=f"{X}(int8[8, 32] y) <float s = {{2.0}}, int8 z = {{3}}> {{ y = QuantizeLinear(x, s, z) }}",
        inputs=WHOLE,
        compute=lambda q, v, k: [np.clip(k.get("f", np.round)(v["x"] / 2) + k.get("zero", 3), -128, 127)],
        knobs={"half away from zero": {"f": _away}, "zero point lost": {"zero": 0}},
    )
    yield Model(
        name="round-of-matmul",
        text=f"{X}(float[8, 6] y) {{ s = MatMul(x, w) y = Round(s) }}",
        inputs=DRAWN,
        weights=WEIGHT,
        compute=lambda q, v, k: [k.get("f", np.round)(product(q, v["x"], v["w"]))],
        knobs={"Floor in place of Round": {"f": np.floor}},
    )


def _flags() -> Iterator[Model]:
    one = "o = Constant<value_float = 1.0>() t = Constant<value_float = 2.0>() "
    for name, operator, right, wrong in (
        ("greater-exact", "Greater", np.greater, np.greater_equal),
        ("equal-exact", "Equal", np.equal, lambda a, b: np.abs(a - b) <= 1),
        ("less-or-equal-exact", "LessOrEqual", np.less_equal, np.less),
    ):
        yield Model(
            name=name,
            text=f"{X}(bool[8, 32] y) {{ {one} a = Add(x, o) y = {operator}(a, t) }}",
            inputs=WHOLE,
            compute=lambda q, v, k, right=right: [k.get("f", right)(v["x"] + 1, 2)],  # type: ignore[misc]
            knobs={"another comparison at equality": {"f": wrong}},
        )
    yield Model(
        name="greater-of-matmul",
        text=f"{X}(bool[8, 6] y) {{ {one} s = MatMul(x, w) y = Greater(s, o) }}",
        inputs=DRAWN,
        weights=WEIGHT,
        compute=lambda q, v, k: [product(q, v["x"], v["w"]) > 1],
    )


def _positions() -> Iterator[Model]:
    tied = normal(6, 32, 6)
    tied[:, 0] = tied[:, 1] = 3 * np.abs(tied[:, 0])  # the same greatest product twice
    yield Model(
        name="argmax",
        text=f"{X}(int64[8, 1] y) {{ s = MatMul(x, w) y = ArgMax<axis = -1>(s) }}",
        inputs=DRAWN,
        weights=WEIGHT,
        compute=_argmax,
        knobs={"ArgMin in place of ArgMax": {"least": True}},
    )
    yield Model(
        name="argmax-near-ties",
        text=f"{X}(int64[8, 1] y) {{ a = Abs(x) s = MatMul(a, w) p = Softmax(s) y = ArgMax<axis = -1>(p) }}",
        inputs=DRAWN,
        weights={"w": tied},
        compute=_tied,
        knobs={"the last of equals": {"last": True}},
    )
    yield Model(
        name="argmax-of-whole",
        text=f"{X}(int64[8, 1] y) {{ a = Abs(x) y = ArgMax<axis = -1>(a) }}",
        inputs=WHOLE,
        compute=lambda q, v, k: [_first(np.abs(v["x"]), k)],
        knobs={"the last of equals": {"last": True}},
    )
    yield Model(
        name="topk",
        text=f"{X}(float[8, 3] v, int64[8, 3] i) <int64[1] n = {{3}}> {{ "
        "s = MatMul(x, w) v, i = TopK(s, n) }",
        inputs=DRAWN,
        weights=WEIGHT,
        compute=_topk,
        knobs={"the least in place of the greatest": {"least": True}, "unsorted": {"unsorted": True}},
    )
    yield Model(
        name="nonzero",
        text=f"{X}(int64[2, N] y) {{ s = MatMul(x, w) r = Relu(s) y = NonZero(r) }}",
        inputs=DRAWN,
        weights=WEIGHT,
        compute=lambda q, v, k: [np.stack(np.nonzero(np.maximum(product(q, v["x"], v["w"]), 0)))],
    )
    yield Model(
        name="compress",
        text=f"{X}(float[N] y) <float f = {{0.3}}> {{ e = Exp(x) g = Greater(x, f) y = Compress(e, g) }}",
        inputs=DRAWN,
        compute=lambda q, v, k: [q(np.exp(v["x"]))[v["x"] > np.float32(0.3)]],
    )


def _first(value: Array, k: Knobs) -> Array:
    if k.get("last"):
        return np.asarray(value.shape[-1] - 1 - np.argmax(value[..., ::-1], -1)[..., None])
    return np.asarray(np.argmax(value, -1)[..., None])


def _argmax(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    scores = product(q, v["x"], v["w"])
    return [_first(-scores if k.get("least") else scores, k)]


def _tied(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    return [_first(softmax(q, product(q, np.abs(v["x"]), v["w"])), k)]


def _topk(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    scores = product(q, v["x"], v["w"])
    order = np.argsort(scores if k.get("least") else -scores, axis=-1, kind="stable")[:, :3]
    if k.get("unsorted"):
        order = order[:, ::-1]
    return [np.take_along_axis(scores, order, -1), order]


def _integers() -> Iterator[Model]:
    yield Model(
        name="integers",
        text="(int64[8, 32] x) => (int64[8, 32] y) <int64 c = {7}> { m = Mul(x, c) y = Add(m, x) }",
        inputs={"x": whole(7, 8, 32, most=1000, dtype="int64")},
        compute=lambda q, v, k: [v["x"] * 8],
    )
    yield Model(
        name="integer-product",
        text="(int8[8, 32] x) => (int32[8, 6] y) { y = MatMulInteger(x, w) }",
        inputs={"x": whole(8, 8, 32, most=127, dtype="int8")},
        weights={"w": whole(9, 32, 6, most=127, dtype="int8")},
        compute=lambda q, v, k: [v["x"].astype(np.int64) @ v["w"].astype(np.int64)],
    )
    yield Model(
        name="cast-of-matmul",
        text=f"{X}(int32[8, 6] y) <float c = {{100}}> {{ "
        "s = MatMul(x, w) m = Mul(s, c) y = Cast<to = 6>(m) }",
        inputs=DRAWN,
        weights=WEIGHT,
        compute=lambda q, v, k: [np.trunc(q(product(q, v["x"], v["w"]) * 100))],
    )
    yield Model(
        name="int8-qdq",
        text=f"{X}(float[8, 6] y) <float s = {{0.03}}, int8 z = {{0}}, float t = {{0.1}}> {{ "
        "a = QuantizeLinear(x, s, z) b = DequantizeLinear(a, s, z) c = MatMul(b, w) "
        "d = QuantizeLinear(c, t, z) y = DequantizeLinear(d, t, z) }",
        inputs={"x": normal(4, 8, 32)},
        weights=WEIGHT,
        compute=_qdq,
        knobs={"zero point off by one": {"zero": 1}},
    )


def _qdq(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    scale, other = float(np.float32(0.03)), float(np.float32(0.1))
    given = q(np.clip(np.round(q(v["x"] / scale)), -128, 127) * scale)
    found = np.clip(np.round(q(product(q, given, v["w"]) / other)), -128, 127)
    return [q((found - k.get("zero", 0)) * other)]

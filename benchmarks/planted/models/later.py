"""Models of forms that people ship, written after the rules were final, and looked at once."""

from collections.abc import Iterator

import numpy as np

from benchmarks.planted.arithmetic import Arithmetic, Array, Drawn, Rounded, mean, product, sigmoid, softmax
from benchmarks.planted.models.drawn import normal
from benchmarks.planted.models.model import BIAS, Knobs, Model, Values

ROWS = "(float[8, 32] x) => "
DRAWN = {"x": normal(61, 8, 32)}
WEIGHT = normal(62, 32, 16, scale=0.3)
OFFSET = normal(63, 16)


def later() -> Iterator[Model]:
    """Yield the models."""
    yield from _pictures()
    yield from _types()
    yield from _scores()
    yield from _sounds()


def _pixels(q: Arithmetic, v: Values, k: Knobs) -> Array:
    shade = q(sigmoid(q(product(q, v["x"], v["w"]) + k.get("bias", 1.0) * v["b"])))
    return q(shade * 255)


def _pictures() -> Iterator[Model]:
    body = "a = MatMul(x, w) s = Add(a, b) g = Sigmoid(s) p = Mul(g, most) "
    weights = {"w": normal(65, 12, 3, scale=0.4), "b": normal(66, 3), "most": np.array([255], np.float32)}
    for name, jump, rest in (
        ("bytes-of-a-picture", np.round, "r = Round(p) y = Cast<to = 2>(r)"),
        ("bytes-cut-off", np.trunc, "y = Cast<to = 2>(p)"),
    ):
        yield Model(
            name=name,
            text=f"(float[256, 12] x) => (uint8[256, 3] y) {{ {body} {rest} }}",
            inputs={"x": normal(64, 256, 12)},
            weights=weights,
            compute=lambda q, v, k, jump=jump: [jump(_pixels(q, v, k))],  # type: ignore[misc]
            knobs=BIAS,
        )


def _half(q: Arithmetic, value: Array) -> Array:
    """Return a result in float16, as the arithmetic rounds; the truth is not rounded."""
    if isinstance(q, Rounded) and q.dtype is np.float64:
        return np.asarray(value, np.float64)
    if isinstance(q, Drawn) and q.jitter:
        return Drawn(int(q.rng.integers(1 << 30)), "float16")(value)
    return np.asarray(value).astype(np.float16).astype(np.float64)


def _types() -> Iterator[Model]:
    stored = WEIGHT.astype(np.float16)
    yield Model(
        name="weights-stored-in-float16",
        text=f"{ROWS}(float[8, 16] y) {{ w = Cast<to = 1>(h) a = MatMul(x, w) s = Add(a, b) y = Tanh(s) }}",
        inputs=DRAWN,
        weights={"h": stored, "b": OFFSET},
        compute=lambda q, v, k: [q(np.tanh(q(product(q, v["x"], v["h"]) + k.get("bias", 1.0) * v["b"])))],
        knobs=BIAS,
    )
    yield Model(
        name="one-layer-in-float16",
        text=f"{ROWS}(float[8, 16] y) {{ g = Cast<to = 10>(x) a = MatMul(g, h) f = Cast<to = 1>(a) "
        "s = Add(f, b) y = Softmax(s) }",
        inputs=DRAWN,
        weights={"h": stored, "b": OFFSET},
        compute=lambda q, v, k: [
            softmax(
                q,
                q(
                    _half(q, product(q, v["x"].astype(np.float16).astype(np.float64), v["h"]))
                    + k.get("bias", 1.0) * v["b"]
                ),
                k.get("axis", -1),
            )
        ],
        knobs={**BIAS, "softmax over the wrong axis": {"axis": 0}},
    )


def _scores() -> Iterator[Model]:
    weights = {"w": WEIGHT, "b": OFFSET}
    body = "a = MatMul(x, w) s = Add(a, b) "
    yield Model(
        name="flags-of-probabilities",
        text=f"{ROWS}(float[8, 16] p, bool[8, 16] y) {{ {body} p = Sigmoid(s) y = Greater(p, t) }}",
        inputs=DRAWN,
        weights={**weights, "t": np.array([0.5], np.float32)},
        compute=_flags,
        knobs=BIAS,
    )
    yield Model(
        name="label-and-probability",
        text=f"{ROWS}(int64[8, 1] i, float[8, 16] y) {{ {body} y = Softmax(s) i = ArgMax<axis = -1>(y) }}",
        inputs=DRAWN,
        weights=weights,
        compute=_label,
        knobs={**BIAS, "softmax over the wrong axis": {"axis": 0}},
    )
    yield Model(
        name="similarity",
        text=f"{ROWS}(float[8, 16] y) {{ n = ReduceL2<axes = [1], keepdims = 1>(x) u = Div(x, n) "
        "y = MatMul(u, w) }",
        inputs=DRAWN,
        weights={"w": WEIGHT},
        compute=lambda q, v, k: [product(q, q(v["x"] / q(np.sqrt(q(q.total(v["x"] ** 2, 1))))), v["w"])],
    )
    yield Model(
        name="residual-norms",
        text=f"{ROWS}(float[8, 32] y) <float e = {{1e-5}}> {{ a = MatMul(x, w) r = Add(a, x) "
        "m = ReduceMean<axes = [1]>(r) c = Sub(r, m) q = Mul(c, c) v = ReduceMean<axes = [1]>(q) "
        "f = Add(v, e) d = Sqrt(f) y = Div(c, d) }",
        inputs=DRAWN,
        weights={"w": normal(67, 32, 32, scale=0.2)},
        compute=_residual,
    )
    yield Model(
        name="hard-swish",
        text=f"{ROWS}(float[8, 16] y) {{ {body} y = HardSwish(s) }}",
        inputs=DRAWN,
        weights=weights,
        compute=lambda q, v, k: [_hard_swish(q, v, k)],
        knobs=BIAS,
    )


def _flags(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    likely = q(sigmoid(q(product(q, v["x"], v["w"]) + k.get("bias", 1.0) * v["b"])))
    return [likely, likely > 0.5]


def _label(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    scores = q(product(q, v["x"], v["w"]) + k.get("bias", 1.0) * v["b"])
    likely = softmax(q, scores, k.get("axis", -1))
    return [np.argmax(likely, -1)[:, None], likely]


def _residual(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    summed = q(product(q, v["x"], v["w"]) + v["x"])
    centred = q(summed - mean(q, summed))
    return [q(centred / q(np.sqrt(q(mean(q, q(centred * centred)) + float(np.float32(1e-5))))))]


def _hard_swish(q: Arithmetic, v: Values, k: Knobs) -> Array:
    given = q(product(q, v["x"], v["w"]) + k.get("bias", 1.0) * v["b"])
    return q(given * q(np.clip(given / 6 + 0.5, 0, 1)))


def _sounds() -> Iterator[Model]:
    angles = 2 * np.pi * np.arange(64)[:, None] * np.arange(16)[None] / 64
    yield Model(
        name="spectrum",
        text="(float[6, 64] x) => (float[6, 16] y) <float e = {1e-6}> { r = MatMul(x, c) i = MatMul(x, s) "
        "a = Mul(r, r) b = Mul(i, i) p = Add(a, b) o = Add(p, e) y = Log(o) }",
        inputs={"x": normal(68, 6, 64)},
        weights={"c": np.cos(angles).astype(np.float32), "s": np.sin(angles).astype(np.float32)},
        compute=_spectrum,
    )
    yield Model(
        name="variance-by-squares",
        text=f"{ROWS}(float[8, 1] y) <float o = {{3.0}}> {{ a = Add(x, o) q = Mul(a, a) "
        "m = ReduceMean<axes = [1]>(a) n = ReduceMean<axes = [1]>(q) s = Mul(m, m) y = Sub(n, s) }",
        inputs=DRAWN,
        compute=_variance,
    )


def _spectrum(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    parts = [product(q, v["x"], v[name]) for name in ("c", "s")]
    power = q(q(parts[0] ** 2) + q(parts[1] ** 2))
    return [q(np.log(q(power + float(np.float32(1e-6)))))]


def _variance(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    given = q(v["x"] + 3)
    middle = mean(q, given)
    return [q(mean(q, q(given * given)) - q(middle * middle))]

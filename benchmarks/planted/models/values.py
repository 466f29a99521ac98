"""Models of element-wise operators: sizes and ranges of values."""

from collections.abc import Iterator

import numpy as np

from benchmarks.planted.arithmetic import Arithmetic, Array, erf, sigmoid, softmax
from benchmarks.planted.models.drawn import even, normal
from benchmarks.planted.models.model import Knobs, Model, Values

X = "(float[8, 32] x) => (float[8, 32] y)"
SEED = 11


def values() -> Iterator[Model]:
    """Yield the models."""
    yield from _sizes()
    yield from _functions()
    yield from _edges()


def _simple(name: str, body: str, compute: object, x: Array | None = None, **more: object) -> Model:
    """Return a model of one input and one output of the same shape."""
    given = normal(SEED, 8, 32) if x is None else x
    return Model(name=name, text=f"{X} {{ {body} }}", inputs={"x": given}, compute=compute, **more)  # type: ignore[arg-type]


def _constant(name: str, value: float) -> str:
    return f"{name} = Constant<value_float = {value!r}>() "


def _sizes() -> Iterator[Model]:
    yield _simple(
        "tiny-values",
        _constant("c", 1e-6) + "t = Tanh(x) y = Mul(t, c)",
        lambda q, v, k: [q(q(np.tanh(v["x"])) * _f(1e-6))],
    )
    yield _simple(
        "huge-values",
        _constant("c", 1e6) + "t = Tanh(x) y = Mul(t, c)",
        lambda q, v, k: [q(q(np.tanh(v["x"])) * 1e6)],
    )
    yield _simple(
        "exp-of-60-orders", "y = Exp(x)", lambda q, v, k: [q(np.exp(v["x"]))], even(2, -69, 69, 8, 32)
    )
    yield _simple(
        "power-of-orders",
        _constant("c", 9.0) + "a = Abs(x) y = Pow(a, c)",
        lambda q, v, k: [q(np.abs(v["x"]) ** 9)],
    )
    yield _simple(
        "subnormal-values",
        _constant("c", 1e-39) + "y = Mul(x, c)",
        lambda q, v, k: [q(v["x"] * _f(1e-39))],
    )
    yield _simple(
        "log-near-one",
        _constant("c", 1e-3) + _constant("o", 1.0) + "s = Mul(x, c) a = Add(s, o) y = Log(a)",
        lambda q, v, k: [q(np.log(q(q(v["x"] * _f(1e-3)) + 1)))],
    )
    yield _simple(
        "small-divisor",
        _constant("c", 5e-4) + "t = Tanh(x) a = Abs(t) d = Add(a, c) y = Div(t, d)",
        _small_divisor,
        normal(SEED, 8, 32, scale=1e-3),
    )


def _f(value: float) -> float:
    return float(np.float32(value))


def _small_divisor(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    tanh = q(np.tanh(v["x"]))
    return [q(tanh / q(np.abs(tanh) + _f(5e-4)))]


def _functions() -> Iterator[Model]:
    yield _simple(
        "waves",
        _constant("s", 20.0) + "a = Mul(x, s) y = Sin(a)",
        lambda q, v, k: [q(np.sin(q(v["x"] * 20)))],
    )
    yield _simple(
        "amplifying",
        _constant("c", 1.0005) + "a = Tanh(x) b = Mul(a, c) y = Sub(b, a)",
        _amplifying,
    )
    yield _simple(
        "gelu-by-erf",
        _constant("r", 0.7071067811865476)
        + _constant("o", 1.0)
        + _constant("h", 0.5)
        + "a = Mul(x, r) e = Erf(a) s = Add(e, o) m = Mul(x, s) y = Mul(m, h)",
        _gelu,
        knobs={"tanh in place of erf": {"tanh": True}, "a coarse erf": {"coarse": True}},
    )
    yield _simple(
        "gelu",
        "y = Gelu(x)",
        lambda q, v, k: [q(_gelu_of(v["x"], k))],
        opset=20,
        knobs={"tanh in place of erf": {"tanh": True}, "a coarse erf": {"coarse": True}},
    )
    yield _simple(
        "swish",
        "s = Sigmoid(x) y = Mul(x, s)",
        lambda q, v, k: [q(v["x"] * q(_any_sigmoid(v["x"], k)))],
        knobs={"a hard sigmoid": {"hard": True}},
    )
    yield Model(
        name="float64-tanh",
        text="(double[8, 32] x) => (double[8, 32] y) { a = Tanh(x) y = Mul(a, x) }",
        inputs={"x": normal(SEED, 8, 32, dtype="float64")},
        compute=lambda q, v, k: [q(v["x"] * q(np.tanh(v["x"])))],
    )


def _amplifying(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    tanh = q(np.tanh(v["x"]))
    return [q(q(tanh * q(_f(1.0005))) - tanh)]


def _gelu(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    if k:
        return [q(_gelu_of(v["x"], k))]
    x = v["x"]
    return [q(q(x * q(q(erf(q(x * _f(0.7071067811865476)))) + 1)) * 0.5)]


def _gelu_of(x: Array, k: Knobs) -> Array:
    if k.get("tanh"):
        return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))
    if k.get("coarse"):  # Abramowitz and Stegun 7.1.25, off by 2.5e-5
        a = np.abs(x) / np.sqrt(2)
        t = 1 / (1 + 0.47047 * a)
        e = 1 - (0.3480242 * t - 0.0958798 * t**2 + 0.7478556 * t**3) * np.exp(-a * a)
        return np.asarray(0.5 * x * (1 + np.sign(x) * e))
    return np.asarray(0.5 * x * (1 + erf(x / np.sqrt(2))))


def _any_sigmoid(x: Array, k: Knobs) -> Array:
    return np.clip(0.2 * x + 0.5, 0, 1) if k.get("hard") else sigmoid(x)


def _edges() -> Iterator[Model]:
    yield _simple(
        "sigmoid-tails",
        _constant("c", 8.0) + "a = Mul(x, c) y = Sigmoid(a)",
        lambda q, v, k: [q(sigmoid(q(v["x"] * 8)))],
    )
    yield _simple(
        "softmax-tails",
        _constant("c", 4.0) + "a = Mul(x, c) y = Softmax(a)",
        lambda q, v, k: [softmax(q, q(v["x"] * 4), k.get("axis", -1))],
        knobs={"softmax over the wrong axis": {"axis": 0}},
    )
    yield _simple(
        "clip",
        _constant("l", -0.7) + _constant("h", 0.9) + "t = Tanh(x) e = Exp(t) s = Sub(e, t) y = Clip(t, l, h)",
        lambda q, v, k: [np.clip(q(np.tanh(v["x"])), _f(-0.7), k.get("high", _f(0.9)))],
        knobs={"another bound of Clip": {"high": 1.0}},
    )
    yield _simple(
        "specials",
        "l = Log(x) y = Sqrt(l)",
        lambda q, v, k: [q(np.sqrt(q(np.log(v["x"]))))],
        np.where(np.arange(256).reshape(8, 32) % 9, np.exp(np.abs(normal(SEED, 8, 32))), 0.5).astype(
            "float32"
        ),
    )
    yield _simple(
        "infinities",
        _constant("o", 1.0) + "r = Relu(x) d = Div(o, r) y = Mul(d, x)",
        lambda q, v, k: [q(q(1 / np.maximum(v["x"], 0)) * v["x"])],
    )
    yield _simple(
        "ill-conditioned",
        _constant("b", 1e10)
        + _constant("s", 1e3)
        + "m = Mul(x, s) a = Add(m, b) l = Sqrt(a) p = Mul(l, l) y = Softmax(p)",
        _ill_conditioned,
    )


def _ill_conditioned(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    root = q(np.sqrt(q(q(v["x"] * 1e3) + 1e10)))
    return [softmax(q, q(root * root))]

"""Models with sums: products, normalizations, attention, recurrence."""

from collections.abc import Iterator

import numpy as np

from benchmarks.planted.arithmetic import Arithmetic, Array, mean, product, sigmoid, softmax
from benchmarks.planted.models.drawn import normal, picture
from benchmarks.planted.models.model import BIAS, Knobs, Model, Values

X = "(float[8, 32] x) => "
DRAWN = {"x": normal(21, 8, 32)}
PICTURE = picture()
MLP = {"w": normal(23, 32, 16, scale=0.3), "b": normal(24, 16), "u": normal(25, 16, 8, scale=0.3)}


def networks() -> Iterator[Model]:
    """Yield the models."""
    yield from _products()
    yield from _normalizations()
    yield from _means()
    yield from _attention()
    yield from _recurrence()


def _mlp(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    hidden = q(product(q, v["x"], v["w"]) + k.get("bias", 1.0) * v["b"])
    return [softmax(q, product(q, np.maximum(hidden, 0), v["u"]), k.get("axis", -1))]


def _products() -> Iterator[Model]:
    body = "a = MatMul(x, w) s = Add(a, b) r = Relu(s) p = MatMul(r, u) y = Softmax(p) "
    wrong = {**BIAS, "softmax over the wrong axis": {"axis": 0}}
    yield Model(
        name="mlp",
        text=f"{X}(float[8, 8] y) {{ {body} }}",
        inputs=DRAWN,
        weights=MLP,
        compute=_mlp,
        knobs=wrong,
    )
    yield Model(
        name="mlp-of-any-batch",
        text=f"(float[N, 32] x) => (float[N, 8] y) {{ {body} }}",
        inputs={"x": normal(26, 5, 32)},
        weights=MLP,
        compute=_mlp,
        knobs=wrong,
    )
    yield Model(
        name="mlp-float16",
        text=f"(float16[8, 32] x) => (float16[8, 8] y) {{ {body} }}",
        inputs={"x": normal(21, 8, 32, dtype="float16")},
        weights={name: value.astype(np.float16) for name, value in MLP.items()},
        compute=_mlp,
        knobs=wrong,
    )
    yield Model(
        name="to-bfloat16",
        text=f"{X}(bfloat16[8, 16] y) {{ a = MatMul(x, w) y = Cast<to = 16>(a) }}",
        inputs=DRAWN,
        weights={"w": MLP["w"]},
        compute=lambda q, v, k: [product(q, v["x"], v["w"])],
    )
    yield Model(
        name="constant-weights",
        text=f"{X}(float[8, 16] y) {{ a = MatMul(x, w) y = Tanh(a) }}",
        inputs=DRAWN,
        weights={"w": np.full((32, 16), 0.1, np.float32)},
        compute=lambda q, v, k: [q(np.tanh(product(q, v["x"], v["w"])))],
    )
    yield Model(
        name="large-beside-tiny",
        text=f"{X}(float[8, 16] y, float[8, 16] z) <float c = {{1e-9}}, float d = {{1000}}> {{ "
        "a = MatMul(x, w) t = Tanh(a) y = Mul(a, d) z = Mul(t, c) }",
        inputs=DRAWN,
        weights={"w": MLP["w"]},
        compute=_large_beside_tiny,
    )
    yield Model(
        name="long-product",
        text="(float[4, 512] x) => (float[4, 8] y) { y = MatMul(x, w) }",
        inputs={"x": normal(27, 4, 512)},
        weights={"w": normal(28, 512, 8)},
        compute=lambda q, v, k: [product(q, v["x"], v["w"])],
    )
    yield Model(
        name="sequence",
        text=f"{X}(seq(float[2, 32]) y) <int64 n = {{2}}> {{ e = Exp(x) y = SplitToSequence(e, n) }}",
        inputs=DRAWN,
        compute=lambda q, v, k: list(q(np.exp(v["x"])).reshape(4, 2, 32)),
    )


def _large_beside_tiny(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    found = product(q, v["x"], v["w"])
    return [q(found * 1000), q(q(np.tanh(found)) * float(np.float32(1e-9)))]


def _layer_norm(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    centred = q(v["x"] - mean(q, v["x"]))
    power = mean(q, q(centred * centred))
    if k.get("unbiased"):
        power = power * 32 / 31
    return [
        q(q(q(centred / q(np.sqrt(power + k.get("epsilon", 1e-5)))) * v["g"]) + k.get("bias", 1.0) * v["h"])
    ]


def _normalizations() -> Iterator[Model]:
    wrong = {**BIAS, "another epsilon": {"epsilon": 1e-6}, "unbiased variance": {"unbiased": True}}
    norm = f"{X}(float[8, 32] y) {{ y = LayerNormalization(x, g, h) }}"
    weights = {"g": 1 + normal(29, 32, scale=0.1), "h": normal(30, 32, scale=0.1)}
    yield Model(name="layer-norm", text=norm, inputs=DRAWN, weights=weights, compute=_layer_norm, knobs=wrong)
    yield Model(
        name="layer-norm-near-zero",
        text=norm,
        inputs={"x": normal(21, 8, 32, scale=1e-4)},
        weights=weights,
        compute=_layer_norm,
        knobs=wrong,
    )
    yield Model(
        name="instance-norm",
        text="(float[1, 4, 12, 12] x) => (float[1, 4, 12, 12] y) { "
        "y = InstanceNormalization<epsilon = 1e-5>(x, g, h) }",
        inputs=PICTURE,
        weights={"g": 1 + normal(31, 4, scale=0.1), "h": normal(32, 4)},
        compute=_instance_norm,
        knobs={**BIAS, "another epsilon": {"epsilon": 1e-3}},
    )
    yield Model(
        name="batch-norm",
        text="(float[1, 4, 12, 12] x) => (float[1, 4, 12, 12] y) { y = BatchNormalization(x, g, h, m, s) }",
        inputs=PICTURE,
        weights={
            "g": 1 + normal(33, 4, scale=0.1),
            "h": normal(34, 4),
            "m": normal(35, 4),
            "s": np.abs(normal(36, 4)),
        },
        compute=_batch_norm,
        knobs={**BIAS, "another epsilon": {"epsilon": 1e-3}},
    )


def _planes(value: Array) -> Array:
    return value[None, :, None, None]


def _instance_norm(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    flat = v["x"].reshape(1, 4, 144)
    centred = q(flat - mean(q, flat))
    power = mean(q, q(centred * centred))
    found = q(centred / q(np.sqrt(power + k.get("epsilon", 1e-5)))).reshape(1, 4, 12, 12)
    return [q(q(found * _planes(v["g"])) + k.get("bias", 1.0) * _planes(v["h"]))]


def _batch_norm(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    scale = q(_planes(v["g"]) / q(np.sqrt(_planes(v["s"]) + k.get("epsilon", 1e-5))))
    return [q(q(q(v["x"] - _planes(v["m"])) * scale) + k.get("bias", 1.0) * _planes(v["h"]))]


def _means() -> Iterator[Model]:
    yield Model(
        name="wide-softmax",
        text="(float[2, 2048] x) => (float[2, 2048] y) { y = Softmax(x) }",
        inputs={"x": normal(37, 2, 2048)},
        compute=lambda q, v, k: [softmax(q, v["x"])],
    )
    yield Model(
        name="flattened-softmax",
        text="(float[2, 8, 64] x) => (float[2, 8, 64] y) { y = Softmax<axis = 1>(x) }",
        inputs={"x": normal(38, 2, 8, 64)},
        compute=_flattened,
        knobs={"softmax over the wrong axis": {"axis": -1}},
        opset=11,
    )
    yield Model(
        name="mean-and-power",
        text=f"{X}(float[8, 1] y, float[8, 1] z) {{ "
        "y = ReduceMean<axes = [-1]>(x) z = ReduceL2<axes = [-1]>(x) }",
        inputs=DRAWN,
        compute=lambda q, v, k: [mean(q, v["x"]), q(np.sqrt(q.total(q(v["x"] ** 2), 1)))],
    )
    yield Model(
        name="cumulative-sum",
        text=f"{X}(float[8, 32] y) <int64 a = {{1}}> {{ t = Tanh(x) y = CumSum(t, a) }}",
        inputs=DRAWN,
        compute=_cumulative,
        knobs={"exclusive sums": {"exclusive": True}},
    )


def _flattened(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    if "axis" in k:
        return [softmax(q, v["x"], k["axis"])]
    return [softmax(q, v["x"].reshape(2, 512)).reshape(2, 8, 64)]


def _cumulative(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    tanh = q(np.tanh(v["x"]))
    sums, found = np.zeros(8), []
    for index in range(32):
        if k.get("exclusive"):
            found.append(sums)
        sums = q(sums + tanh[:, index])
        if not k.get("exclusive"):
            found.append(sums)
    return [np.stack(found, 1)]


def _heads(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    left, right = product(q, v["x"], v["wq"]), product(q, v["x"], v["wk"])
    scores = q(product(q, left, right.T) * k.get("scale", 0.25))
    mask = np.roll(v["m"], 1, 1) if k.get("shifted") else v["m"] * (0.0 if k.get("unmasked") else 1.0)
    return [product(q, softmax(q, q(scores + mask)), v["x"])]


def _attention() -> Iterator[Model]:
    text = (
        f"{X}(float[8, 32] y) <float c = {{0.25}}> {{ a = MatMul(x, wq) b = MatMul(x, wk) t = Transpose(b) "
        "s = MatMul(a, t) d = Mul(s, c) e = Add(d, m) p = Softmax(e) y = MatMul(p, x) }"
    )
    weights = {"wq": normal(41, 32, 16, scale=0.2), "wk": normal(42, 32, 16, scale=0.2)}
    causal = np.triu(np.full((8, 8), -10000, np.float32), 1)
    wrong: dict[str, Knobs] = {
        "a missing scale": {"scale": 1.0},
        "mask dropped": {"unmasked": True},
        "mask shifted": {"shifted": True},
    }
    yield Model(
        name="attention",
        text=text,
        inputs=DRAWN,
        weights={**weights, "m": causal},
        compute=_heads,
        knobs=wrong,
    )
    full = causal.copy()
    full[2] = -10000  # one row that may look at nothing
    yield Model(
        name="attention-fully-masked",
        text=text,
        inputs=DRAWN,
        weights={**weights, "m": full},
        compute=_heads,
        knobs=wrong,
    )


def _gru(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    state = np.zeros((4, 6))
    found = []
    for step in range(5 - k.get("lost", 0)):
        gates = q(product(q, v["x"][step], v["w"][0].T) + v["b"][0, :18])
        if k.get("stale_state"):
            state = np.zeros((4, 6))
        inner = product(q, state, v["r"][0].T)
        update = q(sigmoid(q(gates[:, :6] + inner[:, :6])))
        reset = q(sigmoid(q(gates[:, 6:12] + inner[:, 6:12])))
        hidden = q(np.tanh(q(gates[:, 12:] + q(reset * inner[:, 12:]))))
        state = q(q((1 - update) * hidden) + q(update * state))
        found.append(state)
    found += [np.zeros((4, 6))] * k.get("lost", 0)
    return [np.stack(found)[:, None], state[None]]


def _recurrence() -> Iterator[Model]:
    yield Model(
        name="gru",
        text="(float[5, 4, 8] x) => (float[5, 1, 4, 6] y, float[1, 4, 6] h) { "
        "y, h = GRU<hidden_size = 6, linear_before_reset = 1>(x, w, r, b) }",
        inputs={"x": normal(43, 5, 4, 8)},
        weights={
            "w": normal(44, 1, 18, 8, scale=0.3),
            "r": normal(45, 1, 18, 6, scale=0.3),
            "b": np.concatenate([normal(46, 1, 18, scale=0.3), np.zeros((1, 18), np.float32)], 1),
        },
        compute=_gru,
        knobs={"the last step lost": {"lost": 1}, "a state that starts anew": {"stale_state": True}},
    )
    yield Model(
        name="rnn",
        text="(float[5, 4, 8] x) => (float[5, 1, 4, 6] y) { y = RNN<hidden_size = 6>(x, w, r) }",
        inputs={"x": normal(47, 5, 4, 8)},
        weights={"w": normal(48, 1, 6, 8, scale=0.4), "r": normal(49, 1, 6, 6, scale=0.4)},
        compute=_rnn,
        knobs={"another activation": {"f": lambda x: np.maximum(x, 0)}},
    )


def _rnn(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    state, found = np.zeros((4, 6)), []
    for step in range(5):
        sums = q(product(q, v["x"][step], v["w"][0].T) + product(q, state, v["r"][0].T))
        state = q(k.get("f", np.tanh)(sums))
        found.append(state)
    return [np.stack(found)[:, None]]

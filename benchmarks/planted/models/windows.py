"""Models of windows over pictures: convolution, pools, interpolation."""

from collections.abc import Iterator

import numpy as np

from benchmarks.planted.arithmetic import Arithmetic, Array, mean, product
from benchmarks.planted.models.drawn import normal, picture
from benchmarks.planted.models.model import BIAS, Knobs, Model, Values

PICTURE = picture()


def _patches(value: Array, size: int, padding: int, fill: float = 0.0) -> Array:
    """Return the window of each pixel: N, C, H, W, size, size."""
    wide = np.pad(value, ((0, 0), (0, 0), (padding, padding), (padding, padding)), constant_values=fill)
    return np.lib.stride_tricks.sliding_window_view(wide, (size, size), axis=(2, 3))


def _conv(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    given = np.roll(v["x"], k.get("shift", 0), 3)
    windows = _patches(given, 3, 1, k.get("fill", 0.0)).transpose(0, 2, 3, 1, 4, 5).reshape(144, 36)
    weight = v["w"][:, :, ::-1, ::-1] if k.get("flipped") else v["w"]
    found = product(q, windows, weight.reshape(6, 36).T) + k.get("bias", 1.0) * v["b"]
    return [np.maximum(q(found), 0).T.reshape(1, 6, 12, 12)]


def windows() -> Iterator[Model]:
    """Yield the models."""
    head = "(float[1, 4, 12, 12] x) => "
    yield Model(
        name="conv",
        text=f"{head}(float[1, 6, 12, 12] y) {{ c = Conv<pads = [1, 1, 1, 1]>(x, w, b) y = Relu(c) }}",
        inputs=PICTURE,
        weights={"w": normal(39, 6, 4, 3, 3, scale=0.3), "b": normal(40, 6)},
        compute=_conv,
        knobs={
            **BIAS,
            "wrong padding": {"fill": 1.0},
            "a flipped kernel": {"flipped": True},
            "shifted columns": {"shift": 1},
        },
    )
    yield Model(
        name="average-pool",
        text=f"{head}(float[1, 4, 12, 12] y) {{ "
        "y = AveragePool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(x) }",
        inputs=PICTURE,
        compute=_pool,
        knobs={"padding is counted": {"counted": True}},
    )
    yield Model(
        name="global-pool",
        text=f"{head}(float[1, 4, 1, 1] y) {{ y = GlobalAveragePool(x) }}",
        inputs=PICTURE,
        compute=lambda q, v, k: [mean(q, v["x"].reshape(1, 4, 144))[..., None]],
    )
    yield Model(
        name="max-pool",
        text=f"{head}(float[1, 4, 12, 12] y) {{ "
        "e = Exp(x) y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(e) }",
        inputs=PICTURE,
        compute=lambda q, v, k: [_patches(q(np.exp(v["x"])), 3, 1, k.get("fill", -np.inf)).max((4, 5))],
        knobs={"wrong padding": {"fill": 1.0}},
    )
    yield Model(
        name="resize",
        text=f"{head}(float[1, 4, 24, 24] y) <float[4] s = {{1.0, 1.0, 2.0, 2.0}}> {{ "
        't = Tanh(x) y = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel">(t, , s) }',
        inputs=PICTURE,
        compute=_resize,
        knobs={"corners aligned": {"corners": True}, "nearest in place of linear": {"nearest": True}},
    )


def _pool(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    windows = _patches(v["x"], 3, 1).reshape(1, 4, 12, 12, 9)
    count = _patches(np.ones_like(v["x"]), 3, 1).sum((4, 5))[..., None]
    return [q(q.total(windows, 4) / (9 if k.get("counted") else count))[..., 0]]


def _resize(q: Arithmetic, v: Values, k: Knobs) -> list[Array]:
    at = np.arange(24) * 11 / 23 if k.get("corners") else (np.arange(24) + 0.5) / 2 - 0.5
    at = np.round(at) if k.get("nearest") else at
    at = np.clip(at, 0, 11)
    low = np.minimum(np.floor(at).astype(int), 10)
    share = at - low
    tanh = q(np.tanh(v["x"]))
    rows = q(tanh[:, :, low] * (1 - share)[:, None] + tanh[:, :, low + 1] * share[:, None])
    return [q(rows[..., low] * (1 - share) + rows[..., low + 1] * share)]

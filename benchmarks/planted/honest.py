"""Honest answers: other orders of sums, other roundings, and what a provider's documents allow."""

from collections.abc import Callable, Iterator

import ml_dtypes
import msgspec
import numpy as np

from benchmarks.planted.arithmetic import Array, Drawn, Rounded, tf32
from benchmarks.planted.faults.implementations import OPEN
from benchmarks.planted.subject import Subject, cast, is_float, own_type

WGSL_SINE = 2.0**-11
"""Absolute error that WGSL (14.6.1) allows the sine within [-pi, pi]."""


class Honest(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of honest answer; fields as of ``Fault``.

    ``bits`` is the significand's bits of a precision that the provider delivers, of which half must be left;
    0 where it delivers the model's own.
    """

    name: str
    make: Callable[[Subject], list[Array] | None]
    target: str = "plain"
    bits: float = 0.0


def honest() -> Iterator[Honest]:
    """Yield the kinds."""
    yield Honest(name="bit for bit", make=lambda subject: list(subject.honest))
    yield Honest(
        name="every node rounded once", make=lambda subject: _by(subject, Rounded(own_type(subject.model)))
    )
    yield Honest(name="sums in one row", make=lambda subject: _by(subject, _in_row(subject)))
    for seed in (101, 102):
        yield Honest(name=f"sums in random order {seed}", make=_shuffled(seed))
    yield Honest(name="float64, rounded at the end", make=lambda subject: _by(subject, Rounded()))
    yield Honest(name="the last unit changed at random", make=_noisy)
    yield Honest(name="subnormal numbers flushed", make=_flushed)
    yield Honest(name="another of equals, where rounding decides", make=_tie)
    yield Honest(name="bfloat16, delivered", make=_nodes("bfloat16"), target="bfloat16", bits=4)
    # Whether enough is left of these nobody can say in bits: a loss is as right as a pass.
    coarse = _nodes("bfloat16", floats=False)
    yield Honest(name="bfloat16, delivered, before whole numbers", make=coarse, target="bfloat16", bits=4)
    yield Honest(name="float16, delivered", make=_nodes("float16"), target="float16", bits=5.5)
    yield Honest(name="products in TF32, delivered", make=_weights_in_tf32, target="tf32", bits=5.5)
    yield Honest(name="a sine within WGSL's allowance", make=_sine, target="wgsl")


def bits_left(subject: Subject, found: list[Array]) -> float:
    """Return how many bits of an answer agree with the truth, those of its worst output."""
    worst = np.inf
    for value, truth in zip(found, subject.scale.truth, strict=True):
        if not is_float(value) or value.shape != truth.shape:
            continue
        given, right = np.asarray(value, np.float64), np.asarray(truth, np.float64)
        near = np.asarray(cast(truth, value), np.float64)
        if not np.array_equal(np.isfinite(given), np.isfinite(near)):
            return -np.inf  # the precision does not reach as far as the answer
        finite = np.isfinite(given) & np.isfinite(right)
        size = np.sqrt(np.mean(right[finite] ** 2)) if finite.any() else 0.0
        tiny = float(ml_dtypes.finfo(value.dtype).tiny)  # type: ignore[no-untyped-call]  # subnormals may be flushed
        off = np.maximum(np.abs(given[finite] - right[finite]) - tiny, 0)
        error = np.sqrt(np.mean(off**2)) if finite.any() else 0.0
        if error and size:
            worst = min(worst, -float(np.log2(error / size)))
    return float(worst)


def _by(subject: Subject, q: Rounded | Drawn) -> list[Array] | None:
    found = subject.model.run(q)
    if any(one.shape != like.shape for one, like in zip(found, subject.honest, strict=True)):
        return None
    return subject.computed(found)


def _in_row(subject: Subject) -> Drawn:
    return Drawn(0, own_type(subject.model), jitter=False, order=False)


def _shuffled(seed: int) -> Callable[[Subject], list[Array] | None]:
    return lambda subject: _by(subject, Drawn(seed, own_type(subject.model), jitter=False))


def _noisy(subject: Subject) -> list[Array] | None:
    rng = np.random.default_rng(7)
    floats = [value for value in subject.honest if value.dtype in (np.float32, np.float64, np.float16)]
    if not floats or subject.model.name.startswith("round-of"):
        return None

    def moved(value: Array) -> Array:
        if value.dtype not in (np.float32, np.float64, np.float16):
            return value
        up = np.nextafter(value, value.dtype.type(np.inf))
        down = np.nextafter(value, value.dtype.type(-np.inf))
        pick = np.where(rng.random(value.shape) < 0.5, up, down)
        moves = (rng.random(value.shape) < 0.5) & np.isfinite(pick) & np.isfinite(value)
        return np.where(moves, pick, value)

    return [moved(value) for value in subject.honest]


def _flushed(subject: Subject) -> list[Array] | None:
    def flush(value: Array) -> Array:
        if not is_float(value):
            return value
        least = value.dtype.type(ml_dtypes.finfo(value.dtype).tiny)  # type: ignore[no-untyped-call]
        return np.where(np.abs(value) < least, np.zeros_like(value), value)

    found = [flush(value) for value in subject.honest]
    moved = any(
        not np.array_equal(one, like, equal_nan=is_float(one))
        for one, like in zip(found, subject.honest, strict=True)
    )
    return found if moved else None


def _tie(subject: Subject) -> list[Array] | None:
    name, knob = OPEN
    if subject.model.name != name:
        return None
    scores = np.asarray(subject.honest[0])
    return [np.where(scores == 0, 1, scores)] if knob else None


def _nodes(kind: str, *, floats: bool = True) -> Callable[[Subject], list[Array] | None]:
    def make(subject: Subject) -> list[Array] | None:
        if own_type(subject.model) != "float32" or not all(is_float(one) is floats for one in subject.honest):
            return None
        if any(value.dtype.kind in "iu" for value in subject.model.inputs.values()):
            return None
        return _by(subject, Rounded(kind))

    return make


def _weights_in_tf32(subject: Subject) -> list[Array] | None:
    model = subject.model
    if "w" not in model.weights or not all(is_float(value) for value in subject.honest):
        return None
    if own_type(model) != "float32" or model.weights["w"].ndim < 2:
        return None
    q = Drawn(0, jitter=False)
    inputs = {name: tf32(value) if name == "x" else value for name, value in model.inputs.items()}
    return subject.computed(model.run(q, inputs, weight=("w", tf32)))


def _sine(subject: Subject) -> list[Array] | None:
    if subject.model.name != "waves":
        return None
    rng = np.random.default_rng(9)
    wave = np.asarray(subject.honest[0])
    return [(wave + rng.uniform(-WGSL_SINE, WGSL_SINE, wave.shape) / 2).astype(np.float32)]

"""Faults of an implementation: models computed by hand, with something done otherwise."""

from collections.abc import Callable, Iterator

import ml_dtypes
import numpy as np

from benchmarks.planted.arithmetic import Array, Drawn, Rounded, tf32
from benchmarks.planted.faults.fault import Fault
from benchmarks.planted.models import models
from benchmarks.planted.subject import Subject, is_float, own_type

OPEN = ("argmax-near-ties", "the last of equals")
"""Model and knob that ONNX leaves open, as the equals are computed: see ``benchmarks.planted.honest``."""


def implementations() -> Iterator[Fault]:
    """Yield the faults."""
    for name in dict.fromkeys(name for model in models() for name in model.knobs):
        yield Fault(name=name, make=_knob(name))
    for name, change in WEIGHTS.items():
        yield Fault(name=name, make=_weight(change))
    for kind in ("bfloat16", "float16"):
        yield Fault(name=f"every node in {kind}, not delivered", make=_nodes(kind))
        yield Fault(name=f"one weight in {kind}, not delivered", make=_weight(_as(kind)))
    yield Fault(
        name="one weight zero, where bfloat16 is delivered", make=_weight(np.zeros_like), target="bfloat16"
    )
    yield Fault(
        name="one weight off by 10 %, where bfloat16 is delivered",
        make=_weight(lambda one: one * 1.1),
        target="bfloat16",
    )


def _knob(name: str) -> Callable[[Subject], list[Array] | None]:
    def make(subject: Subject) -> list[Array] | None:
        model = subject.model
        if name not in model.knobs or (model.name, name) == OPEN:
            return None
        q = Drawn(0, own_type(model), jitter=False)
        return subject.computed(model.run(q, None, **model.knobs[name]))

    return make


def _weight(change: Callable[[Array], Array]) -> Callable[[Subject], list[Array] | None]:
    """Return what changes the first floating weight of two dimensions or more."""

    def make(subject: Subject) -> list[Array] | None:
        model = subject.model
        fits = [name for name, value in model.weights.items() if is_float(value) and value.ndim > 1]
        if not fits:
            return None
        q = Drawn(0, own_type(model), jitter=False)
        return subject.computed(model.run(q, None, weight=(fits[0], change)))

    return make


def _nodes(kind: str) -> Callable[[Subject], list[Array] | None]:
    def make(subject: Subject) -> list[Array] | None:
        if own_type(subject.model) != "float32" or not any(map(is_float, subject.honest)):
            return None
        found = subject.model.run(Rounded(kind))
        fit = all(one.shape == like.shape for one, like in zip(found, subject.honest, strict=True))
        return subject.computed(found) if fit else None

    return make


def _as(kind: str) -> Callable[[Array], Array]:
    dtype = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}[kind]
    return lambda value: value.astype(dtype).astype(np.float64)


def _last_row(value: Array) -> Array:
    found = value.copy()
    found.reshape(-1, value.shape[-1])[-1] = 0
    return found


WEIGHTS: dict[str, Callable[[Array], Array]] = {
    "one weight in TF32, not delivered": tf32,
    "one weight without its last row": _last_row,
    "one weight off by 1e-3": lambda value: value * 1.001,
    "one weight of the layer before": lambda value: np.roll(value.reshape(-1), 1).reshape(value.shape),
}

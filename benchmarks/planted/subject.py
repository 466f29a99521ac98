"""A model on the bench: its honest answer, the truth, and how far rounding moves it."""

from collections.abc import Iterator, Mapping
from functools import cache, cached_property

import ml_dtypes
import msgspec
import numpy as np

from benchmarks.planted.arithmetic import DTYPES, Array, Drawn, Rounded
from benchmarks.planted.court import Court
from benchmarks.planted.models.model import Model
from harness.core.values.value import NamedValues, Sequence, Tensor, Value, tensor
from harness.engine.tasks.outcome import Ran

DRAWS = 10
VISIBLE_EACH = 64.0
"""An element this many times its rounding noise off is visible; the judge's own limit is 32 of its noise."""
VISIBLE_RMS = 16.0
"""Root mean square of an output's errors over their noise from which on a fault is visible."""
BENEATH_EACH, BENEATH_RMS = 16.0, 3.0
"""Below both a fault is beneath the rounding noise."""
LOST = 0.5
"""Rounding that moves an output by more than this part of its size decides it alone: nothing is visible."""

VISIBLE, BETWEEN, BENEATH = "visible", "between", "beneath"


class Scale:
    """The truth of one run, and the rounding noise about it; nothing of it comes from the harness."""

    def __init__(
        self,
        model: Model,
        inputs: Mapping[str, Array],
        honest: list[Array],
        own: str | None = None,
        unit: str | None = None,
    ) -> None:
        self.honest = honest
        self.inputs = inputs
        self.unit = unit and DTYPES[unit]
        own = own or own_type(model)
        self.truth = model.run(Rounded(), inputs)
        draws = [model.run(Drawn(seed, own), inputs) for seed in range(DRAWS)]
        draws.append(model.run(Rounded(own), inputs))
        draws.append(model.run(Drawn(0, own, jitter=False, order=False), inputs))
        self.draws = [
            [cast(value, like) for value, like in zip(draw, honest, strict=True) if value.shape == like.shape]
            for draw in draws
        ]
        self.draws = [draw for draw in self.draws if len(draw) == len(honest)]

    def effect(self, found: list[Array]) -> tuple[str, float]:
        """Return whether an answer is visibly wrong, and by how many times the noise at most."""
        sizes = [self._size(index, value) for index, value in enumerate(found)]
        each, rms = (max(size[part] for size in sizes) for part in (0, 1))
        if each > VISIBLE_EACH or rms > VISIBLE_RMS:
            return VISIBLE, each
        return (BENEATH if each <= BENEATH_EACH and rms <= BENEATH_RMS else BETWEEN), each

    def _size(self, index: int, found: Array) -> tuple[float, float]:
        """Return the largest error of an output and its rms, in units of the noise."""
        honest, truth = self.honest[index], self.truth[index]
        if found.shape != honest.shape or found.dtype != honest.dtype:
            return np.inf, np.inf
        draws = [draw[index] for draw in self.draws]
        if not is_float(honest):
            known = [honest, cast(truth, honest), *draws]
            wrong = ~np.any([found == one for one in known], axis=0)
            return (np.inf, np.inf) if wrong.any() else (0.0, 0.0)
        given, right, near = (np.asarray(one, np.float64) for one in (found, truth, honest))
        known = [cast(truth, honest), honest, *draws]
        special = ~np.isfinite(given)
        odd = special | ~np.isfinite(near)
        open_here = np.any([_same(found, one) for one in known], axis=0)
        if (odd & ~open_here).any():
            return np.inf, np.inf
        noise, decides = self._noise(index)
        if decides:
            return 0.0, 0.0
        with np.errstate(all="ignore"):
            off = np.minimum(np.abs(given - right), np.abs(given - near)) / noise
        off = off[~odd & np.isfinite(right)]
        return (float(off.max(initial=0)), float(np.sqrt(np.mean(off**2))) if off.size else 0.0)

    def _noise(self, index: int) -> tuple[Array, bool]:
        """Return the noise of each element, and whether rounding alone decides the output."""
        honest, truth = self.honest[index], np.asarray(self.truth[index], np.float64)
        limits = ml_dtypes.finfo(self.unit or honest.dtype)  # type: ignore[no-untyped-call]
        with np.errstate(all="ignore"):
            errors = np.array([np.asarray(draw[index], np.float64) - truth for draw in self.draws])
            spread = np.sqrt(np.mean(np.where(np.isfinite(errors), errors, 0) ** 2, axis=0))
            known = np.isfinite(truth) & (truth != 0)
            share = np.median(spread[known] / np.abs(truth[known])) if known.any() else 0.0
            usual = 0.5 * share * np.abs(truth)
            unit = np.abs(truth) * float(limits.eps) / 2
            decides = np.mean(spread**2) > LOST**2 * np.mean(np.where(np.isfinite(truth), truth, 0) ** 2)
        return np.maximum.reduce([spread, usual, unit, np.full_like(truth, float(limits.tiny))]), bool(
            decides
        )


def _same(one: Array, other: Array) -> Array:
    left, right = (np.asarray(value, np.float64) for value in (one, other))
    return np.asarray((left == right) | (np.isnan(left) & np.isnan(right)))


class Subject:
    """One model, and what an honest provider answers."""

    def __init__(self, model: Model, court: Court) -> None:
        self.model = model
        self.ran = court.honest(model.name)
        self.honest = flat(self.ran.outputs[0])
        self.scale = Scale(model, model.inputs, self.honest)
        self._case = court.other_inputs(model.name)

    @cached_property
    def other(self) -> Scale | None:
        """The scale of the run with other inputs; None without such a run."""
        if self.ran.other is None or self._case is None:
            return None
        given = dict(self._case.data_sets[0].inputs)
        inputs = {name: value.array for name, value in given.items() if isinstance(value, Tensor)}
        return Scale(self.model, inputs, flat(self.ran.other))

    @cached_property
    def coarse(self) -> Scale:
        """The scale of a provider that computes in bfloat16."""
        return self.scale_at("bfloat16")

    @cache  # noqa: B019 - a subject lives as long as its model is measured
    def scale_at(self, precision: str, *, others: bool = False) -> Scale:
        """Return the scale of a provider that computes in a precision, for the model's inputs or others."""
        given = self.other if others and self.other is not None else self.scale
        return Scale(self.model, given.inputs, given.honest, precision)

    def answer(self, outputs: list[Array]) -> Ran:
        """Return the answer of a provider with these outputs."""
        return msgspec.structs.replace(self.ran, outputs=(rebuilt(self.ran.outputs[0], outputs),))

    def computed(self, values: list[Array]) -> list[Array]:
        """Return what was computed by hand, in the types of the outputs."""
        return [cast(value, like) for value, like in zip(values, self.honest, strict=True)]


def own_type(model: Model) -> str:
    """Return the type that a model computes in."""
    types = {str(value.dtype) for value in model.inputs.values()}
    return next((name for name in ("float64", "float16") if name in types), "float32")


def is_float(value: Array) -> bool:
    """Return whether an array has floating elements, bfloat16 included."""
    return value.dtype.kind == "f" or value.dtype == ml_dtypes.bfloat16


def cast(value: Array, like: Array) -> Array:
    """Return a value in the type of another one."""
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(np.asarray(value).astype(like.dtype))


def flat(named: NamedValues) -> list[Array]:
    """Return the arrays of outputs, those of sequences included."""
    return [array for _, value in named for array in _arrays(value)]


def _arrays(value: Value) -> list[Array]:
    if isinstance(value, Sequence):
        return [array for item in value.items for array in _arrays(item)]
    return [value.array] if isinstance(value, Tensor) else []


def rebuilt(named: NamedValues, arrays: list[Array]) -> NamedValues:
    """Return outputs of the same form with other arrays."""
    left: Iterator[Array] = iter(arrays)
    return tuple((name, _filled(value, left)) for name, value in named)


def _filled(value: Value, left: Iterator[Array]) -> Value:
    if isinstance(value, Sequence):
        return Sequence(items=tuple(_filled(item, left) for item in value.items))
    return tensor(np.ascontiguousarray(next(left))) if isinstance(value, Tensor) else value

"""The rounding noise of a model, drawn from runs with noise.

A *spread* has, for each element of an output, the root mean square of the error that rounding at some
precision causes in this very model. Any correct computation at that precision shows an error that is a small
multiple of the spread; a fault shows a far larger one. ``harness.core.noise.noise`` compares the two.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from harness.core.comparison.alike import usual
from harness.core.comparison.metrics import widen_tensor
from harness.core.comparison.noise_limits import DEFAULT_LIMITS, rms_limit
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.noise.noise import noise_of
from harness.core.noise.noise_moves import Moves, moved_of
from harness.core.noise.rounding_loss import lost_of
from harness.core.values.value import Array, Floats, NamedValues, Tensor, leaves_of

NoiseSamples = list[tuple[float, Tensor]]
"""Amplitude and result of each draw. They are widen_tensor one at a time, because outputs may be large."""

_SHOWN = 1 / 4
"""Share of the draws that must move an element before they show its noise.

Independent noises of one size sometimes cancel. An element that Relu or Clip cuts off moves only if a draw
crosses the edge. An element that moves more often needs no other one: its errors over its spread follow
Student's t, and the limit for single elements covers its tail.
"""

_MISSED = 1 / 8
"""Least spread of an element that few draws move, as a fraction of the usual one for its magnitude.

The default limit for single elements then passes four times the usual noise.
"""

_AT_AN_EDGE = 1 / 16
"""Share of the elements that may differ without noise by more than the draws move them."""

_LOW = 1 / 4
"""The quantile that counts as usual among the spreads of similar elements: of two kinds of elements the
calmer one."""

_RESOLUTION = 1 / 8
"""Least spread of an element in unit roundoffs of its type.

Where every operator is exact, only this spread remains. The default limits then pass an element that is off
by two units in the last place, and fail one that is off by four.
"""

_UNITS = {**UNIT_ROUNDOFF, "float64": 2 * UNIT_ROUNDOFF["float32"]}
"""Element type -> unit that its least spread is a part of.

float64 uses float32's unit, because accelerators without double units compute it in float32. These round even
copied elements to float32, by 0.4 unit roundoffs in root mean square, which must pass, too.
"""

_SMALLEST = {"float64": 2.0**-126, "float32": 2.0**-126, "float16": 2.0**-28, "bfloat16": 2.0**-126}
"""Element type with a spread -> least spread of any element.

Smaller numbers are subnormal, and processors may flush them to zero, also on the way to larger ones.
Accelerators without double units compute float64 in single precision. In float16 useful numbers may be
subnormal: there it is the resolution of subnormals, and ``harness.core.comparison.subnormals`` excuses only
zeros.
"""

_JUMP = 8.0
"""An element that moves by more than this multiple of the expected spread has jumped, and may jump again.

A smaller jump needs no such rule. If one of 16 draws at amplitude 8 jumps, the element gets a spread of a
32nd of the jump, which the limit for single elements passes.
"""

_UNLIKE = 8.0
"""A multiple of the median spread of similar elements that counts as a jump, not as noise, in a model with
jumps."""

_AGAIN = 1 / 4
"""Spread of an element that has jumped, as a fraction of its largest jump.

Of the elements that jump in any draw, amplified ones included, about one in 15 jumps in another result. A
quarter for each keeps the root mean square over all near 1.
"""

PROBES = 6
"""Draws at amplitude 1 beside amplified ones, without jumps in the model: they show where it bends."""

_LINEAR = 1 / 4
"""Fraction of an output's size up to which it moves in proportion to noise.

Beyond it the response bends: the sine of a large angle moves by at most 1, whatever the noise, and a 16th of
that is no measure of noise at amplitude 1.
"""

_ENOUGH = 1 / 2
"""Share of an output's finite elements that must stay finite under noise, over all draws."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of a model's outputs.

    Attributes:
        precision: The precision whose rounding makes the noise.
        outputs: For each data set: leaf, named as ``harness.core.values.value.leaves`` names it -> spread, an
            array of float64 of the leaf's shape, in the unit of the output. A leaf without a spread is no
            float, changes its shape under noise, is lost in it, or differs from the golden as a whole even
            without noise.
        lost: For each data set: leaf -> the fraction that noise at amplitude 1 destroys, for leaves of any
            type that lose more than half; see ``harness.core.noise.rounding_loss``. Empty in spreads that
            were computed without it.
        moved: For each data set: leaf of integers or booleans -> how noise moves its elements; see
            ``harness.core.noise.noise_moves``. Empty likewise.
    """

    precision: str
    outputs: tuple[Mapping[str, Floats], ...]
    lost: tuple[Mapping[str, float], ...] = ()
    moved: tuple[Moves, ...] = ()

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the arrays take."""
        spreads = sum(array.nbytes for leaves in self.outputs for array in leaves.values())
        return spreads + sum(move.reach.nbytes for leaves in self.moved for move in leaves.values())


def spread_of(
    golden: Sequence[NamedValues],
    samples: Sequence[NamedValues],
    amplitudes: Sequence[float],
    precision: str,
) -> Spread:
    """Return the spread from runs of a model with the noise of a precision.

    The golden has, for each data set, the outputs of the model itself. The samples are the outputs under
    noise, equally many for each data set, including one with amplitude 0; ``amplitudes`` are their factors.
    """
    each = len(samples) // len(golden)
    slices = [slice(index * each, (index + 1) * each) for index in range(len(golden))]
    return Spread(
        precision=precision,
        outputs=tuple(
            _of_data_set(outputs, samples[part], amplitudes[part])
            for outputs, part in zip(golden, slices, strict=True)
        ),
        lost=tuple(
            lost_of(outputs, samples[part], amplitudes[part])
            for outputs, part in zip(golden, slices, strict=True)
        ),
        moved=tuple(moved_of(outputs, samples[part]) for outputs, part in zip(golden, slices, strict=True)),
    )


def _of_data_set(
    golden: NamedValues, samples: Sequence[NamedValues], amplitudes: Sequence[float]
) -> dict[str, Floats]:
    found = {}
    drawn = [dict(_leaves(sample)) for sample in samples]
    quiet = next(values for values, amplitude in zip(drawn, amplitudes, strict=True) if not amplitude)
    for name, right in _leaves(golden):
        if right.dtype not in _SMALLEST:
            continue
        values = [(amplitude, one.get(name)) for amplitude, one in zip(amplitudes, drawn, strict=True)]
        alike = [
            (amplitude, one)
            for amplitude, one in values
            if one is not None and (one.dtype, one.array.shape) == (right.dtype, right.array.shape)
        ]
        if not _keeps_shape(amplitudes, [amplitude for amplitude, _ in alike]):
            continue
        silent = widen_tensor(quiet[name])
        noisy = _measurable(silent, [(amplitude, one) for amplitude, one in alike if amplitude])
        if noisy is not None:
            spread = _confirmed(right, quiet[name], _of_leaf(right, silent, noisy))
            if spread is not None:
                found[name] = spread
    return found


def _keeps_shape(drawn: Sequence[float], alike: Sequence[float]) -> bool:
    """Return whether noise keeps an output's shape.

    Takes the amplitudes of all draws and of those with that shape.

    It does so in all draws at amplitude 0 and at the least one, and in half of the draws at each other one.
    """
    total, kept = Counter(drawn), Counter(alike)
    plain = {0.0, min((amplitude for amplitude in drawn if amplitude), default=0.0)}
    return all(
        kept[amplitude] * (1 if amplitude in plain else 2) >= count for amplitude, count in total.items()
    )


def _measurable(quiet: Array, noisy: NoiseSamples) -> NoiseSamples | None:
    """Return the draws that show the noise of an output.

    Return None if noise destroys the output almost completely.

    Elements that are NaN or infinite without noise show nothing. If noise makes most of the others so, no
    draw shows anything.
    """
    finite = np.isfinite(quiet)
    kept = sum(np.count_nonzero(np.isfinite(widen_tensor(one)) & finite) for _, one in noisy)
    if kept < _ENOUGH * len(noisy) * np.count_nonzero(finite):
        return None
    probes = [one for one in noisy if one[0] == 1]
    if not probes or len(probes) > PROBES:
        return noisy
    amplified = [one for one in noisy if one[0] != 1]
    if amplified and _is_within(_LINEAR, quiet, amplified):
        return amplified
    return probes if _is_within(1.0, quiet, probes) else None


@np.errstate(all="ignore")
def _is_within(part: float, quiet: Array, noisy: NoiseSamples) -> bool:
    """Return whether no draw moves an output by more than a given fraction of its size."""
    size = _root_mean_square(np.abs(np.where(np.isfinite(quiet), quiet, 0.0)))
    moved = [_root_mean_square(_deviation(widen_tensor(one), quiet)) for _, one in noisy]
    return max(moved) <= part * size or not any(moved)


@np.errstate(all="ignore")
def _confirmed(golden: Tensor, quiet: Tensor, spread: Floats) -> Floats | None:
    """Return a spread if the model with noise, at amplitude 0, computes the same as the model itself.

    Both are right computations. So a few elements may differ by more than the draws show: they lie at the
    edge of a step of a quantization, and their difference is their noise.
    """
    rms, _ = noise_of(golden, quiet, spread)
    if rms > rms_limit(DEFAULT_LIMITS, golden.array.size):
        return None
    apart = _deviation(widen_tensor(golden), widen_tensor(quiet)).reshape(spread.shape)
    beyond = apart > DEFAULT_LIMITS.max * spread
    if np.count_nonzero(beyond) > _AT_AN_EDGE * spread.size:
        return None
    return np.where(beyond, apart, spread)


@np.errstate(all="ignore")
def _of_leaf(golden: Tensor, quiet: Array, noisy: NoiseSamples) -> Floats:
    right = widen_tensor(golden).reshape(-1)
    moved: dict[float, list[Floats]] = {}
    for amplitude, one in noisy:
        moved.setdefault(amplitude, []).append(_deviation(widen_tensor(one), quiet))
    size = np.abs(np.nan_to_num(right, posinf=0.0, neginf=0.0))
    least = np.maximum(_RESOLUTION * _UNITS[golden.dtype] * size, _SMALLEST[golden.dtype])
    if not moved or not right.size:  # every operator is exact
        return _shaped(least, golden)
    spread = _of_smooth(size, moved) if len(moved) == 1 else _of_jumping(size, moved)
    return _shaped(np.maximum(spread, least), golden)


def _of_smooth(size: Floats, moved: Mapping[float, list[Floats]]) -> Floats:
    """Return the spread from draws at one amplitude; whatever moves does so in proportion to the noise."""
    ((level, each),) = moved.items()
    spread = _level_spread(level, each)
    shown = sum(one != 0 for one in each) > _SHOWN * len(each)
    if shown.all() or not shown.any():
        return spread
    missed = _MISSED * usual(size, spread, shown, _LOW)
    return np.where(shown, spread, np.maximum(spread, missed))


def _of_jumping(size: Floats, moved: Mapping[float, list[Floats]]) -> Floats:
    """Return the spread from draws at several amplitudes: some elements jump, whatever the noise.

    The behaviour of most elements of a magnitude is usual here, including still ones. If many jump, their
    jumps excuse none of the others.
    """
    levels = {level: _level_spread(level, each) for level, each in moved.items()}
    spread: Floats = np.max([*levels.values()], axis=0)
    plain, everywhere = levels[min(levels)], np.ones(size.shape, np.bool_)
    middle = usual(size, plain, everywhere, 0.5)
    jumped = plain > _UNLIKE * middle
    foretold = np.maximum(plain, middle / 2)
    for level, each in moved.items():
        jumped |= functools.reduce(np.maximum, each) > _JUMP * level * foretold
    largest = functools.reduce(np.maximum, itertools.chain.from_iterable(moved.values()))
    calm = np.maximum(spread, _MISSED * usual(size, spread, ~jumped, _LOW))
    return np.where(jumped, np.maximum(spread, _AGAIN * largest), calm)


def _level_spread(level: float, each: list[Floats]) -> Floats:
    # One after the other: stacked, the draws of a large output would take their memory again, and their
    # squares once more.
    total: Floats = np.zeros_like(each[0])
    for one in each:
        total += np.square(one)
    return np.sqrt(total / len(each)) / level


def _shaped(numbers: Array, golden: Tensor) -> Floats:
    return numbers.astype(np.float64).reshape(golden.array.shape)


def _deviation(noisy: Array, quiet: Array) -> Floats:
    """Return how far noise moved each element, flat.

    0 where it produced NaN or infinity, which excuse no number.
    """
    moved: Floats = np.abs(noisy - quiet).reshape(-1)
    moved[~np.isfinite(moved)] = 0.0
    return np.minimum(moved, 2.0**500)


def _root_mean_square(numbers: Floats) -> float:
    scale = float(numbers.max(initial=0.0))
    return scale * float(np.sqrt(np.mean(np.square(numbers / scale)))) if scale else 0.0


def _leaves(values: NamedValues) -> list[tuple[str, Tensor]]:
    return [(leaf, part) for leaf, part in leaves_of(values) if part is not None]

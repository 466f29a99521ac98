"""The rounding noise of a model, and an error as a multiple of it.

A *spread* has, for each element of an output, the root mean square of what rounding at some precision does to
it in this very model. An error that is a small multiple of the spread is what any correct computation at that
precision shows; a fault lies far above.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.metrics import BLOCK, widen
from harness.core.tolerance import UNIT_ROUNDOFF
from harness.core.value import Array, Tensor, Value, leaves

Floats = NDArray[np.float64]
NamedValues = tuple[tuple[str, Value], ...]
Draws = list[tuple[float, Array]]
"""Amplitude and result of each."""


class NoiseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Up to what multiple of the noise a result passes.

    Attributes:
        rms: Of the root mean square of the error over that of the spread.
        max: Of the largest error of an element over the spread of that element.
    """

    rms: float = 3.0
    max: float = 32.0


DEFAULT_LIMITS = NoiseLimits()


def rms_limit(limits: NoiseLimits, elements: int) -> float:
    """What ``limits.rms`` comes to for an output of so many elements.

    A root mean square over few elements is uncertain, that of the error as well as that of the spread: the
    limit for n elements is ``1 + 1 / sqrt(n)`` times the one for many.
    """
    return limits.rms * (1 + 1 / math.sqrt(max(1, elements)))


FLOOR = 0.5
"""Least spread of an element as a part of the root mean square over its tensor.

Few samples leave some elements with next to none, and an error passes from element to element.
"""

RESOLUTION = 1 / 8
"""Least spread of an element in unit roundoffs of its type.

Where every operator is exact, this is all that there is: the default limits pass an element that is off by
two units in the last place, and none that is off by four.
"""

SMALLEST = {"float64": 2.0**-126, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
"""Element type that has a spread -> least spread of any element.

Smaller numbers are subnormal, and processors may flush them to zero. Accelerators without double units
compute float64 in single precision.
"""

JUMP = 8.0
"""An element that moves so many times more than its spread foretells has jumped, and may jump again.

One that jumps by less needs no such rule: 16 draws at amplitude 8, of which one jumps, give it a spread of a
32nd of the jump, which the limit for single elements passes.
"""

UNLIKE = 8.0
"""So many times the median spread is no noise of a model with jumps, but a jump.

An element that has jumped may differ by as much as it did; the floor of the others comes from them alone.
"""

PROBES = 2
"""Draws at amplitude 1 beside amplified ones in a model without jumps: those that count where they bend."""

LINEAR = 1 / 4
"""Part of an output's size up to which it moves in proportion to noise.

Beyond, the response bends: the sine of a large angle moves by 1 at most, whatever the noise, and a 16th of
that is no measure of noise at amplitude 1.
"""

ENOUGH = 1 / 2
"""Part of an output's finite elements that noise has to leave finite, over all draws."""

_LARGEST = float(np.finfo(np.float64).max)

PRECISIONS = {name: UNIT_ROUNDOFF[name] for name in ("float32", "float16", "bfloat16")}
"""Precision whose noise can be drawn, and that an error may behave like -> unit roundoff.

TF32 rounds like float16, and int8 like bfloat16.
"""

BEYOND = 16.0
"""An error so many times the noise of the coarsest precision is like none of them."""


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of a model's outputs.

    Attributes:
        precision: Whose rounding makes it.
        outputs: For each data set: leaf, named as ``harness.core.value.leaves`` names it -> spread, an array
            of float64 of the leaf's shape, in the unit of the output. Leaves without one are not floats,
            change their shape under noise, are lost in it, or come out otherwise without it.
    """

    precision: str
    outputs: tuple[Mapping[str, Floats], ...]

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the arrays take."""
        return sum(array.nbytes for leaves in self.outputs for array in leaves.values())


def spread_of(
    golden: Sequence[NamedValues],
    samples: Sequence[NamedValues],
    amplitudes: Sequence[float],
    precision: str,
) -> Spread:
    """The spread from runs of a model with noise.

    Args:
        golden: For each data set the outputs of the model itself.
        samples: The same with noise: as many for each data set, the one with amplitude 0 among them.
        amplitudes: By what the noise of each sample was multiplied.
        precision: Whose rounding the noise is.
    """
    each = len(samples) // len(golden)
    return Spread(
        precision=precision,
        outputs=tuple(
            _of_data_set(
                outputs,
                samples[index * each : (index + 1) * each],
                amplitudes[index * each : (index + 1) * each],
            )
            for index, outputs in enumerate(golden)
        ),
    )


def noise_of(golden: Tensor, actual: Tensor, spread: Floats) -> tuple[float, float]:
    """An error as a multiple of the noise.

    Only elements that are finite on both sides count; the result is (0, 0) where there are none.

    Args:
        golden: The right answer, of floats.
        actual: What an EP computed, of the same shape.
        spread: Of the same shape, positive.

    Returns:
        Root mean square of the error over that of the spread, and the largest error over spread.
    """
    error_sq = spread_sq = worst = 0.0
    scale = float(spread.max(initial=0.0))  # keeps the squares of the spread within float64
    with np.errstate(all="ignore"):
        for _, error, noise in _errors(golden, actual, spread):
            error_sq += float(np.sum(np.square(error / scale)))
            spread_sq += float(np.sum(np.square(noise / scale)))
            worst = max(worst, float((error / noise).max()))
    return min(math.sqrt(error_sq / spread_sq) if spread_sq else 0.0, _LARGEST), min(worst, _LARGEST)


def beyond(golden: Tensor, actual: Tensor, spread: Floats, limit: float) -> tuple[int, int]:
    """Elements whose error is more than so many times their spread.

    Returns:
        How many there are, and the place of the worst of all elements in the flattened tensor.
    """
    count, worst, at = 0, -1.0, 0
    for places, error, noise in _errors(golden, actual, spread):
        with np.errstate(all="ignore"):
            ratio = error / noise
        count += int(np.count_nonzero(ratio > limit))
        largest = int(ratio.argmax())
        if ratio[largest] > worst:
            worst, at = float(ratio[largest]), int(places[largest])
    return count, at


def behaves_like(rms: float, precision: str) -> str:
    """The precision whose noise is nearest, on a logarithmic scale.

    Noise grows in proportion to the unit roundoff as long as a model's response is linear.

    Args:
        rms: Root mean square of the error over that of the spread.
        precision: Whose spread.

    Returns:
        A key of ``PRECISIONS``; ``exact`` where there is no error, ``none`` where it is far beyond the noise
        of the coarsest.
    """
    if rms == 0.0:
        return "exact"
    if rms * PRECISIONS[precision] > BEYOND * max(PRECISIONS.values()):
        return "none"
    error = math.log2(rms) + math.log2(PRECISIONS[precision])
    return min(PRECISIONS, key=lambda name: abs(error - math.log2(PRECISIONS[name])))


def _errors(
    golden: Tensor, actual: Tensor, spread: Floats
) -> Iterator[tuple[NDArray[np.intp], Floats, Floats]]:
    """Places, errors and spreads of the elements that are finite on both sides, block by block."""
    left, right, noise = golden.array.reshape(-1), actual.array.reshape(-1), spread.reshape(-1)
    for start in range(0, left.size, BLOCK):
        block = slice(start, start + BLOCK)
        with np.errstate(all="ignore"):
            error = np.abs(widen(right[block], actual.dtype) - widen(left[block], golden.dtype))
        places = np.flatnonzero(np.isfinite(error))
        if places.size:
            yield places + start, error[places], noise[block][places]


def _of_data_set(
    golden: NamedValues, samples: Sequence[NamedValues], amplitudes: Sequence[float]
) -> dict[str, Floats]:
    found = {}
    drawn = [dict(_leaves(sample)) for sample in samples]
    quiet = next(values for values, amplitude in zip(drawn, amplitudes, strict=True) if not amplitude)
    for name, right in _leaves(golden):
        if right.dtype not in SMALLEST:
            continue
        values = [(amplitude, one.get(name)) for amplitude, one in zip(amplitudes, drawn, strict=True)]
        alike = [
            (amplitude, one)
            for amplitude, one in values
            if one is not None and (one.dtype, one.array.shape) == (right.dtype, right.array.shape)
        ]
        if not _keeps_shape(amplitudes, [amplitude for amplitude, _ in alike]):
            continue
        silent = widen(quiet[name].array, quiet[name].dtype)
        noisy = _measurable(
            silent, [(amplitude, widen(one.array, one.dtype)) for amplitude, one in alike if amplitude]
        )
        if noisy is None:
            continue
        spread = _of_leaf(right, silent, noisy)
        if _is_same(right, quiet[name], spread):
            found[name] = spread
    return found


def _keeps_shape(drawn: Sequence[float], alike: Sequence[float]) -> bool:
    """Whether noise leaves an output its shape: in all draws as it is, and in half of those where amplified.

    Args:
        drawn: The amplitude of each draw.
        alike: Those of the draws that have the golden's shape.
    """
    total, kept = Counter(drawn), Counter(alike)
    plain = {0.0, min((amplitude for amplitude in drawn if amplitude), default=0.0)}
    return all(
        kept[amplitude] * (1 if amplitude in plain else 2) >= count for amplitude, count in total.items()
    )


def _measurable(quiet: Array, noisy: Draws) -> Draws | None:
    """The draws that tell the noise of an output; None where it is as good as lost in noise.

    What is NaN or infinite without noise tells nothing. Where noise makes most of the rest so, too, the draws
    tell nothing either.
    """
    finite = np.isfinite(quiet)
    kept = sum(np.count_nonzero(np.isfinite(one) & finite) for _, one in noisy)
    if kept < ENOUGH * len(noisy) * np.count_nonzero(finite):
        return None
    probes = [one for one in noisy if one[0] == 1]
    if not probes or len(probes) > PROBES:
        return noisy
    amplified = [one for one in noisy if one[0] != 1]
    if amplified and _is_within(LINEAR, quiet, amplified):
        return amplified
    return probes if _is_within(1.0, quiet, probes) else None


@np.errstate(all="ignore")
def _is_within(part: float, quiet: Array, noisy: Draws) -> bool:
    """Whether no draw moves an output by more than some part of its size."""
    size = _root_mean_square(np.abs(np.where(np.isfinite(quiet), quiet, 0.0)))
    moved = [_root_mean_square(_deviation(one.reshape(-1), quiet.reshape(-1))) for _, one in noisy]
    return max(moved) <= part * size or not any(moved)


def _is_same(golden: Tensor, quiet: Tensor, spread: Floats) -> bool:
    """Whether the model with noise, that being off, computes what the model itself does."""
    rms, largest = noise_of(golden, quiet, spread)
    return rms <= rms_limit(DEFAULT_LIMITS, golden.array.size) and largest <= DEFAULT_LIMITS.max


@np.errstate(all="ignore")
def _of_leaf(golden: Tensor, quiet: Array, noisy: Draws) -> Floats:
    right = widen(golden.array, golden.dtype).reshape(-1)
    moved: dict[float, list[Floats]] = {}
    for amplitude, one in noisy:
        moved.setdefault(amplitude, []).append(_deviation(one.reshape(-1), quiet.reshape(-1)))
    size = np.abs(np.nan_to_num(right, posinf=0.0, neginf=0.0))
    least = np.maximum(RESOLUTION * UNIT_ROUNDOFF[golden.dtype] * size, SMALLEST[golden.dtype])
    if not moved or not right.size:  # every operator is exact
        return _shaped(least, golden)
    levels = {level: np.sqrt(np.mean(np.square(each), axis=0)) / level for level, each in moved.items()}
    spread: Floats = np.max([*levels.values()], axis=0)
    if len(levels) == 1:
        floored = np.maximum(spread, FLOOR * _root_mean_square(spread))
        return _shaped(np.maximum(floored, least), golden)
    plain = levels[min(levels)]
    jumped = plain > UNLIKE * np.median(plain)
    foretold = np.maximum(plain, FLOOR * _root_mean_square(plain[~jumped]))
    for level, each in moved.items():
        jumped |= np.max(each, axis=0) > JUMP * level * foretold
    largest = np.max([np.max(each, axis=0) for each in moved.values()], axis=0)
    calm = np.maximum(spread, FLOOR * _root_mean_square(spread[~jumped]))
    return _shaped(np.maximum(np.where(jumped, largest, calm), least), golden)


def _shaped(numbers: Array, golden: Tensor) -> Floats:
    return numbers.astype(np.float64).reshape(golden.array.shape)


def _deviation(noisy: Array, quiet: Array) -> Floats:
    """What noise has moved; nothing where it made NaN or infinity, for that excuses no other number."""
    moved: Floats = np.abs(noisy - quiet)
    moved[~np.isfinite(moved)] = 0.0
    return np.minimum(moved, 2.0**500)


def _root_mean_square(numbers: Floats) -> float:
    scale = float(numbers.max(initial=0.0))
    return scale * float(np.sqrt(np.mean(np.square(numbers / scale)))) if scale else 0.0


def _leaves(values: NamedValues) -> list[tuple[str, Tensor]]:
    return [
        (leaf, part)
        for name, value in values
        for leaf, part in leaves(name, value)
        if isinstance(part, Tensor)
    ]

"""An error as a multiple of the rounding noise of its model; see ``harness.core.spread`` for that noise."""

import math
from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core import wording
from harness.core.metrics import BLOCK, LARGEST, widen
from harness.core.output_metrics import Noise, OutputMetrics
from harness.core.tolerance import UNIT_ROUNDOFF
from harness.core.value import Floats, Tensor

_NAMED = 3.0
"""Multiple of the noise from which on a record names the worst element: any usual limit lies above."""

PRECISIONS = {name: UNIT_ROUNDOFF[name] for name in ("float32", "float16", "bfloat16")}
"""Precision whose noise can be drawn, and that an error may behave like -> unit roundoff.

TF32 rounds like float16, and int8 like bfloat16.
"""

_BEYOND = 16.0
"""An error of so many times the noise of the coarsest precision is like none of them."""


class NoiseLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Multiples of the noise up to which a result passes.

    Attributes:
        rms: Of the root mean square of the error over that of the spread.
        max: Of the largest error of an element over the spread of that element.
    """

    rms: float = 3.0
    max: float = 32.0


DEFAULT_LIMITS = NoiseLimits()

DOCUMENTED_LIMITS = NoiseLimits(rms=3.0**0.5, max=6.0)
"""Multiples of the noise of documented errors up to which a document allows a result.

Errors of the largest allowed size have a root mean square of 3 ** 0.5 spreads, and a sum of many errors
exceeds six spreads in some 2e-9 of its elements.
"""


class NoiseRule(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of a model, for the comparison of its results.

    Attributes:
        precision: The precision whose rounding makes the noise.
        spreads: Leaf, named as ``harness.core.value.leaves`` names it -> spread, of the leaf's shape.
        lost: Leaf that is lost in noise, and has no spread -> size of the noise, see ``Noise.size``.
        delivers: As in ``Noise``.
        document: As in ``Noise``.
        wider: What else may explain an error, as in ``Noise``.
    """

    precision: str
    spreads: Mapping[str, Floats]
    lost: Mapping[str, float] = {}
    delivers: str = ""
    document: str = ""
    wider: "tuple[NoiseRule, ...]" = ()

    def knows(self, leaf: str) -> bool:
        """Return whether the noise of a leaf is known."""
        return leaf in self.spreads or leaf in self.lost


def rms_limit(limits: NoiseLimits, elements: int) -> float:
    """Return ``limits.rms`` for an output of so many elements.

    A root mean square over few elements is uncertain, that of the error as well as that of the spread: the
    limit for n elements is ``1 + 1 / sqrt(n)`` times the one for many.
    """
    return limits.rms * (1 + 1 / math.sqrt(max(1, elements)))


def with_noise(row: OutputMetrics, golden: Tensor, actual: Tensor, rule: NoiseRule) -> OutputMetrics:
    """Return the row of an output with its error in multiples of each noise that the rule has of it."""
    noise, *wider = (_multiples(row.name, golden, actual, one) for one in (rule, *rule.wider))
    if noise is not None and any(wider):
        noise = msgspec.structs.replace(noise, wider=tuple(one for one in wider if one is not None))
    return msgspec.structs.replace(row, noise=noise)


def _multiples(leaf: str, golden: Tensor, actual: Tensor, rule: NoiseRule) -> Noise | None:
    """Return an error in multiples of a noise; None if that is not known of the output."""
    if leaf in rule.lost:
        none = Noise(
            precision=rule.precision, rms=0.0, max=0.0, delivers=rule.delivers, document=rule.document
        )
        return msgspec.structs.replace(none, size=min(rule.lost[leaf], LARGEST))
    if leaf not in rule.spreads:
        return None
    spread = rule.spreads[leaf]
    rms, largest, at = _noise_and_place(golden, actual, spread)
    worst = wording.got_and_golden(golden, actual, at) if largest > _NAMED else ""
    return Noise(
        precision=rule.precision,
        rms=rms,
        max=largest,
        like="" if rule.document else behaves_like(rms, rule.precision),
        worst=worst,
        size=_size(golden, spread),
        delivers=rule.delivers,
        document=rule.document,
    )


def _size(golden: Tensor, spread: Floats) -> float:
    """Return the root mean square of a noise over that of the golden; 0 where that is all 0."""
    scale = float(spread.max(initial=0.0))
    if not scale:
        return 0.0
    noise_sq = golden_sq = 0.0
    right, noise = golden.array.reshape(-1), spread.reshape(-1)
    with np.errstate(all="ignore"):
        for start in range(0, right.size, BLOCK):
            block = slice(start, start + BLOCK)
            values = np.abs(widen(right[block], golden.dtype)) / scale
            finite = np.isfinite(values)
            golden_sq += float(np.sum(np.square(values[finite])))
            noise_sq += float(np.sum(np.square(noise[block][finite] / scale)))
    return min(math.sqrt(noise_sq / golden_sq), LARGEST) if golden_sq > 0 else 0.0


def noise_of(golden: Tensor, actual: Tensor, spread: Floats) -> tuple[float, float]:
    """Measure an error in multiples of the noise, for floats of one shape; the spread is positive.

    Only elements that are finite on both sides count; the result is (0, 0) where there are none.

    Returns:
        Root mean square of the error over that of the spread, and the largest error over spread.
    """
    return _noise_and_place(golden, actual, spread)[:2]


def _noise_and_place(golden: Tensor, actual: Tensor, spread: Floats) -> tuple[float, float, int]:
    """Return as ``noise_of`` does, and the place of the largest in the flattened tensor."""
    error_sq = spread_sq = worst = 0.0
    at = 0
    scale = float(spread.max(initial=0.0))  # keeps the squares of the spread within float64
    with np.errstate(all="ignore"):
        for places, error, noise in _errors(golden, actual, spread):
            error_sq += float(np.sum(np.square(error / scale)))
            spread_sq += float(np.sum(np.square(noise / scale)))
            ratio = error / noise
            largest = int(ratio.argmax())
            if ratio[largest] > worst:
                worst, at = float(ratio[largest]), int(places[largest])
    rms = math.sqrt(error_sq / spread_sq) if spread_sq else 0.0
    return min(rms, LARGEST), min(worst, LARGEST), at


def behaves_like(rms: float, precision: str) -> str:
    """Return the precision whose noise is nearest, on a logarithmic scale.

    Noise grows in proportion to the unit roundoff as long as a model's response is linear. ``rms`` is the
    root mean square of the error over that of the spread, which is of a precision.

    Returns:
        A key of ``PRECISIONS``; ``exact`` where there is no error, ``none`` where it is far beyond the noise
        of the coarsest.
    """
    if rms == 0.0:
        return "exact"
    if rms * PRECISIONS[precision] > _BEYOND * max(PRECISIONS.values()):
        return "none"
    error = math.log2(rms) + math.log2(PRECISIONS[precision])
    return min(PRECISIONS, key=lambda name: abs(error - math.log2(PRECISIONS[name])))


def _errors(
    golden: Tensor, actual: Tensor, spread: Floats
) -> Iterator[tuple[NDArray[np.intp], Floats, Floats]]:
    """Yield places, errors and spreads of the elements that are finite on both sides, block by block."""
    left, right, noise = golden.array.reshape(-1), actual.array.reshape(-1), spread.reshape(-1)
    for start in range(0, left.size, BLOCK):
        block = slice(start, start + BLOCK)
        with np.errstate(all="ignore"):
            error = np.abs(widen(right[block], actual.dtype) - widen(left[block], golden.dtype))
        places = np.flatnonzero(np.isfinite(error))
        if places.size:
            yield places + start, error[places], noise[block][places]

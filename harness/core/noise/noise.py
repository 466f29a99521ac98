"""An error as a multiple of the rounding noise of its model; ``spread`` draws that noise.

``harness.core.comparison.noise_limits`` has the multiples within which a result passes.
"""

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.comparison import wording
from harness.core.comparison.metrics import BLOCK, LARGEST_FLOAT64, widen
from harness.core.comparison.output_metrics import Noise, OutputMetrics
from harness.core.comparison.subnormals import flushed
from harness.core.comparison.tolerance import FLOORS, UNIT_ROUNDOFF
from harness.core.noise.noise_moves import Moves, unmoved
from harness.core.values.value import Floats, Tensor

_NAMED = 3.0
"""Multiple of the noise from which on a record names the worst element: every usual limit is higher."""

PRECISIONS = {name: UNIT_ROUNDOFF[FLOORS[name]] for name in ("float32", "float16", "bfloat16", "tf32")}
"""Precision whose noise can be drawn, and that an error may resemble -> unit roundoff.

TF32 rounds like float16 but has the range of float32; an error is attributed to the first of the two. int8
rounds like bfloat16.
"""

_BEYOND = 16.0
"""An error of more than this multiple of the coarsest precision's noise resembles no precision."""


class NoiseRule(msgspec.Struct, frozen=True, kw_only=True):
    """The noise of a model, for the comparison of its results.

    Attributes:
        precision: The precision whose rounding makes the noise.
        spreads: Leaf, named as ``harness.core.values.value.leaves`` names it -> spread, of the leaf's shape.
        lost: Leaf that noise destroys, and that has no spread -> size of the noise, see ``Noise.size``.
        delivers: As in ``Noise``.
        document: As in ``Noise``.
        wider: Other explanations of an error, as in ``Noise``.
        moved: Leaf of integers or booleans -> how noise moves its elements.
    """

    precision: str
    spreads: Mapping[str, Floats]
    moved: Moves = MappingProxyType({})
    lost: Mapping[str, float] = MappingProxyType({})
    delivers: str = ""
    document: str = ""
    wider: "tuple[NoiseRule, ...]" = ()

    def knows(self, leaf: str) -> bool:
        """Return whether the noise of a leaf is known."""
        return leaf in self.spreads or leaf in self.lost or leaf in self.moved


def with_noise(
    row: OutputMetrics, golden: Tensor, actual: Tensor, rule: NoiseRule, *, positions: bool = False
) -> OutputMetrics:
    """Return the row of an output with its error in multiples of each noise that the rule has for it.

    The model's own noise does not excuse ``positions`` by itself, unless it moves them all: ties do.
    """
    noise, *wider = (_noise(row.name, golden, actual, one) for one in (rule, *rule.wider))
    if positions and noise is not None and noise.unmoved is not None and not noise.is_all:
        noise = msgspec.structs.replace(noise, unmoved=max(1, row.mismatched, noise.unmoved))
    if noise is not None and any(wider):
        noise = msgspec.structs.replace(noise, wider=tuple(one for one in wider if one is not None))
    return msgspec.structs.replace(row, noise=noise)


def _noise(leaf: str, golden: Tensor, actual: Tensor, rule: NoiseRule) -> Noise | None:
    """Return an error in multiples of a noise; None if the output's noise is unknown."""
    if not rule.knows(leaf):
        return None
    noise = Noise(
        precision=rule.precision,
        rms=0.0,
        max=0.0,
        size=min(rule.lost.get(leaf, 0.0), LARGEST_FLOAT64),
        delivers=rule.delivers,
        document=rule.document,
    )
    if leaf in rule.moved and rule.moved[leaf].reach.shape == actual.array.shape:
        return msgspec.structs.replace(noise, unmoved=unmoved(golden, actual, rule.moved[leaf]))
    if leaf not in rule.spreads:
        return noise
    found = _multiples(golden, actual, rule.spreads[leaf])
    return msgspec.structs.replace(
        noise,
        rms=found.rms,
        max=found.max,
        each=found.each,
        like="" if rule.document else behaves_like(found.rms, rule.precision),
        worst=wording.got_and_golden(golden, actual, found.at) if found.max > _NAMED else "",
    )


def noise_of(golden: Tensor, actual: Tensor, spread: Floats) -> tuple[float, float]:
    """Measure an error in multiples of the noise, for floats of one shape; the spread is positive.

    Only elements that are finite on both sides count; the result is (0, 0) where there are none.

    Returns:
        Root mean square of the error over that of the spread, and the largest error over spread.
    """
    found = _multiples(golden, actual, spread)
    return found.rms, found.max


class _Multiples(NamedTuple):
    """An error in multiples of the noise; ``at`` is the flat index of the largest multiple."""

    rms: float
    max: float
    each: float
    at: int


def _multiples(golden: Tensor, actual: Tensor, spread: Floats) -> _Multiples:
    """Measure an error as ``noise_of`` does, and each element by itself."""
    error_sq = spread_sq = ratio_sq = worst = 0.0
    count = at = 0
    scale = float(spread.max(initial=0.0))  # keeps the squares of the spread within float64
    with np.errstate(all="ignore"):
        for places, error, noise in _errors(golden, actual, spread):
            error_sq += float(np.sum(np.square(error / scale)))
            spread_sq += float(np.sum(np.square(noise / scale)))
            ratio = error / noise
            ratio_sq += float(np.sum(np.square(ratio)))
            count += places.size
            largest = int(ratio.argmax())
            if ratio[largest] > worst:
                worst, at = float(ratio[largest]), int(places[largest])
    rms = math.sqrt(error_sq / spread_sq) if spread_sq else 0.0
    each = math.sqrt(ratio_sq / count) if count else 0.0
    return _Multiples(min(rms, LARGEST_FLOAT64), min(worst, LARGEST_FLOAT64), min(each, LARGEST_FLOAT64), at)


def behaves_like(rms: float, precision: str) -> str:
    """Return the precision whose noise is nearest, on a logarithmic scale.

    Noise grows in proportion to the unit roundoff as long as a model's response is linear. ``rms`` is the
    root mean square of the error over that of the spread of ``precision``.

    Returns:
        The result is a key of ``PRECISIONS``; ``exact`` without an error, ``none`` where the error is far
        beyond the noise of the coarsest.
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
            wide = widen(left[block], golden.dtype), widen(right[block], actual.dtype)
            error = np.abs(wide[1] - wide[0])
            error[flushed(*wide, golden.dtype)] = 0.0
        places = np.flatnonzero(np.isfinite(error))
        if places.size:
            yield places + start, error[places], noise[block][places]

"""Outputs that rounding alone decides: the noise of one run, not amplified, destroys most of their digits.

Logits that are all 1e10 differ by whole units in the last place, each 1024, and their softmax is arbitrary.
Such an output says nothing about the EP that computed it.
"""

import math
from collections.abc import Sequence

import numpy as np

from harness.core.comparison.metrics import LARGEST_FLOAT64, norm_of, widen_tensor
from harness.core.comparison.output_metrics import LOST
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.values.value import Array, NamedValues, Tensor, leaves_of


def lost_of(
    golden: NamedValues, samples: Sequence[NamedValues], amplitudes: Sequence[float]
) -> dict[str, float]:
    """Return the fraction of each leaf that noise destroys, for leaves that lose more than half.

    The samples are runs of one data set with noise, as ``harness.core.noise.spread.spread_of`` gets them.
    Samples at amplitude 1 count, against the sample at amplitude 0.

    Returns:
        Leaf -> fraction. For floats: root mean square of the noise over that of the leaf without noise. For
        integers, booleans and strings: share of the elements that change. The largest number if more than
        half of the runs change the shape, or if noise makes more than half of the finite elements NaN or
        infinite. Zeros have no digits to lose.
    """
    quiet = next((one for one, level in zip(samples, amplitudes, strict=True) if not level), None)
    noisy = [dict(_leaves(one)) for one, level in zip(samples, amplitudes, strict=True) if level == 1]
    if quiet is None or not noisy:
        return {}
    silent, found = dict(_leaves(quiet)), {}
    for name, right in _leaves(golden):
        still = silent.get(name)
        if still is None or still.dtype != right.dtype:
            continue
        part = _part(right, still, [one[name] for one in noisy if name in one], len(noisy))
        if part > LOST:
            found[name] = min(part, LARGEST_FLOAT64)
    return found


def _part(right: Tensor, still: Tensor, drawn: Sequence[Tensor], count: int) -> float:
    alike = [one for one in drawn if (one.dtype, one.array.shape) == (still.dtype, still.array.shape)]
    if 2 * len(alike) < count:
        return LARGEST_FLOAT64
    if not still.array.size:
        return 0.0
    if right.dtype not in UNIT_ROUNDOFF:
        return float(np.mean([np.mean(one.array != still.array) for one in alike]))
    quiet = widen_tensor(still)
    # An output that lost its digits differs in the golden, too: the larger of the two norms is its size.
    size = max(norm_of(quiet), norm_of(widen_tensor(right)))
    return _moved(quiet, alike, size)


@np.errstate(all="ignore")
def _moved(quiet: Array, drawn: Sequence[Tensor], size: float) -> float:
    """Return how far noise moves an output, as a fraction of its size; 0 where nothing moves."""
    finite = np.isfinite(quiet)
    kept, noise = 0, 0.0
    for one in drawn:  # each on its own: outputs may be large
        numbers = widen_tensor(one)
        kept += int(np.count_nonzero(np.isfinite(numbers) & finite))
        noise = math.hypot(noise, norm_of(np.where(finite, numbers - quiet, 0.0)))
    if not finite.any():
        return 0.0
    if 2 * kept < len(drawn) * np.count_nonzero(finite):
        return LARGEST_FLOAT64
    return noise / math.sqrt(len(drawn)) / size if size else 0.0


def _leaves(values: NamedValues) -> list[tuple[str, Tensor]]:
    return [(leaf, part) for leaf, part in leaves_of(values) if part is not None]

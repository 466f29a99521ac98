"""How large a fault's effect is, in multiples of the noise of healthy results: no policy has a say in it."""

import math
from collections.abc import Iterable

import numpy as np

from benchmarks.detection.net import Array
from harness.core.comparison.metrics import special_codes
from harness.core.values.value import STRING, NamedValues, Tensor, leaves

ROUNDOFF = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half the distance of 1 and the next number."""

Noise = dict[str, float]
"""Name of an output -> root mean square of what healthy results differ from the golden by."""


def flat(values: NamedValues) -> dict[str, Tensor]:
    """The tensors of all outputs, by the names of their leaves."""
    return {leaf: value for name, whole in values for leaf, value in leaves(name, whole) if value is not None}


def noise(golden: NamedValues, healthy: Iterable[NamedValues], precision: str) -> Noise:
    """The noise of each floating output: the root mean square over healthy results that are not bit-equal.

    Where all are bit-equal: the unit roundoff of the precision times the golden's own root mean square.

    Args:
        golden: Of the CPU provider at float32.
        healthy: Results that nobody doubts, at the precision.
        precision: A key of ``ROUNDOFF``.
    """
    right, found = flat(golden), [flat(result) for result in healthy]
    noises = {}
    for name, tensor in right.items():
        if tensor.array.dtype.kind != "f":
            continue
        powers = [power for one in found if name in one and (power := _power(tensor, one[name])) > 0]
        least = ROUNDOFF[precision] * math.sqrt(_mean_square(tensor.array.astype(np.float64)))
        noises[name] = math.sqrt(sum(powers) / len(powers)) if powers else least
    return noises


def effect(golden: NamedValues, result: NamedValues, noises: Noise) -> float:
    """The largest root mean square of an output's error over that output's noise.

    Infinite where something differs that has no noise: shapes, types, NaN and infinity, integers, strings.
    """
    right, found = flat(golden), flat(result)
    if right.keys() != found.keys():
        return math.inf
    worst = 0.0
    for name, tensor in right.items():
        other = found[name]
        if tensor.array.shape != other.array.shape or tensor.dtype != other.dtype:
            return math.inf
        if tensor.dtype == STRING or tensor.array.dtype.kind != "f":
            if not np.array_equal(tensor.array, other.array):
                return math.inf
            continue
        if not np.array_equal(special_codes(tensor.array), special_codes(other.array)):
            return math.inf
        error = math.sqrt(_power(tensor, other))
        if error:
            worst = max(worst, error / noises[name] if noises[name] else math.inf)
    return worst


def equal(golden: NamedValues, result: NamedValues) -> bool:
    """Whether two results agree bit by bit."""
    right, found = flat(golden), flat(result)
    return right.keys() == found.keys() and all(
        tensor.array.shape == found[name].array.shape
        and tensor.array.tobytes() == found[name].array.tobytes()
        for name, tensor in right.items()
    )


def _power(right: Tensor, found: Tensor) -> float:
    if right.array.shape != found.array.shape or found.array.dtype.kind != "f":
        return 0.0
    with np.errstate(invalid="ignore"):
        return _mean_square(found.array.astype(np.float64) - right.array.astype(np.float64))


def _mean_square(values: Array) -> float:
    finite = values[np.isfinite(values)]
    return float(np.mean(np.square(finite))) if finite.size else 0.0

"""Answers that cannot be told from zeros in half of the golden: the judge passes both.

An EP is granted the rounding noise of the model, or what a conversion costs the CPU EP. Where these are a
seventh of an output, the limits for them are as large as its lesser half. That is no matter for an answer
that is near the golden all the same.
"""

import numpy as np

from harness.core.comparison.metrics import norm_of, widen_tensor
from harness.core.comparison.output_kind import OutputKind
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.policy import Policy
from harness.core.comparison.tolerance import UNIT_ROUNDOFF
from harness.core.noise.noise import NoiseRule
from harness.core.values.value import Tensor
from harness.core.verdicts.compare import compare_outputs
from harness.core.verdicts.distances import distances
from harness.core.verdicts.judge_output import judge_row
from harness.core.verdicts.precise import precision_row

_MATTERS = 1 / 16
"""Least norm of the lesser half, and of an answer's error, as a part of the norm of the output.

The lesser half of normally distributed numbers has a quarter; that of probabilities, often nothing.
"""


def half_zero(right: Tensor) -> Tensor | None:
    """Return floats with zeros in place of the lesser half of those that are not zero.

    None where that changes too little, and for other element types.
    """
    if right.dtype not in UNIT_ROUNDOFF:
        return None
    size = np.abs(widen_tensor(right))
    counted = np.isfinite(size) & (size > 0)
    if not counted.any():
        return None
    lesser = counted & (size <= np.median(size[counted]))
    if norm_of(size[lesser]) < _MATTERS * norm_of(size[counted]):
        return None
    array = right.array.copy()
    array[lesser] = 0
    return Tensor(dtype=right.dtype, array=array)


def half_zero_passes(
    leaf: str, golden: Tensor, policy: Policy, output_kind: OutputKind | None, noise: NoiseRule | None
) -> bool:
    """Return whether zeros in half of a golden pass; the arguments are those of a comparison with it."""
    if (wrong := half_zero(golden)) is None:
        return False
    tolerance_for = policy.tolerance_for
    compared = compare_outputs(leaf, golden, wrong, tolerance_for, output_kind, noise, policy, hints=0)
    return compared.verdict is None


def passes_for_half(
    row: OutputMetrics,
    golden: Tensor,
    policy: Policy,
    output_kind: OutputKind | None = None,
    noise: NoiseRule | None = None,
) -> bool:
    """Return whether an answer passes far from its golden, and zeros in half of that would pass as well.

    ``row`` compares the answer; the other arguments are those that it was made of.
    """
    if (row.relative_error or 0.0) < _MATTERS or judge_row(row, policy).fault is not None:
        return False
    return half_zero_passes(row.name, golden, policy, output_kind, noise)


def passes_for_half_of_own(
    row: OutputMetrics, golden: Tensor, own: Tensor, actual: Tensor, policy: Policy, most_apart: float
) -> bool:
    """Return whether an answer passes far from the CPU EP's own, and zeros in half of that would as well.

    ``row`` compares the answer of a converted model, ``actual``, as ``judge_precision`` does.
    """
    error = row.precision_error
    if error is None or not error.measured or error.reference or (error.error or 0.0) < _MATTERS:
        return False
    if judge_row(row, policy).fault is not None:
        return False
    apart = distances(golden, own, actual)
    if apart.between < _MATTERS * apart.own or (wrong := half_zero(own)) is None:
        return False
    of_wrong = precision_row(row.name, golden, own, wrong, policy, most_apart)
    return judge_row(of_wrong, policy).fault is None

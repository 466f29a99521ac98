"""What an output is besides a tensor of numbers: positions, quantized values, random numbers."""

import msgspec
import numpy as np

from harness.core.comparison.metrics import widen_tensor
from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.comparison.output_rows import unmeasured_row, with_details
from harness.core.comparison.random_outputs import Distribution, name_of, sampled
from harness.core.comparison.ties import Chosen, excusing, ties_of
from harness.core.comparison.tolerance import Tolerance
from harness.core.comparison.unordered import Unordered
from harness.core.values.value import Array, Tensor


class Quantized(msgspec.Struct, frozen=True, kw_only=True):
    """An output whose values lie on a grid: differences count in steps of its scale.

    Attributes:
        scale: Distance between two neighbouring values, positive, broadcast against the output; 1 for
            integers.
    """

    scale: Array


class UnknownPositions(msgspec.Struct, frozen=True):
    """Positions whose values are not known yet, so that ties between them cannot be detected."""


class Copied(msgspec.Struct, frozen=True):
    """Values that operators copy, choose, or round once to nearest: each element has one right answer."""


OutputKind = Chosen | Copied | UnknownPositions | Unordered | Quantized | Distribution
"""Decides how an output is judged where its type and a tolerance do not suffice."""


def with_steps(row: OutputMetrics, quantized: Quantized, golden: Tensor, actual: Tensor) -> OutputMetrics:
    """Return the row of a quantized output, with the largest difference in steps of its scale.

    Only elements that are finite on both sides count. A scale that does not fit the shape adds nothing.
    """
    right, found = widen_tensor(golden), widen_tensor(actual)
    try:
        scale = np.broadcast_to(np.abs(quantized.scale), right.shape)
    except ValueError:
        return row
    with np.errstate(all="ignore"):
        steps = np.abs(found - right) / scale
    return with_details(row, steps=round(float(steps[np.isfinite(steps) & (scale > 0)].max(initial=0.0)), 3))


def with_ties(
    row: OutputMetrics, chosen: Chosen, golden: Tensor, actual: Tensor, values: Tolerance
) -> tuple[OutputMetrics, str]:
    """Return the row of an output of positions, and a note on its ties where it is wrong.

    ``row`` counts every different position as mismatched; ``values`` is the tolerance of the values chosen
    from.
    """
    ties = ties_of(chosen, golden.array, actual.array)
    count = 0 if ties is None else ties.within(values)
    if ties is None or not count:
        return row, ""
    if not chosen.excuses:
        note = f"{count} of them choose another one of equal values than ONNX says"
        return with_details(row, ties=count), note
    row = with_details(row, ties=count, ties_of=chosen.data.dtype, tie_frontier=excusing(ties, chosen))
    left = 0 if chosen.op == "NonZero" else row.mismatched - count
    row = msgspec.structs.replace(row, mismatched=left)
    return row, f"{count} more differ where the values tie, and count as right" if left else ""


def drawn_row(name: str, actual: Tensor, draw: Distribution) -> tuple[OutputMetrics, str]:
    """Return the row of random numbers, with the reason if they are not a sample of their distribution."""
    sample = sampled(draw, actual)
    row = unmeasured_row(name, actual, max(1, actual.array.size) if sample.misfit else 0)
    return with_details(row, distribution=name_of(draw), unseen=round(sample.unseen, 4)), sample.misfit

"""What an output is besides a tensor of numbers: positions, quantized values, draws by lot."""

import msgspec

from harness.core.draws import Draw, name_of, sampled
from harness.core.metrics import EXACT_FRONTIER
from harness.core.output_metrics import Frontier, OutputDetails, OutputMetrics
from harness.core.steps import Quantized, largest_step
from harness.core.ties import Chosen, excusing, ties_of
from harness.core.tolerance import Tolerance
from harness.core.unordered import Unordered
from harness.core.value import Tensor

OutputKind = Chosen | Unordered | Quantized | Draw
"""Decides how an output is judged, where its type and a tolerance do not tell all."""


def with_steps(row: OutputMetrics, quantized: Quantized, golden: Tensor, actual: Tensor) -> OutputMetrics:
    """The row of a quantized output, with the largest difference in steps of its scale."""
    largest = largest_step(quantized, golden, actual)
    return row if largest is None else with_details(row, steps=round(largest, 3))


def with_ties(
    row: OutputMetrics, chosen: Chosen, golden: Tensor, actual: Tensor, values: Tolerance
) -> tuple[OutputMetrics, str]:
    """The row of an output of positions, and what to say of its ties where it is wrong.

    Args:
        row: Where every element that differs counts as mismatched.
        chosen: Where the positions come from.
        golden: Those of the CPU provider.
        actual: Those of the EP.
        values: Tolerance of what was chosen from.
    """
    ties = ties_of(chosen, golden.array, actual.array)
    count = 0 if ties is None else ties.within(values)
    if ties is None or not count:
        return row, ""
    if not chosen.excuses:
        told = f"{count} of them choose another one of equal values than ONNX says"
        return with_details(row, ties=count), told
    row = with_details(row, ties=count, ties_of=chosen.data.dtype, tie_frontier=excusing(ties, chosen))
    left = 0 if chosen.op == "NonZero" else row.mismatched - count
    row = msgspec.structs.replace(row, mismatched=left)
    return row, f"{count} more differ where the values tie, and count as right" if left else ""


def drawn_row(name: str, actual: Tensor, draw: Draw) -> tuple[OutputMetrics, str]:
    """The row of an output that is drawn by lot, and why it is no sample of its distribution, or nothing."""
    sample = sampled(draw, actual)
    elements = actual.array.size
    row = OutputMetrics(
        name=name,
        dtype=actual.dtype,
        shape=actual.array.shape,
        elements=elements,
        mismatched=max(1, elements) if sample.misfit else 0,
        headroom=None if sample.misfit else 0.0,
        frontier=() if sample.misfit else EXACT_FRONTIER,
    )
    return with_details(row, distribution=name_of(draw), unseen=round(sample.unseen, 4)), sample.misfit


def with_details(row: OutputMetrics, **known: float | str | Frontier) -> OutputMetrics:
    """The row with more details."""
    details = msgspec.structs.replace(row.details or OutputDetails(), **known)
    return msgspec.structs.replace(row, details=details)

"""What an output is besides a tensor of numbers: positions, quantized values, draws by lot."""

import msgspec

from harness.core.draws import Draw, name_of, sampled
from harness.core.metrics import EXACT_FRONTIER
from harness.core.output_metrics import OutputDetails, OutputMetrics
from harness.core.steps import Quantized, in_steps
from harness.core.ties import Chosen, tied
from harness.core.tolerance import Tolerance
from harness.core.unordered import Unordered
from harness.core.value import Tensor

Nature = Chosen | Unordered | Quantized | Draw
"""Decides how an output is judged, where its type and a tolerance do not tell all."""


def with_steps(
    row: OutputMetrics, quantized: Quantized, golden: Tensor, actual: Tensor
) -> tuple[OutputMetrics, str]:
    """The row of a quantized output, and what to say of it where it is wrong."""
    found = in_steps(quantized, golden, actual, Tolerance(rtol=row.rtol, atol=row.atol))
    if found is None:
        return row, ""
    row = _detailed(row, steps=round(found.largest, 3))
    if quantized.granted:
        row = msgspec.structs.replace(row, mismatched=found.beyond, headroom=found.headroom)
    granted = f", {quantized.granted:g} granted" if quantized.granted else ""
    return row, f"up to {found.largest:.3g} steps of its quantization{granted}"


def with_ties(
    row: OutputMetrics, chosen: Chosen, golden: Tensor, actual: Tensor, values: Tolerance
) -> tuple[OutputMetrics, str]:
    """The row of an output of positions, and what to say of it where it is wrong.

    Args:
        row: Where every element that differs counts as mismatched.
        chosen: Where the positions come from.
        golden: Those of the CPU provider.
        actual: Those of the EP.
        values: Tolerance of what was chosen from.
    """
    mask = tied(chosen, golden.array, actual.array, values)
    count = 0 if mask is None else int(mask.sum())
    if not count:
        return row, ""
    if not chosen.excuses:
        told = f"{count} of them choose another one of equal values than ONNX says"
        return _detailed(row, ties=count), told
    left = 0 if chosen.op == "NonZero" else row.mismatched - count
    row = msgspec.structs.replace(_detailed(row, ties=count), mismatched=left)
    if left:
        return row, f"{count} more differ where the values tie, and count as right"
    return msgspec.structs.replace(row, headroom=0.0, frontier=EXACT_FRONTIER), ""


def drawn_row(name: str, actual: Tensor, draw: Draw) -> tuple[OutputMetrics, str]:
    """The row of an output that is drawn by lot, and why it is no sample of its distribution, or nothing."""
    sample = sampled(draw, actual)
    elements = actual.array.size
    row = OutputMetrics(
        name=name,
        dtype=actual.dtype,
        shape=actual.array.shape,
        elements=elements,
        mismatched=elements if sample.misfit else 0,
        headroom=None if sample.misfit else 0.0,
        frontier=() if sample.misfit else EXACT_FRONTIER,
    )
    return _detailed(row, distribution=name_of(draw), unseen=round(sample.unseen, 4)), sample.misfit


def _detailed(row: OutputMetrics, **known: float | str) -> OutputMetrics:
    details = msgspec.structs.replace(row.details or OutputDetails(), **known)
    return msgspec.structs.replace(row, details=details)

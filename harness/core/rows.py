"""Rows of a record: what is told of one output, from what was found."""

import msgspec

from harness.core.metrics import EXACT_FRONTIER, Measured, any_finite
from harness.core.output_metrics import OutputDetails, OutputMetrics
from harness.core.tolerance import Tolerance
from harness.core.value import Map, Sequence, Tensor, Value


def whole_row(name: str, value: Value) -> OutputMetrics:
    """The row of a value that is wrong as a whole, and that nothing was compared with."""
    shape: tuple[int, ...]
    mismatched = 1
    if isinstance(value, Tensor):
        dtype, shape = value.dtype, value.array.shape
        mismatched = max(1, value.array.size)
    elif isinstance(value, Sequence):
        dtype, shape = "sequence", (len(value.items),)
    elif isinstance(value, Map):
        dtype, shape = "map", value.keys.array.shape
    else:
        dtype, shape = "optional", ()
    return OutputMetrics(name=name, dtype=dtype, shape=shape, mismatched=mismatched)


def empty_row(name: str, value: Value) -> OutputMetrics:
    """The row of an empty container on both sides: right, with nothing inside to compare."""
    row = whole_row(name, value)
    return msgspec.structs.replace(row, mismatched=0, headroom=0.0, frontier=EXACT_FRONTIER)


def equal_row(name: str, value: Tensor, tolerance: Tolerance) -> OutputMetrics:
    """What ``measure`` would find for two tensors that are equal bit by bit."""
    zero = 0.0 if any_finite(value) else None
    return OutputMetrics(
        name=name,
        dtype=value.dtype,
        shape=value.array.shape,
        max_abs=zero,
        max_rel=zero,
        rmse=zero,
        cosine=None if zero is None else 1.0,
        elements=value.array.size,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        headroom=0.0,
        frontier=EXACT_FRONTIER,
    )


def measured_row(name: str, actual: Tensor, tolerance: Tolerance, measured: Measured) -> OutputMetrics:
    """What ``measure`` has found."""
    return OutputMetrics(
        name=name,
        dtype=actual.dtype,
        shape=actual.array.shape,
        max_abs=measured.max_abs,
        max_rel=measured.max_rel,
        rmse=measured.rmse,
        cosine=measured.cosine,
        sqnr_db=measured.sqnr_db,
        delivered_bits=measured.delivered_bits,
        mismatched=measured.mismatched,
        elements=actual.array.size,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        headroom=measured.headroom,
        frontier=measured.frontier,
        details=OutputDetails(signed_zeros=measured.signed_zeros) if measured.signed_zeros else None,
    )

"""Rows of a record: how one output compares, from its measurements."""

import msgspec

from harness.core.comparison.metrics import EXACT_FRONTIER, LARGEST_FLOAT64, OutputFigures, any_finite
from harness.core.comparison.output_metrics import LOST, Frontier, OutputDetails, OutputMetrics
from harness.core.comparison.tolerance import Tolerance
from harness.core.values.value import Map, Sequence, Tensor, Value

_MEASURED = tuple(set(OutputFigures.__struct_fields__) & set(OutputMetrics.__struct_fields__))
"""Figures that a row copies from the measurement."""


def whole_row(name: str, value: Value) -> OutputMetrics:
    """Return the row of a value that is wrong as a whole, so that nothing was compared."""
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
    """Return the row of a container that is empty on both sides: right, with nothing to compare."""
    row = whole_row(name, value)
    return msgspec.structs.replace(row, mismatched=0, headroom=0.0, frontier=EXACT_FRONTIER)


def unmeasured_row(name: str, value: Tensor, wrong: int) -> OutputMetrics:
    """Return the row of a tensor whose elements are right or wrong, without a distance."""
    return OutputMetrics(
        name=name,
        dtype=value.dtype,
        shape=value.array.shape,
        elements=value.array.size,
        mismatched=wrong,
        headroom=None if wrong else 0.0,
        frontier=() if wrong else EXACT_FRONTIER,
    )


def equal_row(name: str, value: Tensor, tolerance: Tolerance) -> OutputMetrics:
    """Return the row that ``measure`` would give for two tensors that are equal bit by bit."""
    zero = 0.0 if any_finite(value) else None
    return msgspec.structs.replace(
        unmeasured_row(name, value, 0),
        max_abs=zero,
        max_rel=zero,
        rmse=zero,
        cosine=None if zero is None else 1.0,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
    )


def measured_row(name: str, actual: Tensor, tolerance: Tolerance, measured: OutputFigures) -> OutputMetrics:
    """Return the row of a tensor that ``measure`` has measured."""
    return OutputMetrics(
        name=name,
        dtype=actual.dtype,
        shape=actual.array.shape,
        elements=actual.array.size,
        rtol=tolerance.rtol,
        atol=tolerance.atol,
        details=_zeros(measured),
        **{figure: getattr(measured, figure) for figure in _MEASURED},
    )


def _zeros(measured: OutputFigures) -> OutputDetails | None:
    if not (measured.signed_zeros or measured.flushed):
        return None
    part = measured.flushed_part if measured.flushed_part > LOST else 0.0
    return OutputDetails(
        signed_zeros=measured.signed_zeros, flushed=measured.flushed, flushed_part=min(part, LARGEST_FLOAT64)
    )


def with_details(row: OutputMetrics, **known: float | str | Frontier) -> OutputMetrics:
    """Return the row with more details."""
    details = msgspec.structs.replace(row.details or OutputDetails(), **known)
    return msgspec.structs.replace(row, details=details)

"""Goldens that cannot tell a right answer from a wrong one."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from harness.core.metrics import widen
from harness.core.tolerance import Tolerance
from harness.core.value import STRING, Array, Tensor, Value, leaves

NamedValues = Sequence[tuple[str, Value]]


def why_weak(goldens: Sequence[NamedValues], tolerance_for: Callable[[str], Tolerance]) -> str:
    """Why a golden is weak: no output of any data set would show most wrong answers.

    Args:
        goldens: For each data set the right outputs by name.
        tolerance_for: Element type of an output -> what it may differ by; numbers within ``atol`` of zero
            pass as zeros.

    Returns:
        One line; empty where some output is strong enough.
    """
    reasons: dict[str, int] = {}
    for part in _parts(goldens):
        why = _why_weak(part, tolerance_for(part.dtype)) if part is not None else "empty"
        if not why:
            return ""
        reasons[why] = reasons.get(why, 0) + 1
    if not reasons:
        return "the golden has no outputs"
    if len(reasons) == 1:
        (why,) = reasons
        whose = "the golden's output is" if reasons[why] == 1 else "all outputs of the golden are"
        return f"{whose} {why}"
    told = ", ".join(f"{count} {why}" for why, count in sorted(reasons.items()))
    return f"of the golden's outputs, {told}"


def holds_nan(goldens: Sequence[NamedValues]) -> bool:
    """Whether a golden holds a NaN: what reaches it could be anything."""
    return any(
        part is not None and part.dtype != STRING and bool(np.isnan(widen(part.array, part.dtype)).any())
        for part in _parts(goldens)
    )


def holds_special(value: Value) -> bool:
    """Whether a value holds a NaN or an infinity."""
    return any(
        part is not None and part.dtype != STRING and not np.isfinite(widen(part.array, part.dtype)).all()
        for _, part in leaves("", value)
    )


def _parts(goldens: Sequence[NamedValues]) -> Iterator[Tensor | None]:
    return (part for outputs in goldens for name, value in outputs for _, part in leaves(name, value))


def _why_weak(part: Tensor, tolerance: Tolerance) -> str:
    """In which way a tensor is weak; empty where it is not."""
    array = part.array.reshape(-1)
    if array.size <= 1:
        return "a single element" if array.size else "empty"
    if part.dtype == STRING:
        return "constant" if bool((array == array[0]).all()) else ""
    return _why_numbers_are_weak(widen(array, part.dtype), tolerance)


def _why_numbers_are_weak(numbers: Array, tolerance: Tolerance) -> str:
    finite = numbers[np.isfinite(numbers)]
    if not finite.any():
        return "zero" if finite.size else "NaN or infinite"
    if (numbers == numbers[0]).all():
        return "constant"
    if np.abs(finite).max() <= tolerance.atol:
        return f"below the absolute tolerance of {tolerance.atol:g}"
    return ""

"""Goldens that cannot tell a right answer from a wrong one."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from harness.core.comparison.metrics import widen, widen_tensor
from harness.core.comparison.tolerance import Tolerance, ToleranceFor
from harness.core.values.value import STRING, Array, NamedValues, Tensor, Value, leaves

_FAINT = 0.01
"""Errors show in larger numbers: the rounding error of 1, times the limit for one element, is 2e-4 of it."""


_NEARLY = 1e-4
"""Of 0 or 1: an error of the score before a sigmoid or a softmax is ten thousand times smaller there."""


def why_weak(goldens: Sequence[NamedValues], tolerance_for: ToleranceFor) -> str:
    """Return why a golden is weak, in one line: no output of any data set would reveal most wrong answers.

    Numbers within ``atol`` of zero pass as zeros. Empty where at least one output is strong enough.
    """
    reasons: Counter[str] = Counter()
    for part in _parts(goldens):
        why = _why_weak(part, tolerance_for(part.dtype)) if part is not None else "empty"
        if not why:
            return ""
        reasons[why] += 1
    if not reasons:
        return "the golden has no outputs"
    if len(reasons) == 1:
        ((why, count),) = reasons.items()
        return ("the golden's output is " if count == 1 else "all outputs of the golden are ") + why
    return "of the golden's outputs, " + ", ".join(f"{count} {why}" for why, count in sorted(reasons.items()))


def holds_nan(goldens: Sequence[NamedValues]) -> bool:
    """Return whether a golden holds a NaN: any value may lead to one."""
    return any(bool(np.isnan(numbers).any()) for numbers in _numbers(_parts(goldens)))


def is_faint(goldens: Sequence[NamedValues]) -> bool:
    """Return whether a golden has floats, none of which shows how exactly it was computed.

    They are all below 1 %: probabilities may have the rounding error of 1, whatever their size, so an EP
    that is off by a thousandth passes. Or they are all nearly 0 or 1: scores of any size lead to these.
    """
    floats = [part for part in _parts(goldens) if part is not None and "float" in part.dtype]
    return bool(floats) and all(_is_faint(one[~np.isnan(one)]) for one in _numbers(iter(floats)))


def _is_faint(numbers: Array) -> bool:
    if not numbers.size or np.abs(numbers).max() < _FAINT:
        return True
    return bool((np.minimum(np.abs(numbers), np.abs(1 - numbers)) < _NEARLY).all())


def holds_special(value: Value) -> bool:
    """Return whether a value holds a NaN or an infinity."""
    return any(not np.isfinite(numbers).all() for numbers in _numbers(part for _, part in leaves("", value)))


def _parts(goldens: Sequence[NamedValues]) -> Iterator[Tensor | None]:
    return (part for outputs in goldens for name, value in outputs for _, part in leaves(name, value))


def _numbers(parts: Iterator[Tensor | None]) -> Iterator[Array]:
    return (widen_tensor(part) for part in parts if part is not None and part.dtype != STRING)


def _why_weak(part: Tensor, tolerance: Tolerance) -> str:
    """Return how a tensor is weak; empty where it is not."""
    array = part.array.reshape(-1)
    if array.size <= 1:
        return "a single element" if array.size else "empty"
    if part.dtype == STRING:
        return "constant" if bool((array == array[0]).all()) else ""
    numbers = widen(array, part.dtype)
    finite = numbers[np.isfinite(numbers)]
    if not finite.any():
        return "zero" if finite.size else "NaN or infinite"
    if (numbers == numbers[0]).all():
        return "constant"
    if np.abs(finite).max() <= tolerance.atol:
        return f"below the absolute tolerance of {tolerance.atol:g}"
    return ""

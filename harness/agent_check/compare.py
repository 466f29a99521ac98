"""Comparison of values, bit for bit."""

from collections.abc import Iterator

from harness.agent_check.check import FaultError
from harness.core.value import STRING, Sequence, Tensor, Value, leaves


def same(found: Value, expected: Value, what: str = "the output") -> None:
    """Check that two values have the same type, shape and bits.

    Raises:
        FaultError: They differ.
    """
    text = _difference(found, expected)
    if text:
        raise FaultError("value", f"{what}: {text}")


def _difference(found: Value, expected: Value) -> str:
    """Return in words how two values differ; empty if they do not."""
    if type(found) is not type(expected):
        return f"{type(found).__name__} in place of {type(expected).__name__}"
    items = [len(each.items) for each in (found, expected) if isinstance(each, Sequence)]
    if items and items[0] != items[1]:
        return f"{items[0]} items in place of {items[1]}"
    parts = zip(leaves("", found), leaves("", expected), strict=False)
    return next(_differences(part for (_, one), (_, other) in parts for part in [(one, other)]), "")


def _differences(pairs: "Iterator[tuple[Tensor | None, Tensor | None]]") -> Iterator[str]:
    for found, expected in pairs:
        if found is None or expected is None:
            if found is not expected:
                yield "an empty optional in place of a value, or the other way"
        elif found.dtype != expected.dtype:
            yield f"{found.dtype} in place of {expected.dtype}"
        elif found.array.shape != expected.array.shape:
            yield f"shape {list(found.array.shape)} in place of {list(expected.array.shape)}"
        elif expected.dtype == STRING and found.array.tolist() != expected.array.tolist():
            yield "other texts"
        elif expected.dtype != STRING and found.array.tobytes() != expected.array.tobytes():
            yield "other values"

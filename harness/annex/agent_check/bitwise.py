"""Comparison of values, bit for bit."""

from harness.annex.agent_check.early_ends import FaultError
from harness.core.values.value import STRING, Sequence, Tensor, Value, leaves


def same(found: Value, expected: Value, what: str = "the output") -> None:
    """Raise FaultError unless two values have the same type, shape and bits."""
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
    return next(filter(None, (_part_difference(one, other) for (_, one), (_, other) in parts)), "")


def _part_difference(found: Tensor | None, expected: Tensor | None) -> str:
    if found is None or expected is None:
        return "" if found is expected else "an empty optional in place of a value, or the other way"
    if found.dtype != expected.dtype:
        return f"{found.dtype} in place of {expected.dtype}"
    if found.array.shape != expected.array.shape:
        return f"shape {list(found.array.shape)} in place of {list(expected.array.shape)}"
    if expected.dtype == STRING:
        return "" if found.array.tolist() == expected.array.tolist() else "other texts"
    return "" if found.array.tobytes() == expected.array.tobytes() else "other values"

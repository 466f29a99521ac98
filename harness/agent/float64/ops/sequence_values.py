"""Sequences and optional values: lists, and None."""

from __future__ import annotations

from typing import Any

import numpy as np

from harness.agent.float64.versioned_node import AnyArray, VersionedNode


def construct(node: VersionedNode, *items: AnyArray) -> Any:
    """SequenceConstruct."""
    del node
    return list(items)


def empty(node: VersionedNode) -> Any:
    """SequenceEmpty."""
    del node
    return []


def _place(position: AnyArray, default: int) -> int:
    return default if position is None else int(position.reshape(-1)[0])


def at(node: VersionedNode, items: Any, position: AnyArray) -> Any:
    """SequenceAt."""
    del node
    return items[_place(position, 0)]


def erase(node: VersionedNode, items: Any, position: AnyArray = None) -> Any:
    """SequenceErase: the last one by default."""
    del node
    index = _place(position, -1) % len(items)
    return items[:index] + items[index + 1 :]


def insert(node: VersionedNode, items: Any, item: AnyArray, position: AnyArray = None) -> Any:
    """SequenceInsert: at the end by default."""
    del node
    index = _place(position, len(items))
    index += len(items) * (index < 0)
    return [*items[:index], item, *items[index:]]


def length(node: VersionedNode, items: Any) -> Any:
    """SequenceLength."""
    del node
    return np.array(len(items), np.int64)


def concat_from_sequence(node: VersionedNode, items: Any) -> Any:
    """ConcatFromSequence."""
    join = np.stack if node.get("new_axis", 0) else np.concatenate
    return join(items, axis=node.get("axis"))


def split(node: VersionedNode, x: AnyArray, sizes: AnyArray = None) -> Any:
    """SplitToSequence: parts of one size, of sizes, or single rows, which may lose their axis."""
    axis = node.get("axis", 0)
    total = x.shape[axis]
    if sizes is None:
        rows = list(np.split(x, total, axis)) if total else []
        return rows if node.get("keepdims", 1) else [one.squeeze(axis) for one in rows]
    if sizes.ndim == 0:
        return np.split(x, range(int(sizes), total, int(sizes)), axis)
    return np.split(x, np.cumsum(sizes)[:-1], axis)


def optional(node: VersionedNode, value: Any = None) -> Any:
    """Optional."""
    del node
    return value


def optional_has_element(node: VersionedNode, value: Any = None) -> Any:
    """OptionalHasElement."""
    del node
    return np.array(value is not None)


def optional_get_element(node: VersionedNode, value: Any) -> Any:
    """OptionalGetElement."""
    del node
    return value

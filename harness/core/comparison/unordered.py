"""Outputs whose order ONNX leaves open: sort a result like its golden before the comparison.

An unsorted TopK gives a set of values with their positions, NonMaxSuppression a set of boxes. Equal elements
of both sides get the same place. Elements that only one side has fill the remaining places, sorted by value.
"""

import math
from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from harness.core.comparison.metrics import widen_tensor
from harness.core.comparison.ties import Chosen
from harness.core.values.value import STRING, Array, Tensor, Value


class Unordered(msgspec.Struct, frozen=True, kw_only=True):
    """The values of an unsorted TopK.

    Attributes:
        axis: The axis along which it chooses.
        positions: Name of the output with their positions; empty without one.
    """

    axis: int = -1
    positions: str = ""


def in_order_of(
    golden: Mapping[str, Value], actual: Mapping[str, Value], kinds: Mapping[str, object]
) -> dict[str, Value]:
    """Return a result in the order of its golden, where ONNX leaves the order open.

    Outputs of another shape stay unchanged.
    """
    ordered = dict(actual)
    for name, output_kind in kinds.items():
        if isinstance(output_kind, Unordered):
            _sort_along(golden, ordered, name, output_kind.positions, output_kind.axis)
    for name, output_kind in kinds.items():
        if isinstance(output_kind, Chosen) and output_kind.op == "NonMaxSuppression":
            _sort_boxes(golden, ordered, name)
        elif isinstance(output_kind, Chosen) and output_kind.unordered:
            # Positions that were sorted with their values keep their places.
            _sort_along(golden, ordered, "", name, output_kind.axis)
    return ordered


def _sort_along(
    golden: Mapping[str, Value], ordered: dict[str, Value], values: str, positions: str, axis: int
) -> None:
    names = [name for name in (values, positions) if name]
    right = {name: _numbers(golden.get(name), axis) for name in names}
    found = {name: _numbers(ordered.get(name), axis) for name in names}
    shapes = {
        value.array.shape
        for name in names
        for value in (golden.get(name), ordered.get(name))
        if isinstance(value, Tensor)
    }
    if len(shapes) > 1 or any(side is None or not side.size for side in (*right.values(), *found.values())):
        return
    places = _places(right.get(positions), found.get(positions), right.get(values), found.get(values))
    for name in names:
        tensor = ordered[name]
        if isinstance(tensor, Tensor):
            lying = np.moveaxis(tensor.array, axis, -1)
            array = np.take_along_axis(_rows(lying), places, -1).reshape(lying.shape)
            ordered[name] = Tensor(dtype=tensor.dtype, array=np.moveaxis(array, -1, axis))


def _sort_boxes(golden: Mapping[str, Value], ordered: dict[str, Value], name: str) -> None:
    right, found = golden.get(name), ordered.get(name)
    if not isinstance(right, Tensor) or not isinstance(found, Tensor):
        return
    if right.array.shape != found.array.shape or right.array.ndim != 2:  # noqa: PLR2004 - a list of rows
        return
    if STRING in (right.dtype, found.dtype) or not right.array.size:
        return
    # Widened, because some pairs of types, such as bfloat16 and int64, have no common type.
    both = np.concatenate([widen_tensor(right), widen_tensor(found)])
    codes = np.unique(both, axis=0, return_inverse=True)[1].reshape(2, 1, -1)
    places = _places(codes[0], codes[1], None, None)
    ordered[name] = Tensor(dtype=found.dtype, array=found.array[places[0]])


def _numbers(value: Value | None, axis: int) -> Array | None:
    """Return a tensor's numbers as rows along the axis; None for a value without such an axis."""
    if not isinstance(value, Tensor) or value.dtype == STRING:
        return None
    if not -value.array.ndim <= axis < value.array.ndim:
        return None
    return _rows(np.moveaxis(widen_tensor(value), axis, -1))


def _rows(array: Array) -> Array:
    """Return an array as ``(rows, length of the last axis)``: numpy sorts 32 dimensions at most."""
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _places(
    right: Array | None, found: Array | None, right_values: Array | None, found_values: Array | None
) -> NDArray[np.intp]:
    """Return for each place of the golden, along its row, the place of its partner in the result.

    All arrays are ``(rows, places)``, not empty.

    Args:
        right: Identifies the golden's elements, such as positions; None if only values do.
        found: The same for the result.
        right_values: Keys to sort the elements of one side alone; None for their present order.
        found_values: The same for the result.
    """
    one = right if right is not None else right_values
    assert one is not None  # noqa: S101 - one of the two is an output
    places = np.empty(one.shape, np.intp)
    in_order = np.broadcast_to(np.arange(one.shape[-1], dtype=np.float64), one.shape)
    left, other = (in_order if values is None else values for values in (right_values, found_values))
    alone_left = alone_other = np.ones(one.shape, np.bool_)
    if right is not None and found is not None:
        codes = np.unique(np.stack([right, found]), return_inverse=True)[1].reshape(2, *one.shape)
        rows = np.arange(len(one)).reshape(-1, 1) * 2 * one.size
        left_codes, other_codes = codes + rows
        alone_left, alone_other = ~np.isin(left_codes, other_codes), ~np.isin(other_codes, left_codes)
        left, other = np.where(alone_left, left, codes[0]), np.where(alone_other, other, codes[1])
    first, second = np.lexsort((left, alone_left), axis=-1), np.lexsort((other, alone_other), axis=-1)
    np.put_along_axis(places, first, second, -1)
    return places

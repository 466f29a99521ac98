"""The size of a tensor, as far as it is known before a model runs."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    import onnx

Dims = tuple[int, ...]

_MOST = 1e30
"""More elements than any tensor has, so that products of absurd dimensions stay finite."""


SIZE_ERRORS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors of a rule if an input, an attribute or a size is missing or invalid."""


class TensorSize(NamedTuple):
    """Size of a tensor.

    Attributes:
        elements: Number of its elements.
        dims: Extents; None where only the number of elements is estimated.
        nbytes: Bytes of an element.
        fixed: Whether it is a weight or a constant.
        values: The numbers of a small constant, which may be a shape, axes or factors.
    """

    elements: float
    dims: Dims | None = None
    nbytes: float = 4.0
    fixed: bool = False
    values: tuple[float, ...] | None = None


UNKNOWN_TENSOR_SIZE = TensorSize(1.0)


def of_dims(dims: Sequence[int], nbytes: float = 4.0) -> TensorSize:
    """Return the size of a tensor with these extents; negative ones count as 1."""
    known = tuple(max(0, int(extent)) if extent >= 0 else 1 for extent in dims)
    return TensorSize(min(float(math.prod(known)), _MOST), known, nbytes)


def attribute(node: "onnx.NodeProto", name: str, default: Any) -> Any:
    """Return an attribute that is a number, a text or a list of numbers."""
    for one in node.attribute:
        if one.name == name:
            if one.type == one.INT:
                return one.i
            if one.type == one.FLOAT:
                return one.f
            if one.type == one.STRING:
                return one.s.decode(errors="replace")
            return tuple(one.ints or one.floats) or default
    return default


def broadcast_size(given: Sequence[TensorSize | None]) -> TensorSize:
    """Return the size after broadcasting; if sizes do not fit, the largest one that is no weight."""
    present = [one for one in given if one is not None]
    data = [one for one in present if not one.fixed] or present
    if not data:
        return UNKNOWN_TENSOR_SIZE
    largest = max(data, key=lambda one: one.elements)
    extents = [one.dims for one in present]
    if any(dims is None for dims in extents):
        return TensorSize(largest.elements, None, largest.nbytes)
    rank = max(len(dims) for dims in extents if dims is not None)
    padded = [(1,) * (rank - len(dims)) + dims for dims in extents if dims is not None]
    for column in zip(*padded, strict=True):
        if len({extent for extent in column if extent != 1}) > 1:
            return largest._replace(fixed=False, values=None)
    dims = tuple(max(column) if 0 not in column else 0 for column in zip(*padded, strict=True))
    return of_dims(dims, largest.nbytes)


class HasDims(Protocol):
    """A tensor whose extents may be known."""

    @property
    def dims(self) -> Dims | None:
        """Its extents; None if they are not known."""


def known_dims(one: HasDims | None) -> Dims:
    """Return the extents of a tensor.

    Raises:
        TypeError: They are not known.
    """
    if one is None or one.dims is None:
        raise TypeError
    return one.dims


def constant_numbers(one: TensorSize | None) -> tuple[int, ...]:
    """Return the numbers of a constant.

    Raises:
        TypeError: They are not known.
    """
    if one is None or one.values is None:
        raise TypeError
    return tuple(map(int, one.values))


def input_size(given: Sequence[TensorSize | None], index: int = 0) -> TensorSize:
    """Return the size of an input.

    Raises:
        TypeError: It is absent.
    """
    one = given[index]
    if one is None:
        raise TypeError
    return one

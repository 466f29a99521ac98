"""The values that an input of an operator may hold, and the rules that depend on a node."""

from collections.abc import Callable
from typing import Protocol

import msgspec

Extent = int | str
"""The length of an axis: a number, or the name of a dimension; see ``harness.corpus.inputs.open_sizes``."""

Extents = tuple[Extent | None, ...]
"""The shape of a tensor, as far as it is known."""

_NEAREST_ZERO = 0.1
"""Least magnitude of a divisor: quotients stay within ten times the dividend, so that float16 holds them."""

_LEAST_POSITIVE = 0.05
"""Least input of an operator for positive numbers: float16 holds it, and its logarithm is small."""

_MOST_ROWS = 1 << 16
"""Largest number of table entries with which values are compared, one after another."""


class TableColumn(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a column of a table: by default numbers of a standard normal distribution.

    Attributes:
        choices: Numbers or texts, of which each value is one; empty: any.
        near: Numbers to one of which each value is close. In one row all columns are close to those of the
            same place, as rows of another table are.
        centre: Of other numbers.
        spread: Their standard deviation.
        gaps: Some values are missing: NaN.
        words: Each value is a text of several of the choices.
    """

    choices: tuple[float | str, ...] = ()
    near: tuple[float, ...] = ()
    centre: float = 0.0
    spread: float = 1.0
    gaps: bool = False
    words: bool = False


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """The values that an input may hold. Several demands on one input intersect.

    Attributes:
        low: The least value; None: no bound.
        high: The bound above every value; None: no bound.
        away: The least magnitude.
        extents: The values index axes of these lengths: they are 0 to the least length less one.
        lengths: The values count along axes of these lengths: they are 1 to the least length.
        pattern: The values themselves, in the order of the elements; the last one is repeated.
        distinct: The values differ from each other along this axis; None: they need not.
        tuples: The last axis of the input holds index tuples into axes of these lengths, and the tuples
            differ from each other.
        columns: The values of each column of a table, or of all alike.
        padding: Of a mask: the value of positions that count, and that of padding at the end of rows.
    """

    low: float | None = None
    high: float | None = None
    away: float = 0.0
    extents: tuple[Extent, ...] = ()
    lengths: tuple[Extent, ...] = ()
    pattern: tuple[float, ...] = ()
    distinct: int | None = None
    tuples: tuple[Extent, ...] = ()
    columns: tuple[TableColumn, ...] = ()
    padding: tuple[float, float] | None = None

    def within(self, other: "Domain") -> "Domain":
        """Return the values that are in both domains; if there are none, this domain."""
        lows = [low for low in (self.low, other.low) if low is not None]
        highs = [high for high in (self.high, other.high) if high is not None]
        low, high = max(lows, default=None), min(highs, default=None)
        if low is not None and high is not None and low >= high:
            return self
        return Domain(
            low=low,
            high=high,
            away=max(self.away, other.away),
            extents=tuple(dict.fromkeys(self.extents + other.extents)),
            lengths=tuple(dict.fromkeys(self.lengths + other.lengths)),
            pattern=self.pattern or other.pattern,
            distinct=self.distinct if self.distinct is not None else other.distinct,
            tuples=self.tuples or other.tuples,
            columns=self.columns or other.columns,
            padding=self.padding or other.padding,
        )


class NodeUse(Protocol):
    """A node as a rule reads it. Inputs go by their index; an unknown one is None or empty."""

    def number(self, attribute: str, default: float) -> float:
        """Return a numeric attribute of the node."""
        ...

    def shape(self, index: int) -> Extents | None:
        """Return the shape of an input."""
        ...

    def extent(self, index: int, axis: int) -> Extent | None:
        """Return the length of an axis of an input, unless it is unknown or 0."""
        ...

    def count(self, index: int) -> Extent | None:
        """Return the length of the axis along which an input holds positions: 0, 1, 2 and so on."""
        ...

    def constant(self, index: int, most: int = ...) -> tuple[float, ...]:
        """Return the elements of an input that is a small constant."""
        ...


ValueRule = Domain | Callable[[NodeUse], Domain | None]
"""A domain, or a function of the node if its attributes, shapes or constants decide."""

POSITIVE = Domain(low=_LEAST_POSITIVE)
DIVISOR = Domain(away=_NEAREST_ZERO)
SCALE = Domain(low=0.01, high=0.2)
"""Scale of a quantization: standard normal values then use part of the range of 8 bits."""

COUNTED = Domain(pattern=(0, 1, 2, 3, 4, 5, 6, 7))
"""Axes: all different, and each exists if the others do."""

ZERO, ONE = Domain(pattern=(0,)), Domain(pattern=(1,))


def index_into(table: int, axis: int = 0, attribute: str = "") -> ValueRule:
    """Return the rule of indices into an axis of an input, which an attribute may name."""

    def rule(use: NodeUse) -> Domain | None:
        extent = use.extent(table, int(use.number(attribute, axis)))
        return None if extent is None else Domain(extents=(extent,))

    return rule


def length_along(axis: int = 0, attribute: str = "") -> ValueRule:
    """Return the rule of lengths along an axis of the first input; 1 if the axis is unknown."""

    def rule(use: NodeUse) -> Domain:
        extent = use.extent(0, int(use.number(attribute, axis)))
        return ONE if extent is None else Domain(lengths=(extent,))

    return rule


def scattered_indices(use: NodeUse) -> Domain | None:
    """Return the indices along an axis that a scatter writes to: each element once."""
    axis = int(use.number("axis", 0))
    extent = use.extent(0, axis)
    return None if extent is None else Domain(extents=(extent,), distinct=axis)


def _known_shape(use: NodeUse) -> tuple[Extent, ...]:
    """Return the shape of the first input; empty if a part of it is unknown."""
    shape = use.shape(0) or ()
    known = tuple(extent for extent in shape if extent is not None)
    return known if len(known) == len(shape) else ()


def scattered_tuples(use: NodeUse) -> Domain | None:
    """Return the index tuples that a scatter writes to: each element once; any if the shape is unknown."""
    shape = _known_shape(use)
    return Domain(tuples=shape) if shape else None


def index_tuples(use: NodeUse) -> Domain | None:
    """Return the index tuples of a gather behind its batch axes; any if the shape is unknown."""
    shape = _known_shape(use)
    return Domain(extents=shape[int(use.number("batch_dims", 0)) :]) if shape else None


def compared_with(other: int) -> ValueRule:
    """Return the rule of what is compared with a constant: of a table's numbers all occur.

    A scalar equals the number with which it is compared. A tensor compared with one number, such as the
    padding token, has no restriction. What is compared with positions is one of them.
    """

    def rule(use: NodeUse) -> Domain | None:
        extent = use.count(other)
        if extent is not None:
            return Domain(extents=(extent,))
        numbers = use.constant(other, _MOST_ROWS)
        if not all(one == int(one) for one in numbers if abs(one) < _WHOLE):
            return None
        if len(numbers) > 1:
            return Domain(low=min(numbers), high=max(numbers) + 1)
        scalar = use.shape(1 - other) in {(), (1,)}
        return Domain(pattern=numbers) if numbers and scalar else None

    return rule


def length_counted_by(other: int) -> ValueRule:
    """Return the rule of what is compared with positions along an axis: the lengths that end a mask."""

    def rule(use: NodeUse) -> Domain | None:
        extent = use.count(other)
        return None if extent is None else Domain(lengths=(extent,))

    return rule


def one_hot_indices(use: NodeUse) -> Domain | None:
    """Return indices below the depth if that is a constant, else 0 and 1."""
    depth = use.constant(1)
    return Domain(extents=(int(depth[0]),)) if len(depth) == 1 and depth[0] >= 1 else Domain(low=0, high=2)


def base_of_power(use: NodeUse) -> Domain | None:
    """Allow a negative base of a power if the exponent is known to be a whole number."""
    exponents = use.constant(1)
    if exponents and all(one == int(one) for one in exponents if abs(one) < _WHOLE):
        return DIVISOR if min(exponents) < 0 else None
    return POSITIVE


def cast_to(use: NodeUse) -> Domain | None:
    """Return what an unsigned integer holds of a cast to one."""
    return Domain(low=0.0, high=100.0) if int(use.number("to", 0)) in _UNSIGNED else None


def resize_factors(use: NodeUse) -> Domain:
    """Return factors of a resize: 1 for batch and channels, which most kernels do not resize."""
    shape = use.shape(0)
    rank = len(shape) if shape else 4
    return Domain(pattern=tuple(1.0 if axis < rank - 2 else 2.0 for axis in range(rank)))


_WHOLE = 2.0**31
_UNSIGNED = frozenset({2, 4, 12, 13, 21, 25})
"""``TensorProto.DataType`` of uint8, uint16, uint32, uint64, uint4 and uint2."""

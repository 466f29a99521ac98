"""What is known of columns while a graph is walked: whose values a tensor holds, and what meets them."""

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from harness.core.values.value import Array
from harness.corpus.model.protos import tensor_value
from harness.operators.value_domains import TableColumn

if TYPE_CHECKING:
    import onnx

MOST_COLUMNS = 4096
MOST_CHOICES = 31
"""Between so many thresholds of a column, or as many categories or rows, its values lie."""

_MOST_EDGES = 7
"""So many thresholds themselves are values, too: ``<`` in place of ``<=`` shows nowhere else."""

_LEAST_GAP = 1e-3
"""Of a number, to the next threshold: rounding to float16, 5e-4, does not cross it."""

_ALIKE = 2.0
"""Standard deviations within this factor of each other, and means so many of them apart, are alike."""


class HeldColumn(NamedTuple):
    """What a column holds: the values of an input's column, ``scale * value + shift`` of them.

    Attributes:
        column: Of the input; -1: any, because their number is open.
        filled: Whether NaN has been replaced.
        words: Whether each value is a word of the input's text.
    """

    name: str
    column: int
    scale: float = 1.0
    shift: float = 0.0
    filled: bool = False
    words: bool = False

    @property
    def as_given(self) -> bool:
        """Whether nothing scales the input's values before."""
        return (self.scale, self.shift) == (1.0, 0.0)

    def input_of(self, values: Array) -> Array:
        """Return the values of the input's column with which this one holds the given ones."""
        return np.asarray(self.scale * values + self.shift)

    def through(self, scale: float, shift: float) -> "HeldColumn":
        """Return what the column holds after an operator; ``scale * value + shift`` leads back over it."""
        return self._replace(scale=self.scale * scale, shift=self.scale * shift + self.shift)


HeldColumns = tuple[HeldColumn | None, ...]
"""The columns of a tensor; None for one of which nothing is known."""


class ColumnFacts:
    """What is known of one column of an input."""

    def __init__(self) -> None:
        self.thresholds: list[Array] = []
        self.edges: list[Array] = []
        self.choices: dict[float | str, None] = {}
        self.near: tuple[float, ...] = ()
        self.scaled = (0.0, 1.0)
        self.gaps, self.no_gaps = False, False
        self.words = False

    def column(self, *, text: bool) -> TableColumn | None:
        """Return the values of a column; None if nothing says which."""
        choices = tuple(one for one in self.choices if isinstance(one, str) is text)
        if self.thresholds and not text:
            choices += _between(np.concatenate(self.thresholds))
            choices += _evenly_chosen(np.unique(np.concatenate([*self.edges, np.array([])])), _MOST_EDGES)
        known = choices or self.near or _is_another_scale(*self.scaled)
        if not known or (text and not choices):
            return None
        centre, spread = self.scaled
        return TableColumn(
            choices=choices,
            near=() if choices else self.near,
            centre=centre,
            spread=spread,
            gaps=self.gaps and not self.no_gaps and not text,
            words=self.words,
        )


class TablesSeen:
    """Facts about the inputs that may be tables, and the constants that they meet."""

    def __init__(self, graph: "onnx.GraphProto") -> None:
        self.constants = {one.name: one for one in graph.initializer}
        self.texts: dict[str, bool] = {}
        """Name of an input -> whether it holds texts."""
        self.widths: dict[str, int] = {}
        """Name of an input -> its columns; 0 if their number is open."""
        self.facts: defaultdict[tuple[str, int], ColumnFacts] = defaultdict(ColumnFacts)

    def of(self, held: HeldColumn) -> ColumnFacts:
        """Return what is known of the input's column whose values a column holds."""
        return self.facts[held.name, held.column]

    def constant(self, node: "onnx.NodeProto", index: int) -> Array | None:
        """Return an input of a node if it is a constant with its data in the model."""
        proto = self.constants.get(node.input[index]) if index < len(node.input) else None
        if proto is None or proto.data_location == proto.EXTERNAL:
            return None
        return tensor_value(proto).array

    def wide(self, table: HeldColumns, width: int) -> HeldColumns:
        """Return as many columns as an operator shows, if their number was open."""
        only = table[0] if len(table) == 1 else None
        if only is not None and only.column == -1 and 1 < width <= MOST_COLUMNS:
            return tuple(only._replace(column=at) for at in range(width))
        return table


def _is_another_scale(centre: float, spread: float) -> bool:
    """Return whether standard normal numbers would be far from a scale; a network may add a small bias."""
    return not (1 / _ALIKE <= spread <= _ALIKE and abs(centre) <= _ALIKE * spread)


def _between(thresholds: Array) -> tuple[float, ...]:
    """Return numbers between thresholds, and one on either side of all."""
    sorted_ = np.unique(thresholds)
    span = float(sorted_[-1] - sorted_[0]) or max(abs(float(sorted_[0])), 1.0)
    middles = (sorted_[1:] + sorted_[:-1]) / 2
    clear = middles[np.diff(sorted_) / 2 > _LEAST_GAP * np.abs(middles)]
    outside = (float(sorted_[0]) - span / 8, float(sorted_[-1]) + span / 8)
    return (*outside, *_evenly_chosen(clear, MOST_CHOICES))


def _evenly_chosen(values: Array, most: int) -> tuple[float, ...]:
    """Return at most so many of sorted values, evenly chosen."""
    return tuple(float(values[at]) for at in even_places(len(values), most))


def even_places(count: int, most: int) -> list[int]:
    """Return at most so many places below ``count``, evenly chosen, the first and the last among them."""
    return [int(at) for at in np.linspace(0, count - 1, min(count, most))] if count else []

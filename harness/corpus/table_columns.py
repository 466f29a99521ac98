"""Which values the columns of a table take: by what a model of classic machine learning compares them with.

Such a model is trained on a table whose columns have ranges of their own: centimetres, dollars, towns.
Numbers around zero, and words that it has never seen, lead every row to the same leaf, where most wrong
answers are the right one. The graph tells the ranges: by the thresholds of trees, the support vectors, the
rows that it keeps, the scale of each column, the categories.

Values are followed from the inputs through what moves or scales columns. Only the outermost graph is read:
the converters of scikit-learn, XGBoost, LightGBM and CatBoost write no functions.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from harness.core.value import Array
from harness.corpus.nodes import domain_of
from harness.corpus.port import model_text
from harness.corpus.protos import listed, tensor_value
from harness.corpus.work.size import attribute
from harness.operators.book import rules_of
from harness.operators.value_domains import Domain, TableColumn

if TYPE_CHECKING:
    import onnx

_MOST_COLUMNS = 4096
_MOST_CHOICES = 31
"""Between so many thresholds of a column, or as many categories or rows, its values lie."""

_MOST_EDGES = 7
"""So many thresholds themselves are values, too: ``<`` in place of ``<=`` shows nowhere else."""

_LEAST_GAP = 1e-3
"""Of a number, to the next threshold: rounding to float16, 5e-4, does not cross it."""

_ALIKE = 2.0
"""Standard deviations within this factor of each other, and means so many of them apart, are alike."""

_LEAST_ROWS = 4
"""Of a constant matrix that is compared with the rows of a table."""

_STRING, _BOOL = 8, 9
"""``TensorProto.DataType``."""


class _Cell(NamedTuple):
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
        return (self.scale, self.shift) == (1.0, 0.0)

    def input_of(self, values: Array) -> Array:
        return np.asarray(self.scale * values + self.shift)

    def through(self, scale: float, shift: float) -> "_Cell":
        """Return what the column holds after an operator; ``scale * value + shift`` leads back over it."""
        return self._replace(scale=self.scale * scale, shift=self.scale * shift + self.shift)


_Table = tuple[_Cell | None, ...]
"""The columns of a tensor; None for one of which nothing is known."""


class _Found:
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
            choices += _some(np.unique(np.concatenate([*self.edges, np.array([])])), _MOST_EDGES)
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


def with_table_columns(domains: Mapping[str, Domain], model: "onnx.ModelProto") -> dict[str, Domain]:
    """Return the values that inputs may hold, those of the columns of tables included."""
    found = dict(domains)
    for name, columns in _columns_of(model).items():
        found[name] = found.get(name, Domain()).within(Domain(columns=columns))
    return found


def _columns_of(model: "onnx.ModelProto") -> dict[str, tuple[TableColumn, ...]]:
    walk = _Walk(model)
    with np.errstate(all="ignore"):
        walk.nodes()
    found: dict[str, tuple[TableColumn, ...]] = {}
    for name, text in walk.texts.items():
        seen = {at: one for (of, at), one in walk.found.items() if of == name}
        columns = {at: column for at, one in seen.items() if (column := one.column(text=text))}
        width = 1 + max(walk.widths[name] - 1, *columns) if columns else 0
        if columns:
            other = columns.get(-1, TableColumn())
            found[model_text(name)] = tuple(columns.get(at, other) for at in range(width)) or (other,)
    return found


class _Walk:
    def __init__(self, model: "onnx.ModelProto") -> None:
        graph = model.graph
        self.constants = {one.name: one for one in graph.initializer}
        self.texts: dict[str, bool] = {}
        self.widths: dict[str, int] = {}
        """Name of an input -> its columns; 0 if their number is open."""
        self.found: defaultdict[tuple[str, int], _Found] = defaultdict(_Found)
        self._graph = graph
        self._tables: dict[str, _Table] = {}
        for port in graph.input:
            width = None if port.name in self.constants else _width(port)
            if width is not None:
                self.texts[port.name] = port.type.tensor_type.elem_type == _STRING
                self.widths[port.name] = width
                self._tables[port.name] = tuple(_Cell(port.name, at) for at in range(width)) or (
                    _Cell(port.name, -1),
                )

    def nodes(self) -> None:
        """Follow the columns through the nodes of the outermost graph."""
        for node in self._graph.node:
            if node.op_type == "Constant":
                self.constants.update((node.output[0], one.t) for one in node.attribute if one.HasField("t"))
            given = [self._tables.get(name, ()) for name in node.input]
            if not any(given):
                continue
            rule = _COLUMNS.get(node.op_type)
            known = rule is not None and domain_of(node) in _DOMAINS
            made: Sequence[_Cell | None] = rule(self, node, given) if known and rule is not None else ()
            if made and node.output and len(made) <= _MOST_COLUMNS:
                self._tables[node.output[0]] = tuple(made)
            if rule not in _PASS_GAPS or not made:
                for cell in (one for table in given for one in table if one and not one.filled):
                    self.of(cell).no_gaps = True

    def of(self, cell: _Cell) -> _Found:
        """Return what is known of the column that a cell holds."""
        return self.found[cell.name, cell.column]

    def constant(self, node: "onnx.NodeProto", index: int) -> Array | None:
        """Return an input of a node if it is a constant with its data in the model."""
        proto = self.constants.get(node.input[index]) if index < len(node.input) else None
        if proto is None or proto.data_location == proto.EXTERNAL:
            return None
        return tensor_value(proto).array

    def wide(self, table: _Table, width: int) -> _Table:
        """Return as many columns as an operator shows, if their number was open."""
        if len(table) == 1 and table[0] is not None and table[0].column == -1 and width > 1:
            return tuple(table[0]._replace(column=at) for at in range(width))
        return table


_Rule = Callable[[_Walk, "onnx.NodeProto", Sequence[_Table]], Sequence[_Cell | None]]


def _width(port: "onnx.ValueInfoProto") -> int | None:
    """Return the number of columns of an input that may be a table, 0 if it is open; None for others."""
    if not port.type.tensor_type.HasField("shape"):
        return None
    dims = port.type.tensor_type.shape.dim
    if len(dims) == 1:
        return 1
    if len(dims) != 2:  # noqa: PLR2004 - rows and columns
        return None
    width = int(dims[1].dim_value)
    return width if 0 <= width <= _MOST_COLUMNS else None


def _keeps(_walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    text_or_flag = node.op_type == "Cast" and int(attribute(node, "to", 0)) in {_STRING, _BOOL}
    return () if text_or_flag else given[0]


def _reshapes(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    """One column stays one, and several stay what they are where the last axis keeps its length."""
    table = given[0]
    if len(table) == 1:
        return table
    shape = walk.constant(node, 1) if node.op_type == "Reshape" else None
    if shape is None or shape.size != 2:  # noqa: PLR2004 - rows and columns
        return ()
    first, last = shape.tolist()
    return table if last == len(table) or (first, last) == (0, -1) else ()


def _imputed(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    if not math.isnan(attribute(node, "replaced_value_float", 0.0)):
        return given[0]
    for cell in (one for one in given[0] if one is not None):
        walk.of(cell).gaps = True
    return [one and one._replace(filled=True) for one in given[0]]


def _joins(_walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    if not all(given) or (node.op_type == "Concat" and attribute(node, "axis", 0) not in {1, -1}):
        return ()
    return [cell for table in given for cell in table]


def _selects(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    places = walk.constant(node, 1)
    if places is None or (node.op_type == "Gather" and attribute(node, "axis", 0) not in {1, -1}):
        return ()
    chosen = [int(one) for one in places.reshape(-1)]
    table = walk.wide(given[0], 1 + max(chosen, default=0))
    return [table[at] for at in chosen] if all(at < len(table) for at in chosen) else ()


def _scaled(walk: _Walk, table: _Table, scale: Array, shift: Array) -> Sequence[_Cell | None]:
    """Return a table after an operator over which ``scale * value + shift`` leads back."""
    made = []
    for cell, one, other in zip(table, scale.tolist(), shift.tolist(), strict=True):
        held = cell and cell.through(one, other)
        if held is not None:
            if not (math.isfinite(held.scale) and math.isfinite(held.shift) and held.scale):
                held = None
            else:
                walk.of(held).scaled = held.shift, abs(held.scale)
        made.append(held)
    return made


def _scaler(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    scale, offset = (
        np.asarray(listed(node, name) or [default], dtype=np.float64)
        for name, default in (("scale", 1.0), ("offset", 0.0))
    )
    table = walk.wide(given[0], max(scale.size, offset.size))
    return _scaled(walk, table, *np.broadcast_arrays(1 / scale, offset, np.zeros(len(table)))[:2])


def _affine(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    """A number for each column is added, subtracted, multiplied or divided by."""
    first = bool(given[0])
    table, constant = given[0] or given[1], walk.constant(node, 1 if first else 0)
    if len(table) < 2 or constant is None or constant.size != len(table) or constant.shape[-1] != len(table):  # noqa: PLR2004
        return ()
    row = constant.reshape(-1).astype(np.float64)
    ones, zeros = np.ones_like(row), np.zeros_like(row)
    back = {
        "Add": (ones, -row),
        "Sub": (ones if first else -ones, row),
        "Mul": (1 / row, zeros),
        "Div": (row, zeros) if first else (zeros, zeros),  # a column as a divisor is not followed
    }
    return _scaled(walk, table, *back[node.op_type])


def _trees(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    features = np.asarray(listed(node, "nodes_featureids"), dtype=np.int64)
    values = np.asarray(
        listed(node, "nodes_splits", "nodes_values", "nodes_values_as_tensor"), dtype=np.float64
    )
    modes = listed(node, "nodes_modes")
    gaps = np.asarray(listed(node, "nodes_missing_value_tracks_true") or [0] * len(features), dtype=bool)
    inner = np.array([mode != "LEAF" for mode in modes], dtype=bool)
    equal = np.array([mode in _EQUAL_MODES for mode in modes], dtype=bool)
    members = np.asarray(listed(node, "membership_values"), dtype=np.float64)
    table = walk.wide(given[0], int(features.max(initial=0)) + 1)
    for at, cell in enumerate(table):
        here = inner & (features == at) if cell is None or cell.column >= 0 else inner
        if cell is None or not here.any():
            continue
        found = walk.of(cell)
        limits = cell.input_of(values[here & ~equal & np.isfinite(values)])
        found.thresholds.append(limits)
        if cell.as_given:
            found.edges.append(limits)
        same = [*values[here & equal], *members[np.isfinite(members)]]
        found.choices |= dict.fromkeys(cell.input_of(np.array(same)).tolist())
        if gaps[here].any():
            found.gaps = True
        elif not cell.filled:
            found.no_gaps = True
    return (None,)


def _support_vectors(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    count = int(sum(listed(node, "vectors_per_class")) or attribute(node, "n_supports", 0))
    vectors = np.asarray(listed(node, "support_vectors"), dtype=np.float64)
    if count and vectors.size % count == 0 and vectors.size:
        _near_rows(walk, given[0], vectors.reshape(count, -1))
    return ()


def _rows(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    for index in range(len(node.input)):
        matrix = walk.constant(node, index)
        if matrix is not None and matrix.ndim == 2 and len(matrix) >= _LEAST_ROWS:  # noqa: PLR2004
            for table in given:
                _near_rows(walk, table, matrix)
    return ()


def _near_rows(walk: _Walk, table: _Table, rows: Array) -> None:
    table = walk.wide(table, rows.shape[1])
    if len(table) != rows.shape[1] or len(table) < 2:  # noqa: PLR2004 - one column is no row
        return
    chosen = rows[np.linspace(0, len(rows) - 1, min(len(rows), _MOST_CHOICES)).astype(int)]
    for cell, values in zip(table, chosen.T.astype(np.float64), strict=True):
        if cell is not None and np.isfinite(values).all():
            walk.of(cell).near = tuple(cell.input_of(values).tolist())


def _takes(
    walk: _Walk, table: _Table, choices: Sequence[Any], *, most: int = _MOST_CHOICES
) -> Sequence[_Cell | None]:
    """Note that the columns hold some of these."""
    places = np.linspace(0, len(choices) - 1, min(len(choices), most)).astype(int) if choices else ()
    for cell in (one for one in table if one is not None):
        for at in places:
            one = choices[at]
            value = one if isinstance(one, str) else float(cell.input_of(np.asarray(float(one))))
            if isinstance(value, str) or math.isfinite(value):
                walk.of(cell).choices[value] = None
        walk.of(cell).words |= cell.words
    return (None,) * len(table)


def _categories(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    names = listed(node, "cats_strings", "cats_int64s")
    _takes(walk, given[0], names)
    return (None,) * len(names) if len(given[0]) == 1 else ()


def _keys(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    text = any(cell is not None and walk.texts[cell.name] for cell in given[0])
    names = ("keys_strings", "keys_int64s", "keys_floats", "keys_tensor")
    if node.op_type == "CategoryMapper":
        names = ("cats_strings",) if text else ("cats_int64s",)  # type: ignore[assignment]
    return _takes(walk, given[0], listed(node, *names))


def _words(walk: _Walk, node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    _takes(walk, given[0], listed(node, "pool_strings", "pool_int64s"))
    return ()


def _tokens(_walk: _Walk, _node: "onnx.NodeProto", given: Sequence[_Table]) -> Sequence[_Cell | None]:
    return [cell and cell._replace(words=True) for cell in given[0]] if len(given[0]) == 1 else ()


_DOMAINS = frozenset({"", "ai.onnx.ml", "com.microsoft"})
_EQUAL_MODES = ("BRANCH_EQ", 4)
"""As a text, and in TreeEnsemble's ``nodes_modes``."""

_RULES: dict[str, _Rule] = {
    "affine": _affine,
    "categories": _categories,
    "imputes": _imputed,
    "joins": _joins,
    "keeps": _keeps,
    "keys": _keys,
    "reshapes": _reshapes,
    "rows": _rows,
    "scaler": _scaler,
    "selects": _selects,
    "support_vectors": _support_vectors,
    "tokens": _tokens,
    "trees": _trees,
    "words": _words,
}
_COLUMNS = rules_of(lambda row: row.columns, _RULES)
"""Operator -> its rule in the book."""

_PASS_GAPS: frozenset[_Rule | None] = frozenset({_imputed, _joins, _keeps, _reshapes, _selects, _trees})
"""Rules that say themselves what becomes of NaN."""


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
    return (*outside, *_some(clear, _MOST_CHOICES))


def _some(values: Array, most: int) -> tuple[float, ...]:
    """Return at most so many of sorted values, evenly chosen."""
    places = np.linspace(0, len(values) - 1, min(len(values), most)).astype(int) if len(values) else ()
    return tuple(float(values[at]) for at in places)

"""What operators do with the columns of a table: one function for each rule of the book of operators.

A rule notes what it says about the inputs' columns, and returns what the columns of its first result hold;
nothing if that is not known.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from harness.core.values.value import STRING, Array
from harness.corpus.inputs.tables.held_columns import (
    MOST_CHOICES,
    HeldColumn,
    HeldColumns,
    TablesSeen,
    even_places,
)
from harness.corpus.model.element_types import NUMBERS
from harness.corpus.model.protos import listed
from harness.corpus.work.size import attribute
from harness.operators.book import rules_of

if TYPE_CHECKING:
    import onnx

_LEAST_ROWS = 4
"""Of a constant matrix that is compared with the rows of a table."""

_NO_NUMBERS = frozenset({NUMBERS[STRING], NUMBERS["bool"]})

_Made = Sequence[HeldColumn | None]
ColumnRule = Callable[[TablesSeen, "onnx.NodeProto", Sequence[HeldColumns]], _Made]


def _keeps(_seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    return () if node.op_type == "Cast" and attribute(node, "to", 0) in _NO_NUMBERS else given[0]


def _reshapes(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    """Keep one column; of several, all if the last axis keeps its length, else none."""
    table = given[0]
    if len(table) == 1:
        return table
    shape = seen.constant(node, 1) if node.op_type == "Reshape" else None
    if shape is None or shape.size != 2:  # noqa: PLR2004 - rows and columns
        return ()
    first, last = shape.tolist()
    return table if last == len(table) or (first, last) == (0, -1) else ()


def _imputed(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    if not math.isnan(attribute(node, "replaced_value_float", 0.0)):
        return given[0]
    for held in (one for one in given[0] if one is not None):
        seen.of(held).gaps = True
    return [one and one._replace(filled=True) for one in given[0]]


def _joins(_seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    if not all(given) or (node.op_type == "Concat" and attribute(node, "axis", 0) not in {1, -1}):
        return ()
    return [held for table in given for held in table]


def _selects(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    places = seen.constant(node, 1)
    if places is None or (node.op_type == "Gather" and attribute(node, "axis", 0) not in {1, -1}):
        return ()
    chosen = [int(one) for one in places.reshape(-1)]
    table = seen.wide(given[0], 1 + max(chosen, default=0))
    return [table[at] for at in chosen] if all(at < len(table) for at in chosen) else ()


def _scaled(seen: TablesSeen, table: HeldColumns, scale: Array, shift: Array) -> _Made:
    """Return a table after an operator over which ``scale * value + shift`` leads back."""
    made: list[HeldColumn | None] = []
    for before, one, other in zip(table, scale.tolist(), shift.tolist(), strict=True):
        held = before and before.through(one, other)
        if held is None or not (math.isfinite(held.scale) and math.isfinite(held.shift) and held.scale):
            made.append(None)
            continue
        seen.of(held).scaled = held.shift, abs(held.scale)
        made.append(held)
    return made


def _scaler(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    scale, offset = (
        np.asarray(listed(node, name) or [default], dtype=np.float64)
        for name, default in (("scale", 1.0), ("offset", 0.0))
    )
    table = seen.wide(given[0], max(scale.size, offset.size))
    return _scaled(seen, table, *np.broadcast_arrays(1 / scale, offset, np.zeros(len(table)))[:2])


def _affine(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    """Lead back over a number for each column that is added, subtracted, multiplied or divided by."""
    first = bool(given[0])
    table, constant = given[0] or given[1], seen.constant(node, 1 if first else 0)
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
    return _scaled(seen, table, *back[node.op_type])


def _trees(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    features = np.asarray(listed(node, "nodes_featureids"), dtype=np.int64)
    values = np.asarray(
        listed(node, "nodes_splits", "nodes_values", "nodes_values_as_tensor"), dtype=np.float64
    )
    modes = listed(node, "nodes_modes")
    gaps = np.asarray(listed(node, "nodes_missing_value_tracks_true") or [0] * len(features), dtype=bool)
    inner = np.array([mode != "LEAF" for mode in modes], dtype=bool)
    equal = np.array([mode in _EQUAL_MODES for mode in modes], dtype=bool)
    members = np.asarray(listed(node, "membership_values"), dtype=np.float64)
    table = seen.wide(given[0], int(features.max(initial=0)) + 1)
    for at, held in enumerate(table):
        here = inner & (features == at) if held is None or held.column >= 0 else inner
        if held is None or not here.any():
            continue
        found = seen.of(held)
        limits = held.input_of(values[here & ~equal & np.isfinite(values)])
        found.thresholds.append(limits)
        if held.as_given:
            found.edges.append(limits)
        same = [*values[here & equal], *members[np.isfinite(members)]]
        found.choices |= dict.fromkeys(held.input_of(np.array(same)).tolist())
        if gaps[here].any():
            found.gaps = True
        elif not held.filled:
            found.no_gaps = True
    return (None,)


def _support_vectors(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    count = int(sum(listed(node, "vectors_per_class")) or attribute(node, "n_supports", 0))
    vectors = np.asarray(listed(node, "support_vectors"), dtype=np.float64)
    if count and vectors.size % count == 0 and vectors.size:
        _near_rows(seen, given[0], vectors.reshape(count, -1))
    return ()


def _rows(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    for index in range(len(node.input)):
        matrix = seen.constant(node, index)
        if matrix is not None and matrix.ndim == 2 and len(matrix) >= _LEAST_ROWS:  # noqa: PLR2004
            for table in given:
                _near_rows(seen, table, matrix)
    return ()


def _near_rows(seen: TablesSeen, table: HeldColumns, rows: Array) -> None:
    table = seen.wide(table, rows.shape[1])
    if len(table) != rows.shape[1] or len(table) < 2:  # noqa: PLR2004 - one column is no row
        return
    chosen = rows[even_places(len(rows), MOST_CHOICES)]
    for held, values in zip(table, chosen.T.astype(np.float64), strict=True):
        if held is not None and np.isfinite(values).all():
            seen.of(held).near = tuple(held.input_of(values).tolist())


def _takes(seen: TablesSeen, table: HeldColumns, choices: Sequence[Any]) -> _Made:
    """Note that the columns hold some of these."""
    for held in (one for one in table if one is not None):
        for at in even_places(len(choices), MOST_CHOICES):
            one = choices[at]
            value = one if isinstance(one, str) else float(held.input_of(np.asarray(float(one))))
            if isinstance(value, str) or math.isfinite(value):
                seen.of(held).choices[value] = None
        seen.of(held).words |= held.words
    return (None,) * len(table)


def _categories(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    names = listed(node, "cats_strings", "cats_int64s")
    _takes(seen, given[0], names)
    return (None,) * len(names) if len(given[0]) == 1 else ()


def _keys(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    text = any(held is not None and seen.texts[held.name] for held in given[0])
    names = ("keys_strings", "keys_int64s", "keys_floats", "keys_tensor")
    if node.op_type == "CategoryMapper":
        names = ("cats_strings",) if text else ("cats_int64s",)  # type: ignore[assignment]
    return _takes(seen, given[0], listed(node, *names))


def _words(seen: TablesSeen, node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    _takes(seen, given[0], listed(node, "pool_strings", "pool_int64s"))
    return ()


def _tokens(_seen: TablesSeen, _node: "onnx.NodeProto", given: Sequence[HeldColumns]) -> _Made:
    return [held and held._replace(words=True) for held in given[0]] if len(given[0]) == 1 else ()


_EQUAL_MODES = ("BRANCH_EQ", 4)
"""As a text, and in TreeEnsemble's ``nodes_modes``."""

_RULES: dict[str, ColumnRule] = {
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
COLUMN_RULES = rules_of(lambda row: row.columns, _RULES)
"""Operator -> its rule in the book."""

PASS_GAPS: frozenset[ColumnRule | None] = frozenset({_imputed, _joins, _keeps, _reshapes, _selects, _trees})
"""Rules that say themselves what becomes of NaN."""

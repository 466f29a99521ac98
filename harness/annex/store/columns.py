"""The columns of the store as arrays of the database."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from harness.report.formats.cell_columns import Kind, view_columns


class ViewColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a view: its name, its SQL type, and its meaning."""

    name: str
    kind: str
    meaning: str


RECORD_COLUMNS = tuple(view_columns())
"""Every column of a record, in the order of the view ``records``."""


def to_array(kind: Kind, values: Sequence[object]) -> "np.ndarray[Any, Any]":
    """Return values as the array that the database reads: texts as objects, figures with NaN for null."""
    if kind in {"DOUBLE", "BIGINT"}:
        try:
            return np.array(values, dtype=np.float64)
        except OverflowError:  # an integer of a record may be of any size
            return np.array([_figure(value) for value in values], dtype=np.float64)
    if kind == "BOOLEAN":
        return np.array(values, dtype=np.bool_)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def from_array(name: str, kind: Kind, table: str = "") -> str:
    """Return the SQL expression that turns a column of such arrays into its type."""
    # A time or count that is out of range becomes null.
    if kind in {"BIGINT", "TIMESTAMP"}:
        return f"TRY_CAST({table}{name} AS {kind}) AS {name}"
    return f"{table}{name}"


def _figure(value: Any) -> float:
    try:
        return math.nan if value is None else float(value)
    except OverflowError:
        return math.nan

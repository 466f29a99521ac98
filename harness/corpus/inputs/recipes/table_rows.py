"""Rows of a table whose columns have values of their own; see ``harness.corpus.inputs.tables``."""

import math

import numpy as np

from harness.core.values.value import Array
from harness.corpus.inputs.contents import TableRows
from harness.operators.value_domains import TableColumn

_AWAY = 0.1
"""Of the standard deviation of the numbers near which a value lies: so far it is from one of them."""

_MOST_NEAR = 1 << 16
"""A column has fewer numbers near which its values lie."""

_GAPS = 8
"""One in so many values is missing."""

_WORDS = 6
"""In a text."""


def rows_of_numbers(table: TableRows, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return rows as float64: the last axis of a shape goes along the columns."""
    rows, columns = _columns(table, shape)
    places = random.integers(0, _MOST_NEAR, rows)
    drawn = np.empty((rows, len(columns)))
    for at, column in enumerate(columns):
        if column.choices:
            choices = np.array(column.choices, dtype=np.float64)
            values = choices[_in_turn(random, rows, len(choices))]
        elif column.near:
            near = np.array(column.near)
            values = near[places % len(near)] + _AWAY * near.std() * random.standard_normal(rows)
        else:
            values = column.centre + column.spread * random.standard_normal(rows)
        if column.gaps:
            values = np.where(random.integers(0, _GAPS, rows) == 0, np.nan, values)
        drawn[:, at] = values
    return drawn.clip(table.low, table.high).reshape(shape)


def rows_of_texts(table: TableRows, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    """Return rows of texts; a column without choices is empty."""
    rows, columns = _columns(table, shape)
    drawn = np.full((rows, len(columns)), "", dtype=object)
    for at, column in enumerate(columns):
        if column.choices:
            parts = [
                [column.choices[place] for place in _in_turn(random, rows, len(column.choices))]
                for _ in range(_WORDS if column.words else 1)
            ]
            drawn[:, at] = [" ".join(map(str, one)) for one in zip(*parts, strict=True)]
    return drawn.reshape(shape)


def _columns(table: TableRows, shape: tuple[int, ...]) -> tuple[int, tuple[TableColumn, ...]]:
    """Return the number of rows and the columns of a shape; what is not known of them is normal."""
    width = shape[-1] if len(shape) > 1 else 1
    columns = table.columns if len(table.columns) > 1 else table.columns * width
    columns = (*columns[:width], *[TableColumn()] * (width - len(columns)))
    return math.prod(shape) // width if width else 0, columns


def _in_turn(random: np.random.Generator, rows: int, count: int) -> Array:
    """Return a place below ``count`` for each row: all of them occur where there are rows enough."""
    return np.asarray(random.permutation(np.resize(random.permutation(count), rows)))

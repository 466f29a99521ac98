"""The rows of all operators, and tables of one fact of them, computed once."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeVar

from harness.operators.families import (
    attention_rows,
    contrib_rows,
    control_flow_rows,
    elementwise_rows,
    image_rows,
    indexing_rows,
    ml_rows,
    normalization_rows,
    product_rows,
    quantization_rows,
    random_rows,
    recurrent_rows,
    reduction_rows,
    sequence_rows,
    shape_rows,
    signal_rows,
    text_rows,
    training_rows,
)
from harness.operators.row import BookRow

FAMILIES: Mapping[str, tuple[BookRow, ...]] = MappingProxyType(
    {
        family.__name__.rpartition(".")[2].removesuffix("_rows"): family.ROWS
        for family in (
            elementwise_rows,
            reduction_rows,
            product_rows,
            image_rows,
            normalization_rows,
            indexing_rows,
            shape_rows,
            control_flow_rows,
            sequence_rows,
            text_rows,
            signal_rows,
            random_rows,
            quantization_rows,
            recurrent_rows,
            attention_rows,
            training_rows,
            ml_rows,
            contrib_rows,
        )
    }
)
"""Family -> its rows; each is a module of ``harness/operators/families``."""

ROWS: tuple[BookRow, ...] = tuple(row for rows in FAMILIES.values() for row in rows)

_BY_NAME: Mapping[str, BookRow] = {name: row for row in ROWS for name in row.names}

_NAMES = frozenset(row.name for row in ROWS)

_Value = TypeVar("_Value")
_EMPTY = (None, "", ())
"""What a field holds of which there is nothing to say. 0 is an input."""


def find_operator(name: str) -> BookRow | None:
    """Return the row of an operator; a domain other than ONNX's own comes first: ``com.microsoft.Gelu``."""
    return _BY_NAME.get(name)


def rounds_by_default(name: str) -> bool:
    """Return whether nothing is known about how an operator rounds, named as for ``find_operator``.

    An operator of another domain that has the name of a known one rounds as that does.
    """
    return name.rpartition(".")[2] not in _NAMES


def operators_with(fact: Callable[[BookRow], object]) -> frozenset[str]:
    """Return the operators of which a fact is true, by their names without a domain."""
    return frozenset(row.name for row in ROWS if fact(row))


def operators_by(fact: Callable[[BookRow], _Value | None]) -> Mapping[str, _Value]:
    """Return operator -> a fact, by names without a domain; those of which it is empty are left out.

    Operators of one name in several domains agree about each fact that they have; a test demands it.
    """
    values = ((row.name, fact(row)) for row in ROWS)
    return MappingProxyType({name: value for name, value in values if value not in _EMPTY})


def rules_of(fact: Callable[[BookRow], str], rules: Mapping[str, _Value]) -> Mapping[str, _Value]:
    """Return operator -> what the rule stands for that a fact names.

    Raises:
        KeyError: A row names a rule that is not there.
    """
    return MappingProxyType({name: rules[rule] for name, rule in operators_by(fact).items()})

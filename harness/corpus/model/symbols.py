"""Symbolic dimensions: names in place of sizes, and sums and products of them.

Exporters write a dependent size as an expression: ``past_sequence_length + 1``.
"""

import math
import re
from collections.abc import Iterable, Mapping

AXIS = "axis "
"""How the names of unnamed dimensions begin."""

_NAME = re.compile(r"[A-Za-z_]\w*")


def axis_name(axis: int) -> str:
    """Return the name of an unnamed dimension: the same axis of all inputs has one size."""
    return f"{AXIS}{axis}"


def computed(symbol: str, sizes: Mapping[str, int]) -> int | None:
    """Return the size of a symbol that is a sum of products of others, such as ``past + 2*batch``.

    Returns:
        Return None for a symbol that is no expression, or that contains one without a size.
    """
    terms = _terms(symbol)
    if terms is None:
        return None
    try:
        return sum(
            math.prod(int(one) if one.isdecimal() else sizes[one] for one in factors) for factors in terms
        )
    except KeyError:
        return None


def free_symbols(symbols: Iterable[str | None]) -> tuple[str, ...]:
    """Return the symbols that have their own size: the names, including those in expressions."""
    found: dict[str, None] = {}
    for symbol in symbols:
        if symbol:
            factors = (factor for term in _terms(symbol) or [[symbol]] for factor in term)
            found.update(dict.fromkeys(factor for factor in factors if not factor.isdecimal()))
    return tuple(found)


def _terms(symbol: str) -> list[list[str]] | None:
    """Return the factors of each term; None if the text is no expression."""
    terms = [[factor.strip() for factor in term.split("*")] for term in symbol.split("+")]
    factors = [factor for term in terms for factor in term]
    simple = len(factors) > 1 and all(_NAME.fullmatch(one) or one.isdecimal() for one in factors)
    return terms if simple else None

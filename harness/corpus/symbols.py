"""Symbolic dimensions: names that stand in place of sizes, and sums and products of them.

Exporters spell a size that follows from others as an expression: ``past_sequence_length + 1``.
"""

import re
from collections.abc import Iterable, Mapping

_NAME = re.compile(r"[A-Za-z_]\w*")


def computed(symbol: str, sizes: Mapping[str, int]) -> int | None:
    """The size of a symbol that is spelled as a sum of products of others.

    Args:
        symbol: Such as ``past + sequence`` or ``2*batch``.
        sizes: Sizes of symbols by name.

    Returns:
        None for a symbol that is no expression, or one of a symbol without a size.
    """
    terms = _terms(symbol)
    if terms is None:
        return None
    total = 0
    for term in terms:
        product = 1
        for factor in term:
            if not factor.isdecimal() and factor not in sizes:
                return None
            product *= int(factor) if factor.isdecimal() else sizes[factor]
        total += product
    return total


def free_symbols(symbols: Iterable[str | None]) -> tuple[str, ...]:
    """The symbols that have a size of their own: the names, those within expressions included."""
    found: dict[str, None] = {}
    for symbol in symbols:
        if symbol:
            factors = (factor for term in _terms(symbol) or [[symbol]] for factor in term)
            found.update(dict.fromkeys(factor for factor in factors if not factor.isdecimal()))
    return tuple(found)


def _terms(symbol: str) -> list[list[str]] | None:
    """The factors of each term; None where the text is no expression, but a name or anything else."""
    terms = [[factor.strip() for factor in term.split("*")] for term in symbol.split("+")]
    factors = [factor for term in terms for factor in term]
    simple = len(factors) > 1 and all(_NAME.fullmatch(one) or one.isdecimal() for one in factors)
    return terms if simple else None

"""Rows of the book in words."""

from collections.abc import Mapping
from typing import Any

from harness.operators.book import FAMILIES
from harness.operators.row import BookRow
from harness.operators.value_domains import Domain

FAMILY_OF: Mapping[str, str] = {
    name: family for family, rows in FAMILIES.items() for row in rows for name in row.names
}
"""Operator with its domain -> its family."""


def facts_in_words(row: BookRow) -> dict[str, str]:
    """Return what is special about an operator: fact -> its value; empty if it only holds."""
    return {fact: _words(value) for fact, value in row.special().items()}


def _words(value: Any) -> str:
    if value is True:
        return ""
    if isinstance(value, str):
        return value if value.startswith("np.") else value.replace("_", " ")
    if isinstance(value, float | int):
        return f"{value:g}"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return ", ".join(f"input {index}: {_rule(rule)}" for index, rule in value.items())


def _rule(rule: Any) -> str:
    """Return a domain as its bounds, and a function by its name."""
    if not isinstance(rule, Domain):
        return str(rule.__qualname__).partition(".")[0].replace("_", " ")
    if rule.pattern:
        numbers = " ".join(f"{number:g}" for number in rule.pattern)
        return f"the values {numbers}"
    low, high = rule.low, rule.high
    if low is not None and high is not None:
        return f"{low:g} to {high:g}"
    if low is not None:
        return f"{low:g} or more"
    if high is not None:
        return f"below {high:g}"
    return f"{rule.away:g} or more in magnitude"

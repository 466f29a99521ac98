"""Ranges of versions, such as ``>=1.31,<1.33``: a text of comparisons, all of which must hold."""

import operator
import re
from collections.abc import Callable
from typing import Any

import msgspec

_CLAUSE = re.compile(r"(>=|<=|==|!=|>|<)\s*(\d+(?:\.\d+)*)(\.\*)?")
_NUMBERS = tuple(map(re.compile, (r"(?<![\w.])\d+(?:\.\d+)+", r"\d+(?:\.\d+)+", r"\d+")))
"""Where a version stands in a text, by preference: NVIDIA's text has ``x86_64`` before it."""

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
EXAMPLE = ">=1.31,<1.33"


class _Clause(msgspec.Struct, frozen=True):
    """One comparison; ``by_prefix`` for a version that ends in ``.*``."""

    comparison: str
    numbers: tuple[int, ...]
    by_prefix: bool


class VersionRange(msgspec.Struct, frozen=True):
    """The comparisons of a range."""

    clauses: tuple[_Clause, ...]

    def holds(self, version: str) -> bool | None:
        """Return whether a version is in the range; None if it has no number.

        The first number with dots counts, so that ``NVRM version: 550.54.15`` can be compared. A suffix after
        the numbers does not count: 1.32.0rc1 and 1.32.0+cu12 are 1.32.0. Missing numbers are zeros.
        """
        found = _version_in(version)
        if not found:
            return None
        numbers = _numbers(found)
        return all(_holds(clause, numbers) for clause in self.clauses)


def version_range(text: str) -> VersionRange | None:
    """Return the range that a text describes; None if it describes none."""
    clauses = [_CLAUSE.fullmatch(part.strip()) for part in text.split(",")]
    if any(found is None or (found[3] and found[1] not in ("==", "!=")) for found in clauses):
        return None
    return VersionRange(
        tuple(_Clause(found[1], _numbers(found[2]), bool(found[3])) for found in clauses if found is not None)
    )


def exactly(version: str) -> str:
    """Return the range of one version, such as ``==1.32.0``; empty if the text has no number."""
    found = _version_in(version)
    return found and f"=={found}"


def _version_in(text: str) -> str:
    found = next(filter(None, (numbers.search(text) for numbers in _NUMBERS)), None)
    return found[0] if found else ""


def _holds(clause: _Clause, numbers: tuple[int, ...]) -> bool:
    wanted = clause.numbers
    length = len(wanted) if clause.by_prefix else max(len(wanted), len(numbers))
    padded = [(*each, *[0] * length)[:length] for each in (numbers, wanted)]
    return _COMPARISONS[clause.comparison](*padded)


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))

"""What has been tried: operator, opset and types, rank, where the nodes ran, what was fused and printed."""

import itertools
import re
from collections import Counter

import msgspec

from harness.core.cause import plain_cause
from harness.core.record import Record
from harness.core.verdict import Verdict
from harness.corpus.variants.source import original_of

ENOUGH = 4
"""Cells of a target with one choice of operator, opset and types after which a new one must be lucky."""

_FALLBACKS_COUNT = 2
"""A cell that fell back says as much as two others: a second one nearly always does so, too."""


BRED = 8
"""Further models of a choice that has shown something new inside the runtime."""

MOST_LINES = 20_000
"""Different printed lines that are remembered; a provider may number them in a way that nobody foresaw."""

_LINES_OF_CELL = 200

_NUMBERS = re.compile(r"\d+")


class Sight(msgspec.Struct, frozen=True):
    """What one cell has shown.

    Attributes:
        choice: Operator, opset and types, as in the name of the model.
        rank: Of the first input.
        verdict: The verdict, which has the placement of a right answer.
    """

    target: str
    choice: str
    rank: int
    verdict: Verdict


def choice_in(name: str) -> str:
    """Return the operator, opset and types in the name of a model, or the kind of a graph."""
    return "variant-of-grown" if original_of(name) else name.partition("-")[2]


def operator_in(name: str) -> str:
    """Return the operator in the name of a model."""
    return choice_in(name).partition("-")[0]


def fused_in(record: Record) -> frozenset[tuple[str, str]]:
    """Return what fusion made of what: an operator that only the optimized graph has, and one that it lost.

    Providers number the graphs that they compile; without the numbers these are one operator. Pairs come to
    an end, as sets of operators in random graphs do not.
    """
    if record.placement is None or record.content is None:
        return frozenset()
    ran = {*record.placement.ep_ops, *record.placement.cpu_ops}
    gone = record.content.ops.keys() - ran or {""}
    made = {_NUMBERS.sub("", name) for name in ran - record.content.ops.keys()}
    return frozenset(itertools.product(made, gone))


class Coverage:
    """Counts what cells have shown."""

    def __init__(self) -> None:
        self._seen: Counter[Sight] = Counter()
        self._tried: Counter[tuple[str, str]] = Counter()
        self._patterns: set[tuple[str, tuple[str, str]]] = set()
        self._lines: set[tuple[str, str]] = set()
        self.choices: set[str] = set()

    def add(self, record: Record, rank: int, printed: str = "") -> bool:
        """Count a cell, and return whether it has shown something new.

        A fused pattern or a printed line that is new gives its choice further models: what lies beside it
        was not seen either.

        Args:
            record: Of the cell.
            rank: Of its first input.
            printed: What its process printed for it.
        """
        choice = choice_in(record.model)
        sight = Sight(record.target, choice, rank, record.verdict)
        self._seen[sight] += 1
        self._tried[record.target, choice] += _FALLBACKS_COUNT if record.verdict is Verdict.FALLBACK else 1
        self.choices.add(choice)
        is_new_inside = self._adds_pattern(record) | self._adds_line(record.target, printed)
        if is_new_inside:
            self._tried[record.target, choice] -= BRED
        return self._seen[sight] == 1 or is_new_inside

    def _adds_pattern(self, record: Record) -> bool:
        """Remember what was fused from which operators; return whether something is new."""
        fresh = {(record.target, pair) for pair in fused_in(record)} - self._patterns
        self._patterns |= fresh
        return bool(fresh)

    def _adds_line(self, target: str, printed: str) -> bool:
        """Remember printed lines without names, numbers and paths; return whether one is new."""
        lines = {(target, plain_cause(one)) for one in printed.splitlines()[:_LINES_OF_CELL]}
        fresh = {one for one in lines if one[1]} - self._lines
        if len(self._lines) >= MOST_LINES:
            return False
        self._lines |= fresh
        return bool(fresh)

    def tried(self, target: str, choice: str) -> int:
        """Return how many cells of a target had a choice, less those that it is owed.

        One that fell back counts as two.
        """
        return self._tried[target, choice]

    @property
    def sights(self) -> int:
        """How many different things have been seen."""
        return len(self._seen)

    @property
    def patterns(self) -> int:
        """How many such pairs have been seen, on all targets together: what was fused from what."""
        return len(self._patterns)

    @property
    def lines(self) -> int:
        """How many different lines have been printed, on all targets together."""
        return len(self._lines)

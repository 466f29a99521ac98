"""The coverage so far: operator, opset and types, rank, where nodes ran, what was fused and printed."""

import itertools
import re
from collections import Counter

import msgspec

from harness.annex.made.variants.source import original_of
from harness.core.findings.cause import plain_cause
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict

ENOUGH = 4
"""Number of a target's cells with one choice of operator, opset and types after which only chance gives it
another one."""

_FALLBACKS_COUNT = 2
"""A cell that fell back says as much as two others: a second one nearly always falls back, too."""


BRED = 8
"""Number of further models for a choice that has shown something new inside the runtime."""

MOST_LINES = 20_000
"""Largest number of different printed lines that are remembered; a provider may number them in an
unforeseen way."""

_LINES_OF_CELL = 200

_NUMBERS = re.compile(r"\d+")


class Sight(msgspec.Struct, frozen=True):
    """The observations of one cell.

    Attributes:
        choice: Operator, opset and types, as in the name of the model.
        rank: Of the first input.
        verdict: The verdict, which includes the placement of a right answer.
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
    """Return what was fused: an operator that only the optimized graph has, and one that the graph lost.

    Providers number the graphs that they compile; without the numbers these are one operator. The number of
    pairs is limited, unlike that of sets of operators in random graphs.
    """
    if record.placement is None or record.content is None:
        return frozenset()
    ran = {*record.placement.ep_ops, *record.placement.cpu_ops}
    gone = record.content.ops.keys() - ran or {""}
    made = {_NUMBERS.sub("", name) for name in ran - record.content.ops.keys()}
    return frozenset(itertools.product(made, gone))


class Coverage:
    """Counts the observations of cells."""

    def __init__(self) -> None:
        self._seen: Counter[Sight] = Counter()
        self._tried: Counter[tuple[str, str]] = Counter()
        self._patterns: set[tuple[str, tuple[str, str]]] = set()
        self._lines: set[tuple[str, str]] = set()
        self.choices: set[str] = set()

    def add(self, record: Record, rank: int, printed: str = "") -> bool:
        """Count a cell, and return whether it has shown something new.

        A new fused pattern or printed line gives its choice further models: similar models were not seen
        either.

        Args:
            record: The record of the cell.
            rank: Of its first input.
            printed: The output of its process for it.
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
        """Return how many cells of a target had a choice, minus the further models that it was given.

        One that fell back counts as two.
        """
        return self._tried[target, choice]

    @property
    def sights(self) -> int:
        """Return how many different observations have been made."""
        return len(self._seen)

    @property
    def patterns(self) -> int:
        """Return how many such pairs have been seen, on all targets together."""
        return len(self._patterns)

    @property
    def lines(self) -> int:
        """How many different lines have been printed, on all targets together."""
        return len(self._lines)

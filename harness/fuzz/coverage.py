"""What has been tried: operator, opset and types, rank, and where the nodes ran."""

from collections import Counter

import msgspec

from harness.core.record import Record
from harness.core.verdict import Verdict
from harness.corpus.variants.source import original_of

ENOUGH = 4
"""Cells of a target with one choice of operator, opset and types after which a new one must be lucky."""

_FALLBACKS_COUNT = 2
"""A cell that fell back says as much as two others: a second one nearly always does so, too."""


class Sight(msgspec.Struct, frozen=True):
    """What one cell has shown.

    Attributes:
        target: The target.
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


class Coverage:
    """Counts what cells have shown."""

    def __init__(self) -> None:
        self._seen: Counter[Sight] = Counter()
        self._tried: Counter[tuple[str, str]] = Counter()
        self.choices: set[str] = set()

    def add(self, record: Record, rank: int) -> bool:
        """Count a cell, and return whether it has shown something new."""
        choice = choice_in(record.model)
        sight = Sight(record.target, choice, rank, record.verdict)
        self._seen[sight] += 1
        self._tried[record.target, choice] += _FALLBACKS_COUNT if record.verdict is Verdict.FALLBACK else 1
        self.choices.add(choice)
        return self._seen[sight] == 1

    def tried(self, target: str, choice: str) -> int:
        """Return how many cells of a target had a choice; one that fell back counts as two."""
        return self._tried[target, choice]

    @property
    def sights(self) -> int:
        """How many different things have been seen."""
        return len(self._seen)

"""A ruling: what a rule says about a cell."""

from collections.abc import Callable
from typing import NamedTuple

from harness.core.records.verdict import Verdict
from harness.core.verdicts.judging import Judging


class Ruling(NamedTuple):
    """A verdict, its reason, which may be empty, and the cause of a verdict on a cell that ran."""

    verdict: Verdict
    reason: str
    cause: str = ""


Rule = Callable[[Judging], Ruling | None]
"""Returns None where it does not apply."""

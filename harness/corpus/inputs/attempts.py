"""Attempts to find inputs that a model runs with: sizes of open dimensions, and ranges of values.

Only a run shows which inputs a model accepts. The first attempt reveals most; the others are tried until the
CPU provider accepts one.
"""

from typing import Literal

import msgspec

from harness.corpus.inputs.open_sizes import SizePattern

ValueRange = Literal["plain", "natural", "positive", "wide", "small"]
"""The values of an input without any other restriction; see ``contents``.

``natural`` are pictures and voices, for inputs that take such; see ``recipes.natural``.
"""


class InputAttempt(msgspec.Struct, frozen=True, kw_only=True):
    """One way to make inputs: the sizes of open dimensions, and the values.

    ``draw`` counts other sizes and numbers of the same kind: a model that fails with the first is tried with
    them.
    """

    sizes: SizePattern = "distinct"
    values: ValueRange = "plain"
    draw: int = 0

    @property
    def name(self) -> str:
        """The attempt in one word, such as ``distinct/plain``."""
        return f"{self.sizes}/{self.values}"


FIRST = InputAttempt()

ATTEMPTS = (
    FIRST,
    InputAttempt(sizes="single"),
    InputAttempt(values="positive"),
    InputAttempt(sizes=4),  # dimensions of different names that must be equal; multiples of strides
    InputAttempt(sizes=8),
    InputAttempt(sizes=16),
    InputAttempt(sizes="image:64"),  # networks for images halve them five times
    InputAttempt(sizes="image:224"),
    InputAttempt(values="small"),
    InputAttempt(values="wide"),
    InputAttempt(sizes=2),
    InputAttempt(sizes=1),  # an unknown window may be larger than that
    InputAttempt(sizes=1, values="positive"),
)
"""All attempts in order. A model without open dimensions has only attempts with other values."""

STRONGER: tuple[ValueRange, ...] = ("natural", "positive", "wide", "small")
"""Values to try, in this order, if the first values give a weak golden."""

MOST_ELEMENTS = 1 << 24
"""Largest number of elements of the inputs of a later attempt, so that it takes at most a second."""

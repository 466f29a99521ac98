"""Attempts at inputs that a model runs with: sizes of open dimensions, and ranges of values.

Only a run shows which inputs a model takes. The first attempt shows most; the others are tried until the CPU
provider takes one.
"""

from typing import Literal

import msgspec

from harness.corpus.sizes import Pattern

Values = Literal["plain", "positive", "wide", "small"]
"""The values of an input that nothing else restricts; see ``contents``."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One way to make inputs: the sizes of open dimensions, and the values.

    ``draw`` counts other sizes and numbers of the same kind: what fails with the first is tried with them.
    """

    sizes: Pattern = "distinct"
    values: Values = "plain"
    draw: int = 0

    @property
    def name(self) -> str:
        """The attempt in one word, such as ``distinct/plain``."""
        return f"{self.sizes}/{self.values}"


FIRST = Attempt()

ATTEMPTS = (
    FIRST,
    Attempt(sizes="single"),
    Attempt(values="positive"),
    Attempt(sizes=4),  # dimensions of different names that have to be equal; multiples of strides
    Attempt(sizes=8),
    Attempt(sizes=16),
    Attempt(sizes="image:64"),  # networks for images halve them five times
    Attempt(sizes="image:224"),
    Attempt(values="small"),
    Attempt(values="wide"),
    Attempt(sizes=2),
    Attempt(sizes=1),  # a window that is not known may be larger than that
    Attempt(sizes=1, values="positive"),
)
"""All attempts in order. A model without open dimensions has only those with other values."""

STRONGER: tuple[Values, ...] = ("positive", "wide", "small")
"""Values to try, in this order, if the golden of the first ones is weak."""

LARGEST = 1 << 24
"""Elements of the inputs of a later attempt at most, so that it takes a second at most."""

"""Attempts at inputs that a model runs with: sizes of open dimensions, ranges of values, seeds.

Nothing but a run tells which inputs a model takes. The first attempt is the one that shows most; the others
are for the CPU provider to refuse until it takes one.
"""

from typing import Literal

import msgspec

from harness.corpus.sizes import Pattern

Values = Literal["plain", "positive", "wide", "small"]
"""Which values an input holds that neither the graph, its name nor a setting restricts; see ``contents``."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One way to make inputs.

    Attributes:
        sizes: How the sizes of open dimensions are chosen.
        values: Which values.
    """

    sizes: Pattern = "distinct"
    values: Values = "plain"

    @property
    def name(self) -> str:
        """The attempt in one word, such as ``distinct/plain``."""
        return f"{self.sizes}/{self.values}"


FIRST = Attempt()

ATTEMPTS = (
    FIRST,
    Attempt(sizes=2),  # dimensions of different names that have to be equal, or to broadcast
    Attempt(sizes=1),
    Attempt(sizes="single"),
    Attempt(values="positive"),
    Attempt(sizes=1, values="positive"),
    Attempt(sizes=4),  # multiples of the strides and window sizes of small networks
    Attempt(sizes=8),
    Attempt(sizes=16),
    Attempt(sizes="image:64"),  # networks for images halve them five times
    Attempt(sizes="image:224"),
    Attempt(values="small"),
    Attempt(values="wide"),
)
"""In the order in which they are tried. A model without open dimensions has those with other values."""

STRONGER: tuple[Values, ...] = ("positive", "wide", "small")
"""Values to be tried, in this order, where those that run give a golden that cannot tell right from wrong."""

LARGEST = 1 << 24
"""Elements that the inputs of an attempt other than the first may have, so that it takes a second at most."""

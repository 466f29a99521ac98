"""What others make of a model whose golden is recorded, held against that golden."""

from typing import Literal

import msgspec

Result = Literal["same", "agrees", "differs", "cannot"]


class CrossCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One of them.

    Attributes:
        by: Who it is, for people.
        result: ``same``: the same values, bit by bit. ``agrees``: within the default tolerance of the model,
            for expected data within that of the suite where it is wider. ``differs``: outside it.
            ``cannot``: it has no values.
        headroom: Largest error in units of that tolerance; null without values, or where it is infinite.
        message: How they differ, or why there are no values; empty where they agree.
    """

    by: str
    result: Result
    headroom: float | None = None
    message: str = ""

"""The ways of generating text in a cell: which fails, and which one stands for the cell."""

import math

from harness.core.generated import Generated, Generation
from harness.core.record import Record

SCENARIO = "generate"
"""The value of the axis ``scenario`` whose cells generate text."""


def generates(record: Record) -> bool:
    """Return whether a cell is about generated text, with or without a result."""
    return record.generation is not None or record.axes.get("scenario") == SCENARIO


def fails(way: Generated) -> bool:
    """Return whether a position or a tensor of the cache fails."""
    return way.first_bad is not None or bool(way.first_cache)


def since(way: Generated) -> int | None:
    """Return the first position at which the logits or the cache fail; None if none does."""
    return min((place for place in (way.first_bad, way.cache_from) if place is not None), default=None)


def largest_kl(way: Generated) -> tuple[int, float] | None:
    """Return the first position of the largest divergence, and the divergence, in nats.

    A divergence that is not finite is the largest, and infinite. None without any position.
    """
    values = [math.inf if value is None else value for value in way.kl]
    return max(enumerate(values), key=lambda pair: (pair[1], -pair[0]), default=None)


def decisive(generation: Generation) -> Generated | None:
    """Return the way that stands for a cell: of those that fail the one that fails first, else the farthest.

    The largest divergence decides between equal ones, then the order of the ways.
    """
    return min(generation.ways, key=_merits, default=None)


def _merits(way: Generated) -> tuple[bool, float, float]:
    place, largest = since(way), largest_kl(way)
    return not fails(way), math.inf if place is None else place, -largest[1] if largest else 0.0

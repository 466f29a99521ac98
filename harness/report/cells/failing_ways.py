"""The ways of generating text in a cell: which one fails, which represents the cell, and how that changed."""

import math
from collections.abc import Iterator

from harness.core.records.generation_figures import Generated, GenerationFigures
from harness.core.records.record import Record
from harness.core.records.scenario import GENERATE
from harness.report.words.figures import brief

_CHANGED = 0.01
"""Relative change of a perplexity from which on it is reported; healthy providers agree to a thousandth or
better."""

_SAME_TEXT = 1e-3
"""Relative difference between the goldens' perplexities up to which both runs used the same text."""


def generates(record: Record) -> bool:
    """Return whether a cell is about generated text, with or without a result."""
    return record.generation is not None or record.axes.get("scenario") == GENERATE


def fails(way: Generated) -> bool:
    """Return whether a position, a tensor of the cache, or a value between sessions fails."""
    return way.first_bad is not None or bool(way.first_cache or way.first_stage)


def first_wrong(way: Generated) -> str:
    """Return what fails first: a stage of a folder with its value, else a tensor of the cache; else empty."""
    return f"{way.first_stage}: {way.first_value}" if way.first_stage else way.first_cache


def since(way: Generated) -> int | None:
    """Return the first position at which the logits or the cache fail; None if none does."""
    return min((place for place in (way.first_bad, way.cache_from) if place is not None), default=None)


def largest_kl(way: Generated) -> tuple[int, float] | None:
    """Return the first position of the largest divergence, and the divergence, in nats.

    A divergence that is not finite is the largest, and infinite. None without any position.
    """
    values = [math.inf if value is None else value for value in way.kl]
    return max(enumerate(values), key=lambda pair: (pair[1], -pair[0]), default=None)


def decisive(generation: GenerationFigures) -> Generated | None:
    """Return the way that represents a cell: the failing one that fails first, else the farthest off.

    The largest divergence decides between equal ones, then the order of the ways.
    """
    return min(generation.ways, key=_merits, default=None)


def generation_changes(old: GenerationFigures | None, new: GenerationFigures | None) -> Iterator[str]:
    """Yield the changes of the way that represents a cell: first bad position, perplexity."""
    before, after = decisive(old or GenerationFigures()), decisive(new or GenerationFigures())
    if old is None or before is None or after is None:
        return
    places = since(before), since(after)
    if None not in places and places[0] != places[1]:
        yield f"first bad position {places[0]:,} of way {before.way} -> {places[1]:,} of way {after.way}"
    same = next((way for way in old.ways if way.way == after.way), None)
    if same is None or not _near(same.golden_perplexity, after.golden_perplexity, _SAME_TEXT):
        return
    if same.perplexity and after.perplexity and not _near(same.perplexity, after.perplexity, _CHANGED):
        figures = f"{brief(same.perplexity)} -> {brief(after.perplexity)}"
        yield f"perplexity of way {after.way} {figures}, golden {brief(after.golden_perplexity)}"


def _merits(way: Generated) -> tuple[bool, float, float]:
    place, largest = since(way), largest_kl(way)
    return not fails(way), math.inf if place is None else place, -largest[1] if largest else 0.0


def _near(one: float | None, other: float | None, limit: float) -> bool:
    return one is not None and other is not None and math.isclose(one, other, rel_tol=limit)

"""How the generated text of a cell changed between two runs."""

import math
from collections.abc import Iterator

from harness.core.generated import Generation
from harness.report.figures import brief
from harness.report.ways import decisive, since

_CHANGED = 0.01
"""Relative change of a perplexity that is told; healthy providers agree to a thousandth and better."""

_SAME_TEXT = 1e-3
"""Relative difference of the goldens' perplexities up to which both runs went through one text."""


def generation_changes(old: Generation | None, new: Generation | None) -> Iterator[str]:
    """Yield what is to be told about the way that stands for a cell: first bad position, perplexity."""
    before, after = decisive(old or Generation()), decisive(new or Generation())
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


def _near(one: float | None, other: float | None, limit: float) -> bool:
    return one is not None and other is not None and math.isclose(one, other, rel_tol=limit)

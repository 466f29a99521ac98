"""Options that should change what is computed: in how many cells of each lane they did."""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from harness.core.errors import one_line
from harness.core.record import Record
from harness.report.lane import Lane

SHOWN_OPTIONS = 20
"""How many options of one lane are named."""


class LaneEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The effect of the options of one lane; a lane's cells share their options.

    Attributes:
        lane: Which.
        options: Their keys, and the precision mode as ``ep:<name>``.
        judged: Cells that could tell.
        seen: Cells whose outputs differ from those without the options.
    """

    lane: Lane
    options: tuple[str, ...]
    judged: int
    seen: int


def lane_effects(lane: Lane, records: Iterable[Record]) -> Iterable[LaneEffect]:
    """Count the cells of one lane by their options; nothing where none of its cells could tell."""
    counts: dict[tuple[str, ...], list[bool]] = defaultdict(list)
    for record in records:
        if record.effect is not None:
            counts[record.effect.options].append(record.effect.seen)
    for options, seen in counts.items():
        shown = tuple(one_line(option, 120) for option in options[:SHOWN_OPTIONS])
        yield LaneEffect(lane=lane, options=shown, judged=len(seen), seen=sum(seen))

"""A lane: one column of the report, a target at one point of the axes that are not at their default."""

from collections.abc import Iterable, Sequence

import msgspec

from harness.core.cell import AXIS_DEFAULTS
from harness.core.record import Record


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """One target at one point of its axes.

    Attributes:
        target: Name of the target.
        axes: ``(axis, value)`` pairs that differ from the default, sorted by axis.
        provider: The first preferred provider.
    """

    target: str
    axes: tuple[tuple[str, str], ...]
    provider: str

    @property
    def precision(self) -> str:
        """The precision that was asked for."""
        return dict(self.axes).get("precision", AXIS_DEFAULTS["precision"])

    @property
    def setting(self) -> str:
        """The axes as text; empty where all are at their default."""
        return ", ".join(f"{axis}={value}" for axis, value in self.axes)

    @property
    def label(self) -> str:
        """The target, with the axes where there are any."""
        return f"{self.target} · {self.setting}" if self.axes else self.target


def lane_of(record: Record) -> Lane:
    """The lane in which a record lies."""
    axes = tuple(sorted(pair for pair in record.axes.items() if AXIS_DEFAULTS.get(pair[0]) != pair[1]))
    return Lane(target=record.target, axes=axes, provider=record.provider)


def lanes(found_lanes: Iterable[Lane], target_order: Sequence[str]) -> tuple[Lane, ...]:
    """Every lane once: targets in the order given, then by first appearance; axes sorted."""
    found = dict.fromkeys(found_lanes)
    rank = {name: index for index, name in enumerate(target_order)}
    for lane in found:
        rank.setdefault(lane.target, len(rank))
    return tuple(sorted(found, key=lambda lane: (rank[lane.target], lane.axes, lane.provider)))

"""A column of the report: a target at one point of the axes that are not at their default."""

from collections.abc import Iterable, Sequence

import msgspec

from harness.core.records.cell import AXIS_DEFAULTS
from harness.core.records.record import Record


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One target at one point of its axes.

    Attributes:
        axes: ``(axis, value)`` pairs that differ from the default, sorted by axis.
        provider: The first preferred provider.
    """

    target: str
    axes: tuple[tuple[str, str], ...]
    provider: str

    @property
    def precision(self) -> str:
        """The requested precision."""
        return dict(self.axes).get("precision", AXIS_DEFAULTS["precision"])

    @property
    def setting(self) -> str:
        """The axes as text; empty if all are at their default."""
        return ", ".join(f"{axis}={value}" for axis, value in self.axes)

    @property
    def without_scenario(self) -> "Column":
        """The column of the same target in which sessions are used plainly."""
        axes = tuple(pair for pair in self.axes if pair[0] != "scenario")
        return msgspec.structs.replace(self, axes=axes)

    @property
    def label(self) -> str:
        """The target, with the axes if there are any."""
        return f"{self.target} · {self.setting}" if self.axes else self.target


def column_of(record: Record) -> Column:
    """Return the column of a record."""
    axes = tuple(sorted(pair for pair in record.axes.items() if AXIS_DEFAULTS.get(pair[0]) != pair[1]))
    return Column(target=record.target, axes=axes, provider=record.provider)


def columns_in_order(found: Iterable[Column], target_order: Sequence[str]) -> tuple[Column, ...]:
    """Return each column once: targets in the given order, then by first appearance; axes sorted."""
    columns = dict.fromkeys(found)
    rank = {name: index for index, name in enumerate(target_order)}
    for column in columns:
        rank.setdefault(column.target, len(rank))
    return tuple(sorted(columns, key=lambda column: (rank[column.target], column.axes, column.provider)))

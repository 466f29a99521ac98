"""The page *Overview*: its view, beside the counts that the report has."""

from collections.abc import Iterator
from typing import ClassVar

import msgspec

from harness.core.leak import LEAK_KIB, LEAK_MIB, LEAK_SESSIONS
from harness.report.effect import report_effects
from harness.report.environment import EnvironmentTable, environment_table
from harness.report.figures import first_of
from harness.report.heat import Heat, heat_of
from harness.report.memory import TargetMemory, target_memory
from harness.report.view import Report

_SHOWN_OPTIONS = 5


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page.

    Attributes:
        without_effect: Options that changed no cell of a column.
        heat: All targets in one table, of a report with many columns; else null.
        memory: The processes of each target that started any.
    """

    without_effect: tuple[str, ...]
    memory: tuple[TargetMemory, ...]
    environments: EnvironmentTable
    heat: Heat | None

    shown_identities: ClassVar = 30
    leak_kib: ClassVar = int(LEAK_KIB)
    leak_mib: ClassVar = int(LEAK_MIB)
    leak_sessions: ClassVar = LEAK_SESSIONS

    @property
    def leaking(self) -> tuple[str, ...]:
        """Targets whose processes leak."""
        return tuple(row.target for row in self.memory if row.leaks)


def overview_view(report: Report) -> Iterator[Overview]:
    """Yield the view."""
    unseen = [
        f"{', '.join(row.options)} on {row.column.label}" for row in report_effects(report) if not row.seen
    ]
    yield Overview(
        without_effect=tuple(first_of(unseen, _SHOWN_OPTIONS)),
        memory=target_memory(report),
        environments=environment_table(report.run.environments),
        heat=heat_of(report),
    )

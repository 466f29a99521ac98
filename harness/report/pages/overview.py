"""The page *Overview*: its view, beside the counts that the report has."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import ClassVar

import msgspec

from harness.catalog.option_points import OptionPoints
from harness.core.findings.leak import LEAK_KIB, LEAK_MIB, LEAST_SESSIONS, YOUNG_LEAK_KIB
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.report.changes.run_diff import CellChange, CellChangeKind
from harness.report.pages.changes import change_places
from harness.report.pages.effect import report_effects
from harness.report.pages.heat import Heat, heat_of
from harness.report.pages.main_causes import MainCauses, main_causes
from harness.report.pages.memory import TargetMemory, target_memory
from harness.report.pages.shipping_overview import ShippingTable, shipping_table
from harness.report.pages.suggested_commands import SuggestedCommand, suggested_commands
from harness.report.pages.target_sentence import TargetSentences, target_sentences
from harness.report.runs.environment import EnvironmentTable, environment_table
from harness.report.view import Report
from harness.report.words.figures import first_of

_SHOWN_OPTIONS = 5
_SHOWN_CHANGES = 5


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The view of the page.

    Attributes:
        targets: A sentence for each target.
        causes: The causes that explain most failed cells.
        steps: What to do next.
        regressed: The first regressed cells since the older run; empty without one.
        change_places: Kind of change -> the file that lists its cells; empty without an older run.
        without_effect: Options that changed no cell of a column.
        silent: Options outside the catalogue that changed no bit, each with its target.
        lacking: Features that the devices of targets lack, each once, with the cells that need it.
        ill_mannered: Targets whose cells made unexpected changes to their process, with their number.
        heat: All targets in one table, for a report with many columns; else null.
        memory: The processes of each target that started any.
        shipping: What to ship, for a report of the user's own models; else null.
    """

    targets: TargetSentences
    causes: MainCauses
    steps: tuple[SuggestedCommand, ...]
    regressed: tuple[CellChange, ...]
    change_places: Mapping[CellChangeKind, str]
    without_effect: tuple[str, ...]
    silent: tuple[str, ...]
    lacking: tuple[str, ...]
    ill_mannered: tuple[str, ...]
    memory: tuple[TargetMemory, ...]
    environments: EnvironmentTable
    heat: Heat | None
    shipping: ShippingTable | None

    shown_identities: ClassVar = 30
    leak_kib: ClassVar = int(LEAK_KIB)
    leak_mib: ClassVar = int(LEAK_MIB)
    young_leak_kib: ClassVar = int(YOUNG_LEAK_KIB)
    least_sessions: ClassVar = 2 * LEAST_SESSIONS

    @property
    def leaking(self) -> tuple[str, ...]:
        """Targets whose processes leak memory, descriptors or threads."""
        return tuple(row.target for row in self.memory if row.leaks)


def overview_view(report: Report) -> Iterator[Overview]:
    """Yield the view."""
    unseen = [
        f"{', '.join(row.options)} on {row.column.label}" for row in report_effects(report) if not row.seen
    ]
    yield Overview(
        targets=target_sentences(report),
        causes=main_causes(report),
        steps=suggested_commands(report),
        regressed=()
        if report.changes is None
        else report.changes.told(CellChangeKind.REGRESSED)[:_SHOWN_CHANGES],
        change_places={} if report.changes is None else change_places(report.changes),
        without_effect=tuple(first_of(unseen, _SHOWN_OPTIONS)),
        silent=tuple(_silent(report)),
        lacking=tuple(f"{one.target}: {one.words}" for one in report.lacking),
        ill_mannered=tuple(_ill_mannered(report)),
        memory=target_memory(report),
        environments=environment_table(report.run.environments),
        heat=heat_of(report),
        shipping=shipping_table(report),
    )


def _silent(report: Report) -> Iterator[str]:
    points: dict[str, OptionPoints] = defaultdict(OptionPoints)
    for _, record in report.run.records:
        points[record.target].add(record)
    for target, found in points.items():
        for one in found.silent(target):
            yield f"{target}: {one_line(one.words)}"


def _ill_mannered(report: Report) -> Iterator[str]:
    cells = Counter(record.target for _, record in report.run.records if record.manners)
    for target, count in cells.items():
        yield f"{target} ({plural(count, 'cell')})"

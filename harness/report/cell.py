"""A record placed in the report: its lane, its run folder, and where its details stand."""

from pathlib import Path

import msgspec

from harness.core.record import Record
from harness.report.lane import Lane


class ReportCell(msgspec.Struct, frozen=True, kw_only=True):
    """One record with its place in the report.

    Attributes:
        record: The record.
        lane: Its lane.
        folder: The run folder it comes from.
        href: Where its details stand in the site, such as ``cells.html#c12``; empty where they are not shown.
    """

    record: Record
    lane: Lane
    folder: Path
    href: str

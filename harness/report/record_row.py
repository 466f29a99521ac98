"""What every row about a cell begins with, in the formats that programs read."""

from collections.abc import Iterator
from typing import Any

import msgspec

from harness.core.record import Record
from harness.report.column import column_of
from harness.report.merge import MergedRun


class RecordRow(msgspec.Struct, frozen=True, kw_only=True):
    """The cell of a row. The published schemas describe each row by itself, so rows describe these, too."""

    cell: str
    label: str
    run: str
    suite: str
    model: str
    target: str
    provider: str


_COPIED = ("cell", "suite", "model", "target", "provider")


def with_columns(run: MergedRun) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Yield each record with the columns of ``RecordRow``, in the order of the runs; those not run, too."""
    names = dict(zip(run.folders, run.names, strict=True))
    for folder, record in run.records:
        copied = {name: getattr(record, name) for name in _COPIED}
        yield record, {**copied, "label": column_of(record).label, "run": names[folder]}

"""The facts of a run in a history and a store: the run itself, and the counts of each of its targets."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.report.cells.column import column_of, columns_in_order
from harness.report.cells.column_counts import summarise
from harness.report.cells.column_precision import measure_column
from harness.report.cells.worst import most_headroom
from harness.report.runs.merged_run import MergedRun
from harness.report.words.figures import spread

_HIGH = 0.95
"""Share of a target's right answers that use less of their tolerance than its ``headroom_high``."""

TREND_COLUMNS = {
    "label": "VARCHAR",
    "target": "VARCHAR",
    "provider": "VARCHAR",
    "cells": "BIGINT",
    "skipped": "BIGINT",
    "excluded": "BIGINT",
    "not_run": "BIGINT",
    "tried": "BIGINT",
    "passed": "BIGINT",
    "passed_in_part": "BIGINT",
    "untested": "BIGINT",
    "unsupported": "BIGINT",
    "failed": "BIGINT",
    "median_bits": "DOUBLE",
    "headroom_high": "DOUBLE",
    "headroom_most": "DOUBLE",
    "median_p50_ms": "DOUBLE",
}
"""Name -> SQL type of the values of ``trend_rows``, in its order."""


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """A run: its matrix, the time of its first and last cell, and how many cells have no result."""

    matrix: str
    first: str
    last: str
    planned: int
    not_run: int
    complete: bool


def run_row(run: MergedRun, *, otherwise: str) -> RunRow:
    """Return the row of a run; ``otherwise`` is its time if no cell has a time."""
    records = [record for _, record in run.records]
    started = sorted(_to_seconds(record.started) for record in records if record.started)
    return RunRow(
        matrix=run.matrix_file or run.names[0],
        first=started[0] if started else otherwise,
        last=started[-1] if started else otherwise,
        planned=run.planned,
        not_run=run.planned - sum(record.verdict.family is not Family.MISSING for record in records),
        complete=run.complete,
    )


def trend_rows(records: Sequence[Record], *, complete: bool) -> Iterator[tuple[object, ...]]:
    """Yield a row of ``TREND_COLUMNS`` for each target at one point of its axes."""
    by_column: dict[object, list[Record]] = defaultdict(list)
    for record in records:
        by_column[column_of(record)].append(record)
    for column in columns_in_order((column_of(record) for record in records), ()):
        its = by_column[column]
        row = summarise(column, its, complete=complete)
        bits = measure_column(column, its).bits
        right = [record for record in its if record.verdict.family is Family.PASSED]
        used = sorted(most for record in right if (most := most_headroom(record)) is not None)
        p50 = spread([record.latency.p50_ms for record in right if record.latency])
        yield (
            *(column.label, column.target, column.provider),
            *(row.cells, row.skipped, row.excluded, row.missing, row.tried),
            *(each.count for each in (row.by_ep, row.partly, row.untested, row.unsupported, row.failed)),
            bits.median if bits else None,
            used[int(_HIGH * (len(used) - 1))] if used else None,
            used[-1] if used else None,
            p50.median if p50 else None,
        )


def _to_seconds(started: str) -> str:
    """Return UTC in ISO 8601 without fractions; any other text unchanged."""
    return f"{started[:19]}Z" if started.endswith(("Z", "+00:00")) else started

"""The latencies of all cells of a comparison: what was found, and what the earlier runs can promise."""

import statistics
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence

import msgspec

from harness.core.records.record import Record
from harness.core.text.counted import plural
from harness.core.timing.latency import Latency
from harness.report.changes.latency_change import USUAL_SPREAD, LatencyChange, Pair, latency_changes
from harness.report.changes.likeness import Likeness
from harness.report.runs.merged_run import MergedRun

Records = Mapping[str, Record]


class Latencies(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a run's latencies.

    Attributes:
        cells: Cells with a latency in both runs, on like machines.
        slower: Those that became slower by more than noise.
        faster: Those that became faster.
        unclear: Cells that look slower, while noise, a disturbance or another way of measuring hides it.
        before: Largest number of earlier runs with which a cell was compared.
        promise: The ratio from which on a slowdown is found in 95 % of the nights, if many cells have it;
            null if none can be compared.
        promise_alone: The same if only one cell has it.
    """

    cells: int
    slower: int
    faster: int
    unclear: int
    before: int
    promise: float | None
    promise_alone: float | None


def compared_latencies(
    old: MergedRun,
    new: MergedRun,
    earlier: Sequence[MergedRun],
    likeness: Likeness,
    but: Container[str] = (),
) -> tuple[dict[str, LatencyChange], Latencies | None]:
    """Compare the latencies of each cell with those of the previous run, and of earlier ones.

    Cells of ``but`` are left out.

    Returns:
        Return the changes by cell, and their numbers; None if no cell has a latency on like machines.
    """
    pairs = _pairs(old, new, [(run, Likeness(run, new)) for run in earlier], likeness)
    cells = {cell: pair for cell, pair in pairs if cell not in but}
    if not cells:
        return {}, None
    changes = latency_changes(cells)
    verdicts = Counter(change.verdict for change in changes.values())
    promises = [change.promise for change in changes.values() if change.promise is not None]
    alone = [change.promise_alone for change in changes.values() if change.promise_alone is not None]
    return changes, Latencies(
        cells=len(changes),
        slower=verdicts["slower"],
        faster=verdicts["faster"],
        unclear=sum(change.may_be_slower for change in changes.values()),
        before=max(len(before) for before, _ in cells.values()),
        promise=statistics.median(promises) if promises else None,
        promise_alone=statistics.median(alone) if alone else None,
    )


def latency_words(found: Latencies) -> str:
    """Return the finding in one line, with the resolution that the earlier runs allow."""
    told = (
        f"latency: {plural(found.cells, 'cell')} against up to {plural(found.before, 'run')} before: "
        f"{found.slower:,} slower, {found.faster:,} faster, {found.unclear:,} unclear"
    )
    if found.promise is None or found.promise_alone is None:
        return told
    told += f"; a slowdown of {found.promise_alone - 1:.0%} of one cell is found in 95% of the nights"
    if found.cells > 1:
        told += f", of {found.promise - 1:.0%} where many cells have it"
    if found.before == 1:
        told += (
            f", if nights differ by {USUAL_SPREAD:.0%}: name more runs with --earlier to see how far they do"
        )
    return told


def _pairs(
    old: MergedRun, new: MergedRun, earlier: Sequence[tuple[MergedRun, Likeness]], likeness: Likeness
) -> Iterator[tuple[str, Pair]]:
    sides = [(run, _by_cell(run), likeness) for run, likeness in ((old, likeness), *earlier)]
    for cell, record in _by_cell(new).items():
        first = sides[0][1].get(cell)
        # Without a latency in the previous run nothing can have changed since.
        if first is None or not likeness.comparable(record.target):
            continue
        before = [
            latency
            for run, records, alike in sides
            if cell in records and alike.comparable(record.target)
            for latency in _of(run, records[cell])
        ]
        yield cell, (before, list(_of(new, record)))


def _by_cell(run: MergedRun) -> dict[str, Record]:
    return {record.cell: record for _, record in run.records if record.latency is not None}


def _of(run: MergedRun, record: Record) -> Iterator[Latency]:
    if record.latency is not None:
        yield record.latency
    yield from run.repeated_latencies.get(record.cell, ())

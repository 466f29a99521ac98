"""The view model in rows of plain values: what the formats for programs hold."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from harness.core.record import Record
from harness.core.verdict import Family, Phase, Verdict
from harness.report.drift import most_headroom
from harness.report.grid import least_bits
from harness.report.lane import lane_of
from harness.report.merge import MergedRun
from harness.report.view import Report


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target at one point of its axes. ``cells`` = skipped + excluded + not_run + tried.

    Attributes:
        label: Target and axes, as the report names them.
        axes: Axes that are not at their default.
        required: Whether a run without this target means nothing.
        cells: Planned cells.
        tried: passed + passed_in_part + untested + unsupported + failed.
        passed_in_part: Right answers that the EP had a part in; some compute nodes fell back to the CPU.
        untested: Right answers that the EP had no part in.
        unexpected: Cells whose verdict is not what the matrix expects.
        flaky: Failed cells that gave another verdict when tried again.
        median_bits: Median of the delivered bits of compute-heavy cells; null without figures.
    """

    label: str
    target: str
    provider: str
    axes: dict[str, str]
    required: bool
    cells: int
    skipped: int
    excluded: int
    not_run: int
    tried: int
    passed: int
    passed_in_part: int
    untested: int
    unsupported: int
    failed: int
    unexpected: int
    flaky: int
    median_bits: float | None


class CellRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell, its outputs folded into the worst of them.

    Attributes:
        label: Target and axes, as the report names them.
        run: Name of the run folder.
        target: Name of the target; ``target @ run`` where runs contradict each other.
        headroom: Largest error over the allowed one; null where it is undefined or infinite.
        delivered_bits: Of the least precise output; null where all are exact, or not floating.
        mismatched: Elements outside the tolerance, of all outputs.
        elements: Elements compared.
        p50_ms: Median latency, where it was measured.
    """

    cell: str
    label: str
    run: str
    suite: str
    model: str
    target: str
    provider: str
    axes: dict[str, str]
    verdict: Verdict
    family: Family
    expected: bool
    flaky: bool
    phase: Phase | None
    cause: str
    reason: str
    ep_nodes: int | None
    cpu_nodes: int | None
    partitions: int | None
    headroom: float | None
    delivered_bits: float | None
    max_abs: float | None
    max_rel: float | None
    mismatched: int
    elements: int
    golden: str
    create_ms: float | None
    first_run_ms: float | None
    p50_ms: float | None
    started: str


def target_rows(report: Report, run: MergedRun) -> tuple[TargetRow, ...]:
    """A row for each lane of the report, in its order."""
    unexpected = Counter(lane_of(record) for _, record in run.records if not record.expected)
    return tuple(
        TargetRow(
            label=row.lane.label,
            target=row.lane.target,
            provider=row.lane.provider,
            axes=dict(row.lane.axes),
            required=row.lane.target in run.required,
            cells=row.cells,
            skipped=row.skipped,
            excluded=row.excluded,
            not_run=row.missing,
            tried=row.tried,
            passed=row.by_ep.count,
            passed_in_part=row.partly.count,
            untested=row.untested.count,
            unsupported=row.unsupported.count,
            failed=row.failed.count,
            unexpected=unexpected[row.lane],
            flaky=row.flaky,
            median_bits=precision.bits.median if precision.bits else None,
        )
        for row, precision in zip(report.summary, report.precision, strict=True)
    )


def cell_rows(run: MergedRun) -> Iterator[CellRow]:
    """A row for each cell, those that were not run included, in the order of the runs."""
    names = dict(zip(run.folders, run.names, strict=True))
    return (_row(record, names[folder]) for folder, record in run.records)


def _row(record: Record, run: str) -> CellRow:
    placed = record.placement
    return CellRow(
        cell=record.cell,
        label=lane_of(record).label,
        run=run,
        suite=record.suite,
        model=record.model,
        target=record.target,
        provider=record.provider,
        axes=record.axes,
        verdict=record.verdict,
        family=record.verdict.family,
        expected=record.expected,
        flaky=record.flaky,
        phase=record.phase,
        cause=record.cause,
        reason=record.reason,
        ep_nodes=placed.ep_nodes if placed else None,
        cpu_nodes=placed.cpu_nodes if placed else None,
        partitions=placed.partitions if placed else None,
        headroom=most_headroom(record),
        delivered_bits=least_bits(record),
        max_abs=max((o.max_abs for o in record.outputs if o.max_abs is not None), default=None),
        max_rel=max((o.max_rel for o in record.outputs if o.max_rel is not None), default=None),
        mismatched=sum(output.mismatched for output in record.outputs),
        elements=sum(output.elements for output in record.outputs),
        golden=record.golden,
        create_ms=record.timings_ms.get("create"),
        first_run_ms=record.timings_ms.get("first_run"),
        p50_ms=record.latency.p50_ms if record.latency else None,
        started=record.started,
    )

"""The view model in rows of plain values: what the formats for programs hold."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from harness.core.record import Record
from harness.core.verdict import Family, Phase, Verdict
from harness.report.conversion import worst_error
from harness.report.drift import most_headroom
from harness.report.grid import least_bits
from harness.report.lane import lane_of
from harness.report.merge import MergedRun
from harness.report.noise import worst_noise
from harness.report.view import Report


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target at one point of its axes. ``cells`` = skipped + excluded + not_run + tried.

    Attributes:
        label: Target and axes, as the report names them.
        axes: Axes that are not at their default.
        required: Whether a run without this target means nothing.
        cells: Planned cells.
        tried: passed + passed_in_part + weak + untested + unsupported + failed.
        passed_in_part: Right answers that the EP had a part in; some compute nodes fell back to the CPU.
        weak: Right answers by the EP, wholly or in part, whose golden could not tell them from most wrong
            ones; they count neither as ``passed`` nor as ``passed_in_part``.
        untested: Right answers that the EP had no part in.
        unexpected: Cells whose verdict is not what the matrix expects.
        suspicious: Cells that pass although their error is far above the rounding noise of their model.
        flaky: Failed cells that gave another verdict when tried again.
        median_bits: Median of the delivered bits of compute-heavy cells; null without figures.
        noise_precision: Whose rounding noise the following are about; empty where no cell has a figure.
        noise_cells: Cells whose error is known as a multiple of that noise.
        median_noise: Median of these multiples; null without figures.
        noise_beyond: Those of the cells that are beyond the default limits.
        noise_like: The precision that most of the cells behave like; empty without figures.
        median_error: Median of the error of converted models against those as they came; null without any.
        median_cpu_error: The same on the CPU EP.
        median_error_ratio: Median of the one over the other.
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
    weak: int
    untested: int
    unsupported: int
    failed: int
    unexpected: int
    suspicious: int
    flaky: int
    median_bits: float | None
    noise_precision: str
    noise_cells: int
    median_noise: float | None
    noise_beyond: int
    noise_like: str
    median_error: float | None
    median_cpu_error: float | None
    median_error_ratio: float | None


class CellRow(msgspec.Struct, frozen=True, kw_only=True):
    """One cell, its outputs folded into the worst of them.

    Attributes:
        label: Target and axes, as the report names them.
        run: Name of the run folder.
        target: Name of the target; ``target @ run`` where runs contradict each other.
        headroom: Largest error over the allowed one; null where it is undefined or infinite.
        delivered_bits: Of the least precise output; null where all are exact, or not floating.
        noise_rms: Error of the worst output over the rounding noise of its model; null where it is exact, or
            the noise is not known.
        noise_max: The largest such multiple of any element of that output.
        noise_precision: Whose rounding makes the noise.
        noise_like: The precision that the error is most like.
        precision_error: Relative error of the worst output against the golden of the model as it came, where
            the model was converted to another precision.
        cpu_error: That of the CPU EP with the same converted model.
        error_ratio: The one over the other.
        error_unknown: Why one of these three is missing; empty where all are there, or the model was run as
            it came.
        nearer: Whether the ``golden`` or the ``ep`` is nearer to a more precise answer in the first output
            that was held against one; empty where none was.
        weak_golden: Why a wrong answer could go unnoticed; empty where it would not.
        suspicious: Which output passes although its error is far above the noise of its model; may be empty.
        results: Different results of repeated runs, bit for bit; null where none were asked for.
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
    noise_rms: float | None
    noise_max: float | None
    noise_precision: str
    noise_like: str
    precision_error: float | None
    cpu_error: float | None
    error_ratio: float | None
    error_unknown: str
    nearer: str
    weak_golden: str
    suspicious: str
    results: int | None
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
    # Of several precisions of the noise the one with the most cells stands first.
    noises = {row.lane: row for row in reversed(report.noise)}
    conversions = {row.lane: row for row in report.conversion}
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
            weak=row.weak.count,
            untested=row.untested.count,
            unsupported=row.unsupported.count,
            failed=row.failed.count,
            unexpected=unexpected[row.lane],
            suspicious=row.suspicious,
            flaky=row.flaky,
            median_bits=precision.bits.median if precision.bits else None,
            noise_precision=noise.precision if noise else "",
            noise_cells=noise.cells if noise else 0,
            median_noise=noise.ratios.median if noise else None,
            noise_beyond=noise.above if noise else 0,
            noise_like=noise.like[0][0] if noise and noise.like else "",
            median_error=cost.error if cost else None,
            median_cpu_error=cost.cpu_error if cost else None,
            median_error_ratio=cost.ratios.median if cost and cost.ratios else None,
        )
        for row, precision in zip(report.summary, report.precision, strict=True)
        for noise, cost in [(noises.get(row.lane), conversions.get(row.lane))]
    )


def cell_rows(run: MergedRun) -> Iterator[CellRow]:
    """A row for each cell, those that were not run included, in the order of the runs."""
    names = dict(zip(run.folders, run.names, strict=True))
    return (_row(record, names[folder]) for folder, record in run.records)


def _row(record: Record, run: str) -> CellRow:
    placed = record.placement
    noise, error = worst_noise(record), worst_error(record)
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
        noise_rms=noise.rms if noise else None,
        noise_max=noise.max if noise else None,
        noise_precision=noise.precision if noise else "",
        noise_like=noise.like if noise else "",
        precision_error=error.error if error else None,
        cpu_error=error.cpu_error if error else None,
        error_ratio=error.ratio if error else None,
        error_unknown=error.unknown if error else "",
        nearer=record.adjudication[0].nearer if record.adjudication else "",
        weak_golden=record.weak_golden,
        suspicious=record.suspicious,
        results=record.repeats.distinct if record.repeats else None,
        mismatched=sum(output.mismatched for output in record.outputs),
        elements=sum(output.elements for output in record.outputs),
        golden=record.golden,
        create_ms=record.timings_ms.get("create"),
        first_run_ms=record.timings_ms.get("first_run"),
        p50_ms=record.latency.p50_ms if record.latency else None,
        started=record.started,
    )

"""Targets and cells as rows of plain values, for the formats that programs read."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from harness.core.findings.lacking import lacks_of
from harness.core.records.record import Record
from harness.core.records.run_info import TargetExit
from harness.core.records.verdict import Family, Verdict
from harness.report.cells.column import column_of
from harness.report.cells.report_cell import UNKNOWN_MATRIX, command_of
from harness.report.formats.cell_columns import VALUES, CellRow
from harness.report.runs.merged_run import MergedRun
from harness.report.runs.target_identity import NOTHING_KNOWN
from harness.report.view import Report


class TargetRow(msgspec.Struct, frozen=True, kw_only=True):
    """One target at one point of its axes. ``cells`` = skipped + excluded + not_run + tried.

    Attributes:
        label: Target and axes, as the report names them.
        axes: Axes that are not at their default.
        required: Whether the run fails without this target.
        onnxruntime: Release of its runtime; this field and the next ones are empty if unknown.
        ep_version: Version of the plugin, or of the runtime that the provider is built into.
        library: File name of the plugin's library.
        driver: Drivers with their versions.
        device: Name of the device.
        vendor: Its vendor; the numbers that follow are onnxruntime's, decimal.
        firmware: Its version, where the provider or a driver tells it.
        build: The provider's own version, and the first 12 digits of the SHA-256 of its library.
        simulated: The program that stands for the accelerator; empty without one, or if it is not known.
        lacks: Features that its device lacks, each with the cells that fail or are refused without it.
        exit: ``unclean_exit`` if a process of the target that was asked to end died or did not end.
        exit_expected: Whether the matrix expects how its processes ended.
        cells: Planned cells.
        tried: passed + passed_in_part + weak + untested + unsupported + failed.
        passed_in_part: Right answers in which the EP had a part; some compute nodes fell back to the CPU.
        weak: Right answers by the EP, wholly or in part, that the golden cannot tell from wrong ones;
            they count neither as ``passed`` nor as ``passed_in_part``.
        untested: Right answers in which the EP had no part.
        unexpected: Cells whose verdict is not what the matrix expects.
        approximate: Cells that pass because of a document of the EP, with an error larger than the rounding
            of their model.
        unconfirmed: Cells that fail by values which float64 has not confirmed as wrong.
        flaky: Failed cells that had another verdict when tried again.
        unchecked: Cells with a check that was left out, such as a second run.
        median_bits: Median of the delivered bits of compute-heavy cells; null without figures.
        noise_precision: Precision of the rounding noise in the following fields; empty if no cell has a
            figure.
        noise_cells: Cells whose error is known as a multiple of that noise.
        median_noise: Median of these multiples; null without figures.
        noise_beyond: Number of these cells beyond the default limits.
        noise_like: The precision that most of the cells behave like; empty without figures.
        median_error: Median of the error of converted models against the models before conversion; null
            without any.
        median_cpu_error: The same on the CPU EP.
        median_error_ratio: Median of the ratio of the two.
    """

    label: str
    target: str
    provider: str
    axes: dict[str, str]
    required: bool
    onnxruntime: str
    ep_version: str
    library: str
    driver: str
    device: str
    vendor: str
    vendor_id: str
    device_id: str
    architecture: str
    firmware: str
    build: str
    simulated: str
    lacks: str
    exit: Verdict | None
    exit_expected: bool
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
    approximate: int
    unconfirmed: int
    flaky: int
    unchecked: int
    median_bits: float | None
    noise_precision: str
    noise_cells: int
    median_noise: float | None
    noise_beyond: int
    noise_like: str
    median_error: float | None
    median_cpu_error: float | None
    median_error_ratio: float | None


_OF_EVERY_ROW = ("cell", "suite", "model", "target", "provider")
_OF_IDENTITY = ("onnxruntime", "ep_version", "library", "driver", "device")
_COUNTS = ("cells", "skipped", "excluded", "tried", "approximate", "unconfirmed", "flaky", "unchecked")
_SHARES = ("weak", "untested", "unsupported", "failed")


def target_rows(report: Report) -> tuple[TargetRow, ...]:
    """Return a row for each column of the report, in its order."""
    unexpected = Counter(cell.column for cell in report.cells if not cell.record.expected)
    known = {each.target: each for each in reversed(report.identities)}
    # If the noise has several precisions, the one with the most cells is first.
    noises = {row.column: row for row in reversed(report.noise)}
    conversions = {row.column: row for row in report.conversion}
    return tuple(
        TargetRow(
            label=row.column.label,
            target=row.column.target,
            provider=row.column.provider,
            axes=dict(row.column.axes),
            required=row.column.target in report.run.required,
            **{name: getattr(what, name) for name in _OF_IDENTITY},
            **msgspec.structs.asdict(what.facts),
            simulated=report.run.simulated.get(row.column.target, ""),
            lacks=", ".join(
                f"{one.feature} ({one.cells:,})" for one in lacks_of(report.by_column.get(row.column, ()))
            ),
            exit=exits.verdict,
            exit_expected=exits.expected,
            **{name: getattr(row, name) for name in _COUNTS},
            **{name: getattr(row, name).count for name in _SHARES},
            not_run=row.missing,
            passed=row.by_ep.count,
            passed_in_part=row.partly.count,
            unexpected=unexpected[row.column],
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
        for noise, cost in [(noises.get(row.column), conversions.get(row.column))]
        for what in [known.get(row.column.target, NOTHING_KNOWN)]
        for exits in [report.run.exits.get(row.column.target, TargetExit())]
    )


def cell_rows(run: MergedRun) -> Iterator[CellRow]:
    """Yield a row for each cell, including those not run, in the order of the runs."""
    path = run.matrix_path or UNKNOWN_MATRIX
    own = {name: folder for folder, name in zip(run.folders, run.names, strict=True)}
    for record, columns in with_columns(run):
        concerns = not record.expected or record.verdict.family in (Family.FAILED, Family.MISSING)
        yield CellRow(
            **columns,
            **{name: value(record) for name, value in VALUES.items()},
            known=run.known.get(own[columns["run"]], {}).get(record.cell, ""),
            command=command_of(record, path) if concerns else "",
        )


def as_row(record: Record) -> dict[str, Any]:
    """Return a record as one flat row of a table: the columns of ``cells.csv``, with plain values.

    Each axis is a column. What only a run knows is left out: its name, why it expects a failure, and the
    command that runs the cell again.
    """
    values = {name: getattr(record, name) for name in _OF_EVERY_ROW}
    values |= {"label": column_of(record).label, **{name: value(record) for name, value in VALUES.items()}}
    ordered = {name: values[name] for name in CellRow.__struct_fields__ if name in values and name != "axes"}
    plain: dict[str, Any] = msgspec.to_builtins(ordered)
    return {**plain, **record.axes}


def with_columns(run: MergedRun) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Yield each record with the columns of ``RecordRow``, in the order of the runs.

    Including those not run.
    """
    names = dict(zip(run.folders, run.names, strict=True))
    for folder, record in run.records:
        copied = {name: getattr(record, name) for name in _OF_EVERY_ROW}
        yield record, {**copied, "label": column_of(record).label, "run": names[folder]}

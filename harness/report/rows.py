"""Targets and cells as rows of plain values, for the formats that programs read."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from harness.core.agreement import agreements_words, least_share
from harness.core.lacking import lack_of, lacks_of
from harness.core.manner import manners_words
from harness.core.record import Record
from harness.core.run_info import TargetExit
from harness.core.share import share_on_ep
from harness.core.verdict import Family, Phase, Verdict
from harness.core.work import unchecked_words
from harness.report.cell import UNKNOWN_MATRIX, command_of
from harness.report.column import column_of
from harness.report.identity import NOTHING_KNOWN
from harness.report.merge import MergedRun
from harness.report.view import Report
from harness.report.worst import least_bits, most_headroom, worst_error, worst_noise


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
        simulated: The program that stands for the accelerator; empty without one, or if it is not known.
        lacks: Features that its device lacks, each with the cells that fail or are refused without it.
        exit: ``unclean_exit`` if a process of the target that was asked to end died or did not end.
        exit_expected: Whether the matrix expects how its processes ended.
        cells: Planned cells.
        tried: passed + passed_in_part + weak + untested + unsupported + failed.
        passed_in_part: Right answers in which the EP had a part; some compute nodes fell back to the CPU.
        weak: Right answers by the EP, wholly or in part, that the golden cannot tell from most wrong ones;
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


class RecordRow(msgspec.Struct, frozen=True, kw_only=True):
    """The cell of a row. The published schemas describe each row by itself, so rows describe these, too."""

    cell: str
    label: str
    run: str
    suite: str
    model: str
    target: str
    provider: str


class CellRow(RecordRow, frozen=True, kw_only=True):
    """One cell with the figures of its worst output.

    Attributes:
        label: Target and axes, as the report names them.
        run: Name of the run folder.
        target: Name of the target; ``target @ run`` if runs contradict each other.
        headroom: Largest error over the allowed one; null if it is undefined or infinite.
        delivered_bits: Delivered bits of the least precise output; null if all are exact, or not floating.
        noise_rms: Error of the worst output over the rounding noise of its model; null if it is exact, or the
            noise is unknown.
        noise_max: The largest such multiple of any element of that output.
        noise_precision: The precision whose rounding makes the noise.
        noise_like: The precision that the error resembles most.
        precision_error: Relative error of the worst output against the golden of the unconverted model.
        cpu_error: The same on the CPU EP with the same converted model.
        error_ratio: The ratio of the two.
        error_unknown: Why one of these three is missing; empty if none is, or if the model was not converted.
        nearer: Whether the ``golden`` or the ``ep`` is nearer to a more precise answer, in the first output
            that was compared with one; empty if none was.
        weak_golden: Why a wrong answer could go unnoticed; empty if it could not.
        approximate: The output that passes because of a document of the EP; may be empty.
        unconfirmed: Why float64 has not confirmed that values are wrong; may be empty.
        ep_share: Share of the compute on the EP, from 0 to 1; null if the cell did not run, or if unknown.
        lacks: The missing feature of the device for which it fails or is refused; empty if there is none.
        manners: Unexpected changes that the cell made to its process; empty if there are none.
        agreement: The smallest share of a task's answers that do not disagree with the golden's; null if no
            task is known, or if there is no figure.
        answers: The same in words, for each output and task; may be empty.
        unchecked: Checks that were left out, and why; empty if none was.
        known: Why the matrix expects the failure; empty if it does not.
        command: Runs the model on the target again; empty unless the cell failed or is unexpected.
        runs: How often the first data set was run, over all sessions; null if unknown.
        results: Number of different results of these runs, bit for bit.
        mismatched: Elements outside the tolerance, of all outputs.
        elements: Elements compared.
        p50_ms: Median latency, if it was measured.
    """

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
    ep_share: float | None
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
    approximate: str
    unconfirmed: str
    lacks: str
    manners: str
    agreement: float | None
    answers: str
    unchecked: str
    known: str
    command: str
    runs: int | None
    results: int | None
    mismatched: int
    elements: int
    golden: str
    create_ms: float | None
    first_run_ms: float | None
    p50_ms: float | None
    started: str


_OF_A_RUN = ("axes", "run", "known", "command")
"""Columns that the row of a record alone does not have; its axes become columns."""
_OF_EVERY_ROW = ("cell", "suite", "model", "target", "provider")
_COPIED = (
    *("axes", "verdict", "expected", "flaky", "phase", "cause"),
    *("reason", "weak_golden", "approximate", "unconfirmed", "golden", "started"),
)
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
        yield _row(
            record,
            columns,
            known=run.known.get(own[columns["run"]], {}).get(record.cell, ""),
            command=command_of(record, path) if concerns else "",
        )


def as_row(record: Record) -> dict[str, Any]:
    """Return a record as one flat row of a table: the columns of ``cells.csv``, with plain values.

    Each axis is a column. What only a run knows is left out: its name, why it expects a failure, and the
    command that runs the cell again.
    """
    copied = {name: getattr(record, name) for name in _OF_EVERY_ROW}
    row = _row(record, {**copied, "label": column_of(record).label, "run": ""}, known="", command="")
    plain: dict[str, Any] = msgspec.to_builtins(row)
    return {**{name: value for name, value in plain.items() if name not in _OF_A_RUN}, **row.axes}


def with_columns(run: MergedRun) -> Iterator[tuple[Record, dict[str, Any]]]:
    """Yield each record with the columns of ``RecordRow``, in the order of the runs.

    Including those not run.
    """
    names = dict(zip(run.folders, run.names, strict=True))
    for folder, record in run.records:
        copied = {name: getattr(record, name) for name in _OF_EVERY_ROW}
        yield record, {**copied, "label": column_of(record).label, "run": names[folder]}


def _row(record: Record, columns: Mapping[str, Any], *, known: str, command: str) -> CellRow:
    placed = record.placement
    _, noise = worst_noise(record) or (0.0, None)
    error = worst_error(record)
    return CellRow(
        **columns,
        **{name: getattr(record, name) for name in _COPIED},
        family=record.verdict.family,
        ep_nodes=placed.ep_nodes if placed else None,
        cpu_nodes=placed.cpu_nodes if placed else None,
        ep_share=share_on_ep(placed),
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
        lacks=lack_of(record),
        manners=manners_words(record.manners),
        agreement=least_share(record.agreement),
        answers=agreements_words(record.agreement),
        unchecked=unchecked_words(record.unchecked),
        known=known,
        command=command,
        runs=record.repeats.runs * record.repeats.sessions if record.repeats else None,
        results=record.repeats.distinct if record.repeats else None,
        mismatched=sum(output.mismatched for output in record.outputs),
        elements=sum(output.elements for output in record.outputs),
        create_ms=record.timings_ms.get("create"),
        first_run_ms=record.timings_ms.get("first_run"),
        p50_ms=record.latency.p50_ms if record.latency else None,
    )

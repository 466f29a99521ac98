"""The page *Details*: everything about the cells that a reader may want to examine."""

from collections.abc import Iterator

import msgspec

from harness.core.comparison.output_metrics import OutputMetrics
from harness.core.findings.leak import cell_leaks
from harness.core.records.manner import manners_words
from harness.core.records.record import OtherDraw, Record
from harness.core.records.run_work import NOT_CHECKED, unchecked_words
from harness.core.records.verdict import Family
from harness.core.text.counted import plural
from harness.core.text.errors import one_line
from harness.core.verdicts.own_error import own_error, without_verdict
from harness.core.verdicts.placement_verdict import share_words
from harness.report.cells.report_cell import (
    REASON_CHARS,
    SHOWN_OUTPUTS,
    SHOWN_RETRIES,
    FaultLink,
    ReportCell,
    command_of,
    details_rank,
)
from harness.report.cells.worst import is_within
from harness.report.view import Report
from harness.report.words.facts_in_words import evidence, noise_words, scenario_facts
from harness.report.words.figures import brief, first_of, multiple
from harness.report.words.tone import spoken, tone_of

MAX_CAPTURED_CHARS = 50_000
"""Largest number of characters of captured output in one file."""

_SHOWN_OPS = 12
_SECTIONS = (
    *("Unexpected", "Failed as expected", "Passed in part", "Unsupported", "Excluded"),
    "Not checked",
)


class OutputRow(msgspec.Struct, frozen=True, kw_only=True):
    """One output with its allowed error and its noise in words; the noise may be empty."""

    metrics: OutputMetrics
    allowed: str
    noise: str


class CellDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One cell in full.

    Attributes:
        outputs: The outputs, those out of tolerance first.
        fault: The fault that explains it; null if none is known.
        known: Why the matrix expects its failure; empty if it does not.
    """

    record: Record
    anchor: str
    tone: str
    facts: tuple[tuple[str, str], ...]
    outputs: tuple[OutputRow, ...]
    outputs_left_out: int
    captured: str
    command: str
    fault: FaultLink | None
    known: str


class DetailSection(msgspec.Struct, frozen=True, kw_only=True):
    """The details under one heading."""

    title: str
    details: tuple[CellDetail, ...]


class DetailPage(msgspec.Struct, frozen=True, kw_only=True):
    """The view of one file.

    Attributes:
        files: ``(file, first section)`` of all files, for links.
        left_out: Cells without details because the files are full.
    """

    file: str
    sections: tuple[DetailSection, ...]
    files: tuple[tuple[str, str], ...]
    left_out: int


def detail_pages(report: Report) -> Iterator[DetailPage]:
    """Yield a view for each file; cells keep their order within a section."""
    pages: dict[str, dict[int, list[CellDetail]]] = {}
    budget: dict[str, int] = {}
    ranked = [(rank, cell) for cell in report.cells if (rank := details_rank(cell.record)) is not None]
    # The most urgent first, so that the budget for captured output goes to what failed.
    for rank, cell in sorted(ranked, key=lambda pair: pair[0]):
        if not cell.href:
            continue
        file, _, anchor = cell.href.partition("#")
        left = budget.get(file, MAX_CAPTURED_CHARS)
        output = report.captured(cell.folder, cell.record) if left > 0 else ""
        budget[file] = left - len(output)
        details = pages.setdefault(file, {}).setdefault(rank, [])
        try:
            details.append(_detail(cell, anchor, report.matrix_path, output))
        except Exception as error:  # noqa: BLE001 - it costs the details of this cell only
            told = own_error(error)
            without = msgspec.structs.replace(cell, record=without_verdict(cell.record, told))
            details.append(_detail(without, anchor, report.matrix_path, told.traceback))
    files = tuple((file, _SECTIONS[next(iter(sections))]) for file, sections in pages.items())
    left_out = sum(not cell.href for _, cell in ranked)
    for file, sections in pages.items():
        found = tuple(
            DetailSection(title=_SECTIONS[rank], details=tuple(details)) for rank, details in sections.items()
        )
        yield DetailPage(file=file, sections=found, files=files, left_out=left_out)


def _detail(cell: ReportCell, anchor: str, matrix_path: str, captured: str) -> CellDetail:
    record = cell.record
    # Stable, so outputs keep their order within the wrong and within the right ones.
    outputs = sorted(record.outputs, key=lambda output: not output.mismatched)
    return CellDetail(
        record=record,
        anchor=anchor,
        tone=tone_of(record),
        facts=tuple(_facts(record)),
        outputs=tuple(
            OutputRow(metrics=output, allowed=_allowed(output), noise=noise_words(output.noise))
            for output in outputs[:SHOWN_OUTPUTS]
        ),
        outputs_left_out=max(0, len(outputs) - SHOWN_OUTPUTS),
        captured=captured,
        command=command_of(record, matrix_path),
        fault=cell.fault,
        known=cell.known,
    )


def _placed(record: Record) -> Iterator[tuple[str, str]]:
    placed = record.placement
    if placed is None:
        return
    for where, ops in (placed.chain_ops or {"the EP": placed.ep_ops}).items():
        yield f"On {one_line(where, 60)}", _nodes(sum(ops.values()), ops)
    yield "On the CPU", _nodes(placed.cpu_nodes, placed.cpu_ops)
    if placed.ep_share is not None:
        yield "Share of the EP", share_words(placed)


def _facts(record: Record) -> Iterator[tuple[str, str]]:
    if record.fed:
        yield "Fed", one_line(record.fed, 300)
    if record.cause:
        yield "Cause", record.cause
    if record.phase and record.verdict.family is not Family.PASSED:
        yield "Phase", record.phase.value
    yield from _placed(record)
    yield from _device(record)
    yield from _times(record)
    yield from scenario_facts(record)
    yield from evidence(record)
    yield from _worth(record)
    yield from _tries(record)
    if record.artifacts:
        yield "Artifacts", record.artifacts


def _tries(record: Record) -> Iterator[tuple[str, str]]:
    """Yield where a cell ran, and its further tries."""
    if record.place:
        yield "Place", record.place
    if record.elsewhere:
        tries = [f"{one.place}: {spoken(one.verdict)}" for one in record.elsewhere[:SHOWN_RETRIES]]
        yield "Tried again at", ", ".join(tries)
    if record.attempt > 1:
        yield "Attempt", str(record.attempt)
    if record.retries:
        yield "Tried again", ", ".join(first_of([*map(spoken, record.retries)], SHOWN_RETRIES))


def _worth(record: Record) -> Iterator[tuple[str, str]]:
    """Yield facts about the golden and about a right answer."""
    if record.golden and record.golden != "cpu":
        whose = "the golden of the profile" if record.golden == "profile" else "expected data of the suite"
        yield "Judged by", whose
    if record.weak_golden:
        yield "Weak golden", one_line(record.weak_golden, REASON_CHARS)
    if record.approximate:
        yield "Approximate", one_line(record.approximate, REASON_CHARS)
    if leaks := cell_leaks(record):
        yield "Leaks", "; ".join(leaks)
    if record.manners:
        yield "Manners", one_line(manners_words(record.manners), REASON_CHARS)
    if record.unconfirmed:
        yield "Not confirmed in float64", one_line(record.unconfirmed, REASON_CHARS)
    if record.other_draws:
        yield "With other generated inputs", ", ".join(_of_draw(one) for one in record.other_draws)
    if record.beyond:
        yield "Larger than the data", one_line(record.beyond, REASON_CHARS)
    if record.unchecked:
        told = unchecked_words(record.unchecked).removeprefix(NOT_CHECKED)
        yield "Not checked", one_line(told, REASON_CHARS)


def _of_draw(one: OtherDraw) -> str:
    sizes = " x ".join(map(str, one.dimensions.values()))
    return f"{spoken(one.verdict)} at {sizes}" if sizes else spoken(one.verdict)


def _device(record: Record) -> Iterator[tuple[str, str]]:
    device = record.device
    if device is not None and (device.wrong or device.not_proven or device.asked):
        told = device.wrong or (f"not proven: {device.not_proven}" if device.not_proven else "as asked for")
        asked = f"{device.asked}; " if device.asked else ""
        yield "Device", one_line(f"{asked}{told}", REASON_CHARS)


def _times(record: Record) -> Iterator[tuple[str, str]]:
    if record.timings_ms:
        yield (
            "Timings",
            ", ".join(f"{name.replace('_', ' ')} {brief(ms)} ms" for name, ms in record.timings_ms.items()),
        )
    if record.latency is not None:
        yield "Latency", f"median {brief(record.latency.p50_ms)} ms of {plural(record.latency.runs, 'run')}"


def _nodes(count: int, ops: dict[str, int]) -> str:
    if not count:
        return "no node"
    told = [f"{op} ×{n}" if n > 1 else op for op, n in ops.items()]  # noqa: RUF001
    return f"{count:,}" + (f": {', '.join(first_of(told, _SHOWN_OPS, 'types'))}" if told else "")


def _allowed(output: OutputMetrics) -> str:
    noise = output.noise
    if noise is not None and noise.rms_limit is not None and noise.max_limit is not None:
        return f"{multiple(noise.rms_limit)} its noise, {multiple(noise.max_limit)} in one element"
    tolerance = f"{brief(output.atol)} + {brief(output.rtol)} · |golden|"
    return f"{tolerance}, or as far off as the CPU EP" if is_within(output.precision_error) else tolerance

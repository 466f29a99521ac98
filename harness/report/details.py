"""What is known about one cell, for the cells that a reader wants to look into."""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from harness.core.errors import one_line
from harness.core.output_metrics import OutputMetrics
from harness.core.own_error import own_error, without_verdict
from harness.core.record import Record
from harness.core.verdict import Family, Verdict
from harness.report.cell import ReportCell
from harness.report.command import command_of
from harness.report.drift import is_within
from harness.report.evidence import evidence, noise_words
from harness.report.figures import brief, multiple, plural
from harness.report.flaky import SHOWN_RETRIES
from harness.report.scenario import scenario_facts
from harness.report.tone import SYMBOLS, spoken, tone_of

MAX_DETAILS_CHARS = 1_200_000
"""Details in one page, so that all of it stays below 3 MB, which a browser opens at once."""

MAX_DETAIL_PAGES = 4
"""Pages of details. They are for readers without a script, and for links; the table of models holds the
record of every cell."""

MAX_CAPTURED_CHARS = 300_000
"""Captured output over all cells."""

_REASON_CHARS = 600
_SHOWN_OUTPUTS = 8
_SHOWN_OPS = 12

CapturedOutput = Callable[[Path, Record], str]
"""``(run folder, record) -> excerpt``: what the cell wrote while it ran; empty where there is none."""


class OutputRow(msgspec.Struct, frozen=True, kw_only=True):
    """Metrics of one output, ready to be shown."""

    name: str
    kind: str
    mismatched: str
    max_abs: str
    max_rel: str
    allowed: str
    headroom: str
    bits: str
    noise: str
    wrong: bool


class CellDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One cell in full.

    Attributes:
        facts: ``(label, text)`` pairs: phase, placement, timings and the like.
        outputs: The outputs, those out of tolerance first.
        outputs_left_out: How many outputs are not listed.
        captured: Excerpt of what the process wrote; may be empty.
        command: Shell command that runs this cell again.
    """

    anchor: str
    cell: str
    tone: str
    symbol: str
    verdict: str
    expected: bool
    reason: str
    facts: tuple[tuple[str, str], ...]
    outputs: tuple[OutputRow, ...]
    outputs_left_out: int
    captured: str
    command: str


class DetailPage(msgspec.Struct, frozen=True, kw_only=True):
    """One file of details.

    Attributes:
        file: Its name, such as ``cells-2.html``.
        sections: The sections that begin or go on in it.
    """

    file: str
    sections: tuple["DetailSection", ...]


class DetailSection(msgspec.Struct, frozen=True, kw_only=True):
    """The details of one tone, under the heading ``title``."""

    title: str
    details: tuple[CellDetail, ...]


_SECTIONS = ("Unexpected", "Failed as expected", "Suspicious", "Passed in part", "Unsupported", "Excluded")


def wants_details(record: Record) -> int | None:
    """Index of the section for a record's details, the most urgent first; None where it needs none."""
    if not record.expected:
        return 0
    if record.suspicious:
        return 2
    if record.verdict is Verdict.PASS_PARTIAL:
        return 3
    return {Family.FAILED: 1, Family.UNSUPPORTED: 4, Family.EXCLUDED: 5}.get(record.verdict.family)


def details_chars(record: Record) -> int:
    """About how much of the page a record's details take: markup, metrics and command, and the reason."""
    return 700 + min(len(record.reason), _REASON_CHARS)


def hrefs(records: Iterable[Record]) -> dict[int, str]:
    """Index of a record -> where its details will stand; the most urgent first, as far as there is room."""
    ranked = sorted(
        (rank, index, details_chars(record))
        for index, record in enumerate(records)
        if (rank := wants_details(record)) is not None
    )
    found = {}
    before = 0
    for _, index, chars in ranked:
        page = before // MAX_DETAILS_CHARS
        if page < MAX_DETAIL_PAGES:
            found[index] = f"{_file(page)}#c{index}"
        before += chars
    return found


def detail_pages(
    cells: Iterable[ReportCell], matrix_path: str, captured: CapturedOutput
) -> tuple[DetailPage, ...]:
    """The details of every cell that has a place for them, by page and section, in the order of the cells."""
    pages: dict[str, dict[int, list[CellDetail]]] = {}
    budget = MAX_CAPTURED_CHARS
    # Most urgent first, so that the budget for captured output goes to what failed.
    urgent_first = sorted(
        (cell for cell in cells if cell.href), key=lambda cell: wants_details(cell.record) or 0
    )
    for cell in urgent_first:
        output = captured(cell.folder, cell.record) if budget > 0 else ""
        budget -= len(output)
        file, _, anchor = cell.href.partition("#")
        sections = pages.setdefault(file, {})
        details = sections.setdefault(wants_details(cell.record) or 0, [])
        try:
            details.append(_detail(cell.record, anchor, matrix_path, output))
        except Exception as error:  # noqa: BLE001 - it costs the details of this cell alone
            told = own_error(error)
            without = without_verdict(cell.record, told)
            details.append(_detail(without, anchor, matrix_path, told.traceback))
    return tuple(
        DetailPage(
            file=file,
            sections=tuple(
                DetailSection(title=_SECTIONS[rank], details=tuple(details))
                for rank, details in sections.items()
            ),
        )
        for file, sections in pages.items()
    )


def _file(page: int) -> str:
    return f"cells-{page + 1}.html" if page else "cells.html"


def _detail(record: Record, anchor: str, matrix_path: str, captured: str) -> CellDetail:
    look = tone_of(record)
    # Stable, so outputs keep their order within the wrong and within the right ones.
    outputs = sorted(record.outputs, key=lambda output: not output.mismatched)
    return CellDetail(
        anchor=anchor,
        cell=record.cell,
        tone=look,
        symbol=SYMBOLS[look],
        verdict=spoken(record.verdict),
        expected=record.expected,
        reason=one_line(record.reason, _REASON_CHARS),
        facts=tuple(_facts(record)),
        outputs=tuple(_output(output) for output in outputs[:_SHOWN_OUTPUTS]),
        outputs_left_out=max(0, len(outputs) - _SHOWN_OUTPUTS),
        captured=captured,
        command=command_of(record, matrix_path),
    )


def _facts(record: Record) -> Iterable[tuple[str, str]]:
    if record.cause:
        yield "Cause", record.cause
    if record.phase and record.verdict.family is not Family.PASSED:
        yield "Phase", record.phase.value
    if record.placement:
        placed = record.placement
        for where, ops in (placed.chain_ops or {"the EP": placed.ep_ops}).items():
            yield f"On {one_line(where, 60)}", _nodes(sum(ops.values()), ops)
        yield "On the CPU", _nodes(placed.cpu_nodes, placed.cpu_ops)
    yield from _times(record)
    yield from scenario_facts(record)
    yield from evidence(record)
    yield from _worth(record)
    if record.attempt > 1:
        yield "Attempt", str(record.attempt)
    if record.retries:
        shown = [spoken(verdict) for verdict in record.retries[:SHOWN_RETRIES]]
        more = [f"{len(record.retries) - SHOWN_RETRIES} more"] if len(record.retries) > SHOWN_RETRIES else []
        yield "Tried again", ", ".join(shown + more)
    if record.artifacts:
        yield "Artifacts", record.artifacts


def _worth(record: Record) -> Iterable[tuple[str, str]]:
    """What there is to say of the golden and of a right answer."""
    if record.golden and record.golden != "cpu":
        yield "Judged by", f"{record.golden} data of the suite"
    if record.weak_golden:
        yield "Weak golden", one_line(record.weak_golden, _REASON_CHARS)
    if record.suspicious:
        yield "Suspicious", one_line(record.suspicious, _REASON_CHARS)


def _times(record: Record) -> Iterable[tuple[str, str]]:
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
    shown = [f"{op} ×{n}" if n > 1 else op for op, n in list(ops.items())[:_SHOWN_OPS]]  # noqa: RUF001
    more = [f"{len(ops) - _SHOWN_OPS} more types"] if len(ops) > _SHOWN_OPS else []
    return f"{count:,}: {', '.join(shown + more)}" if shown else f"{count:,}"


def _allowed(output: OutputMetrics) -> str:
    noise = output.noise
    if noise is not None and noise.rms_limit is not None and noise.max_limit is not None:
        return f"{multiple(noise.rms_limit)} its noise, {multiple(noise.max_limit)} in one element"
    tolerance = f"{brief(output.atol)} + {brief(output.rtol)} · |golden|"
    return f"{tolerance}, or as the CPU EP does it" if is_within(output.precision_error) else tolerance


def _output(output: OutputMetrics) -> OutputRow:
    return OutputRow(
        name=one_line(output.name, 80),
        kind=f"{output.dtype}[{', '.join(map(str, output.shape))}]",
        mismatched=f"{output.mismatched:,} of {output.elements:,}",
        max_abs=brief(output.max_abs),
        max_rel=brief(output.max_rel),
        allowed=_allowed(output),
        headroom=brief(output.headroom),
        bits=brief(output.delivered_bits) if output.max_abs != 0.0 else "exact",
        noise=noise_words(output.noise),
        wrong=bool(output.mismatched),
    )

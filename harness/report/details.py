"""What is known about one cell, for the cells that a reader wants to look into."""

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from harness.core.errors import one_line
from harness.core.record import OutputMetrics, Record
from harness.core.verdict import Family, Verdict
from harness.report.cell import ReportCell
from harness.report.figures import brief
from harness.report.flaky import SHOWN_RETRIES
from harness.report.tone import SYMBOLS, spoken, tone

MAX_DETAILS_CHARS = 2_400_000
"""Details in one page, so that all of it stays at some 3 to 5 MB, which a browser opens at once."""

MAX_CAPTURED_CHARS = 300_000
"""Captured output in one page, over all cells."""

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


class DetailSection(msgspec.Struct, frozen=True, kw_only=True):
    """The details of one tone, under the heading ``title``."""

    title: str
    details: tuple[CellDetail, ...]


_SECTIONS = ("Unexpected", "Failed as expected", "Passed in part", "Unsupported", "Excluded")


def wants_details(record: Record) -> int | None:
    """Index of the section for a record's details, the most urgent first; None where it needs none."""
    if not record.expected:
        return 0
    if record.verdict is Verdict.PASS_PARTIAL:
        return 2
    return {Family.FAILED: 1, Family.UNSUPPORTED: 3, Family.EXCLUDED: 4}.get(record.verdict.family)


def details_chars(record: Record) -> int:
    """About how much of the page a record's details take: markup, metrics and command, and the reason."""
    return 700 + min(len(record.reason), _REASON_CHARS)


def sections(
    cells: Iterable[ReportCell], matrix_path: str, captured: CapturedOutput
) -> tuple[DetailSection, ...]:
    """The details of every cell that has an anchor, by section, in the order of the cells."""
    found: list[list[CellDetail]] = [[] for _ in _SECTIONS]
    budget = MAX_CAPTURED_CHARS
    # Most urgent first, so that the budget for captured output goes to what failed.
    urgent_first = sorted(
        (cell for cell in cells if cell.anchor), key=lambda cell: wants_details(cell.record) or 0
    )
    for cell in urgent_first:
        output = captured(cell.folder, cell.record) if budget > 0 else ""
        budget -= len(output)
        found[wants_details(cell.record) or 0].append(_detail(cell, matrix_path, output))
    return tuple(
        DetailSection(title=title, details=tuple(details))
        for title, details in zip(_SECTIONS, found, strict=True)
        if details
    )


def _detail(cell: ReportCell, matrix_path: str, captured: str) -> CellDetail:
    record = cell.record
    look = tone(record.verdict)
    # Stable, so outputs keep their order within the wrong and within the right ones.
    outputs = sorted(record.outputs, key=lambda output: not output.mismatched)
    return CellDetail(
        anchor=cell.anchor,
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
        command=_command(record, matrix_path),
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
    if record.timings_ms:
        yield (
            "Timings",
            ", ".join(f"{name.replace('_', ' ')} {brief(ms)} ms" for name, ms in record.timings_ms.items()),
        )
    if record.golden and record.golden != "cpu":
        yield "Judged by", f"{record.golden} data of the suite"
    if record.attempt > 1:
        yield "Attempt", str(record.attempt)
    if record.retries:
        shown = [spoken(verdict) for verdict in record.retries[:SHOWN_RETRIES]]
        more = [f"{len(record.retries) - SHOWN_RETRIES} more"] if len(record.retries) > SHOWN_RETRIES else []
        yield "Tried again", ", ".join(shown + more)
    if record.artifacts:
        yield "Artifacts", record.artifacts


def _nodes(count: int, ops: dict[str, int]) -> str:
    if not count:
        return "no node"
    shown = [f"{op} ×{n}" if n > 1 else op for op, n in list(ops.items())[:_SHOWN_OPS]]  # noqa: RUF001
    more = [f"{len(ops) - _SHOWN_OPS} more types"] if len(ops) > _SHOWN_OPS else []
    return f"{count:,}: {', '.join(shown + more)}" if shown else f"{count:,}"


def _output(output: OutputMetrics) -> OutputRow:
    return OutputRow(
        name=one_line(output.name, 80),
        kind=f"{output.dtype}[{', '.join(map(str, output.shape))}]",
        mismatched=f"{output.mismatched:,} of {output.elements:,}",
        max_abs=brief(output.max_abs),
        max_rel=brief(output.max_rel),
        allowed=f"{brief(output.atol)} + {brief(output.rtol)} · |golden|",
        headroom=brief(output.headroom),
        bits=brief(output.delivered_bits) if output.max_abs != 0.0 else "exact",
        wrong=bool(output.mismatched),
    )


def _command(record: Record, matrix_path: str) -> str:
    model = _literal(f"{record.suite}/{record.model}")
    return shlex.join(
        ["ep-harness", "run", matrix_path, "--target", _literal(record.target), "--model", model]
    )


def _literal(name: str) -> str:
    """A glob that matches just this name."""
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)

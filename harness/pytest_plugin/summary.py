"""The terminal summary: one table for each matrix, one row for each target, within 80 columns."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from harness.core.verdict import Family, Verdict
from harness.engine.tally import TargetRow
from harness.pytest_plugin.outcome import printable

WIDTH = 80

COLUMNS: tuple[tuple[str, Callable[[TargetRow], int]], ...] = (
    ("planned", lambda row: row.planned),
    ("pass", lambda row: row.verdicts.get(Verdict.PASS, 0)),
    ("partly", lambda row: row.verdicts.get(Verdict.PASS_PARTIAL, 0)),
    ("untested", lambda row: row.families.get(Family.UNTESTED, 0)),
    ("unsupp.", lambda row: row.families.get(Family.UNSUPPORTED, 0)),
    ("failed", lambda row: row.families.get(Family.FAILED, 0)),
    ("excl.", lambda row: row.families.get(Family.EXCLUDED, 0)),
    ("skip", lambda row: row.families.get(Family.SKIPPED, 0)),
    ("unexp.", lambda row: row.unexpected),
)
"""Heading and figure; together with their spaces they leave 18 columns to the target's name."""


def write_summary(
    terminal: pytest.TerminalReporter,
    matrix: str,
    rows: Sequence[TargetRow],
    missing: int,
    folder: Path | None,
) -> None:
    """Write one matrix's table.

    Args:
        terminal: Where.
        matrix: The matrix file, as its items name it.
        rows: One for each target.
        missing: Planned cells without a record.
        folder: The run folder, where there is one.
    """
    terminal.section(f"execution providers: {printable(matrix)}")
    for line in table(rows):
        terminal.write_line(line)
    for row in rows:
        if row.reason:
            unavailable = printable(f"{row.target} is unavailable: {row.reason}")
            for line in textwrap.wrap(unavailable, WIDTH - 1, subsequent_indent="    "):
                terminal.write_line(line)
    if missing:
        terminal.write_line(
            f"incomplete: {missing} of {sum(row.planned for row in rows)} cells have no record"
        )
    if folder is not None:
        terminal.write_line(f"records: {folder}")


def table(rows: Sequence[TargetRow]) -> list[str]:
    """The table's lines, without colours, at most 80 characters each for counts below 10,000."""
    head = [title for title, _ in COLUMNS]
    body = [[str(figure(row)) for _, figure in COLUMNS] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *body, strict=True)]
    names = [printable(row.target) for row in rows]
    room = max(8, WIDTH - sum(widths) - len(widths))
    width = min(room, max(map(len, ["target", *names])))
    return [
        " ".join([_cut(name, width), *(cell.rjust(size) for cell, size in zip(line, widths, strict=True))])
        for name, line in zip(["target", *names], [head, *body], strict=True)
    ]


def _cut(name: str, width: int) -> str:
    return name.ljust(width) if len(name) <= width else f"{name[: width - 1]}…"

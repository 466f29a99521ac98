"""The terminal summary: one table for each matrix, one row for each target, within 80 columns."""

import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.core.text import visible
from harness.run.summary import WIDTH, remarks, table
from harness.run.tally import TargetRow


def write_summary(
    terminal: pytest.TerminalReporter,
    matrix: str,
    rows: Sequence[TargetRow],
    missing: int,
    folder: Path | None,
    *,
    resume_command: str = "",
    unmeasured: str = "",
) -> None:
    """Write one matrix's table.

    Args:
        terminal: Where to write.
        matrix: The matrix file, as its items name it.
        rows: One for each target.
        missing: Number of planned cells without a record.
        folder: The run folder; None for none.
        resume_command: The command that runs the missing cells; empty for none.
        unmeasured: Why the requested latency was not measured; empty if it was.
    """
    terminal.section(f"execution providers: {visible(matrix)}")
    for line in table(rows):
        terminal.write_line(line)
    for word, line in remarks(rows):
        terminal.write_line(f"{word}: {line}")
    for row in rows:
        if row.reason:
            unavailable = visible(f"{row.target} is unavailable: {row.reason}")
            for line in textwrap.wrap(unavailable, WIDTH - 1, subsequent_indent="    "):
                terminal.write_line(line)
    if missing:
        terminal.write_line(
            f"incomplete: {missing} of {sum(row.planned for row in rows)} cells have no record"
        )
    if unmeasured:
        terminal.write_line(f"latency was not measured: {unmeasured}")
    if folder is not None:
        terminal.write_line(f"records: {folder}")
    if resume_command:
        terminal.write_line(f"resume: {resume_command}")

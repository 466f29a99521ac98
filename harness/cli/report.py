"""`ep-harness report`: files of finished runs, to be read and published."""

import sys
from collections.abc import Sequence
from pathlib import Path

from harness.report.publish import publish


def report(
    runs: Sequence[Path], *, out: Path, formats: str, templates: Path | None, baseline: Path | None
) -> int:
    """Render one run, or several as one, and print the paths of what was written.

    Args:
        runs: Run folders, or folders of run folders.
        out: Folder of the report.
        formats: Names of formats, with commas between them.
        templates: Folder of templates that take the place of shipped ones.
        baseline: The run that changes are told from.

    Raises:
        UsageError: A run cannot be read, a format is unknown, or ``out`` cannot be written.
    """
    names = [name.strip() for name in formats.split(",")]
    for path in publish(runs, out, names, templates=templates, baseline=baseline):
        sys.stdout.write(f"{path}\n")
    return 0

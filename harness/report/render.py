"""The report as one function: run folders in, the site out."""

from collections.abc import Sequence
from pathlib import Path

from harness.core.errors import UsageError
from harness.report.publish import publish


def render(runs: Sequence[Path], out: Path) -> Path:
    """Render one run, or several as one, as a site of HTML pages.

    Args:
        runs: Run folders, each with ``run.json`` and ``records.jsonl``.
        out: Folder for the report; created if it does not exist.

    Returns:
        The first page, ``out/index.html``.

    Raises:
        UsageError: A run folder is missing or damaged, or ``out`` cannot be written.
    """
    if not runs:
        raise UsageError.at("report", "no run folder given", "ep-harness report RUN...")
    return publish(runs, out, ("html",))[0]

"""The one entry: run folders in, ``index.html`` out."""

from collections.abc import Sequence
from pathlib import Path

from harness.core.errors import Problem, UsageError
from harness.report.captured import captured_output
from harness.report.html import to_html
from harness.report.merge import merge
from harness.report.read import RunData, read_run
from harness.report.view import build_report


def render(runs: Sequence[Path], out: Path) -> Path:
    """Render one run, or several with different cells, as a single self-contained page.

    Args:
        runs: Run folders, each with ``run.json`` and ``records.jsonl``.
        out: Folder for the report; created where it does not exist.

    Returns:
        The page, ``out/index.html``.

    Raises:
        UsageError: A run folder is missing or damaged, two runs hold different records of the same
            cell, or ``out`` cannot be written.
    """
    if not runs:
        raise UsageError(Problem(where="report", what="no run folder given", hint="ep-harness report RUN..."))
    run = merge(_read_all(runs))
    page = to_html(build_report(run, captured_output))
    index = out / "index.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        # The page states hashes of its own style and script, so its line ends must not be translated.
        index.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        problem = f"the report cannot be written: {error.strerror or error}"
        raise UsageError(Problem(where=str(index), what=problem, hint="choose another --out")) from error
    return index


def _read_all(folders: Sequence[Path]) -> list[RunData]:
    runs: list[RunData] = []
    problems: list[Problem] = []
    for folder in folders:
        try:
            runs.append(read_run(folder))
        except UsageError as error:
            problems.extend(error.problems)
    if problems:
        raise UsageError(*problems)
    return runs

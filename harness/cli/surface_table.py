"""The table that `check --api` prints: one line of words for each surface of onnxruntime's API."""

from pathlib import Path

from harness.cli.output import print_lines, wrapped
from harness.core.records.scenario import SCENARIOS
from harness.report.pages.surfaces import SurfaceAnswer, surface_rows
from harness.report.runs.read import read_run

_WORD = max(map(len, SurfaceAnswer))
_NAME = max(map(len, SCENARIOS))


def print_surfaces(run_folder: Path) -> None:
    """Print the answer of the target of a run to each surface; nothing without a record.

    A target that cannot be tried at all has one line: its reason is the same everywhere.
    """
    rows = surface_rows(read_run(run_folder).records)
    is_untried = {row.answer for row in rows} == {SurfaceAnswer.NOT_TRIED}
    for row in rows[:1] if is_untried else rows:
        name = "every surface" if is_untried else row.scenario
        print_lines(wrapped(row.told, f"{row.answer:{_WORD}} {name:{_NAME}} "))

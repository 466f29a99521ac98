"""The table that `check --api` prints: one line of words for each surface of onnxruntime's API."""

from pathlib import Path

from harness.cli.output import print_lines, wrapped
from harness.core.scenario import SCENARIOS
from harness.report.read import read_run
from harness.report.surfaces import surface_rows

_WORD = max(map(len, ("not there", "not tried", "untested")))
_NAME = max(map(len, SCENARIOS))


def print_surfaces(run_folder: Path) -> None:
    """Print the answer of the target of a run to each surface; nothing without a record."""
    rows = surface_rows(read_run(run_folder).records)
    for row in rows:
        print_lines(wrapped(row.told, f"{row.answer:{_WORD}} {row.scenario:{_NAME}} "))

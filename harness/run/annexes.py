"""What the front ends ask of annexes: each function is looked up when it is called, and has a protocol.

No front end imports an annex. Beside the function, its module holds it against the protocol.
"""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

from harness.corpus.suites.suite import Suite
from harness.plan.matrix import Matrix

_TRIAGE = "harness.annex.triage.command_triage"
_FAULT_LINES = "harness.annex.triage.command_pytest"
_STORE = "harness.annex.store.command_over_time"


class TriageFolder(Protocol):
    """Explain the failing cells of a run that has just ended."""

    def __call__(self, matrix: Matrix, run: Path, budget_s: float) -> None:
        """Write the faults into the folder of the run, and print them."""


class FaultLines(Protocol):
    """Explain the failing cells of a run that has just ended, for a page of text."""

    def __call__(self, matrix: Matrix, suites: Mapping[str, Suite], run: Path) -> Iterator[str]:
        """Write the faults into the folder of the run, and yield the lines that show each."""


class ReportOverTime(Protocol):
    """Write the report of the newest run of each matrix in a folder, and a page with the trends of all."""

    def __call__(
        self, folder: Path, out: Path, formats: Sequence[str], *, store: Path | None, templates: Path | None
    ) -> tuple[Path, ...]:
        """Return the first file of each format, and the page."""


def find_triage_folder() -> TriageFolder:
    """Return the function of the annex `triage`."""
    return cast("TriageFolder", importlib.import_module(_TRIAGE).triage_folder)


def find_fault_lines() -> FaultLines:
    """Return the function of the annex `triage`."""
    return cast("FaultLines", importlib.import_module(_FAULT_LINES).fault_lines)


def find_report_over_time() -> ReportOverTime:
    """Return the function of the annex `store`."""
    return cast("ReportOverTime", importlib.import_module(_STORE).report_over_time)

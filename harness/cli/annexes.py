"""What commands of the core ask of annexes: each function is looked up when it is called, and has a protocol.

The core imports no annex. Beside the function, its module holds it against the protocol.
"""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, cast

from harness.plan.matrix import Matrix

_TRIAGE = "harness.triage.command_triage"
_STORE = "harness.store.command_over_time"


class TriageFolder(Protocol):
    """Explain the failing cells of a run that has just ended."""

    def __call__(self, matrix: Matrix, run: Path, budget_s: float) -> None:
        """Write the faults into the folder of the run, and print them."""


class ReportOverTime(Protocol):
    """Write the report of the newest run of each matrix in a folder, and a page with the trends of all."""

    def __call__(
        self, folder: Path, out: Path, formats: Sequence[str], *, store: Path | None, templates: Path | None
    ) -> tuple[Path, ...]:
        """Return the first file of each format, and the page."""


def triage_folder() -> TriageFolder:
    """Return the function of the annex `triage`."""
    return cast("TriageFolder", importlib.import_module(_TRIAGE).triage_folder)


def report_over_time() -> ReportOverTime:
    """Return the function of the annex `store`."""
    return cast("ReportOverTime", importlib.import_module(_STORE).report_over_time)

"""The faults of a run as lines, for the end of a pytest session: ``--ep-triage``."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.annex.triage.run_triage import Triage, TriageSettings
from harness.core.records.fault import TRIAGE_FOLDER
from harness.core.text.errors import UsageError
from harness.core.text.visible_text import visible
from harness.corpus.suites.suite import Suite
from harness.engine.workers.admission import processors
from harness.plan.matrix import Matrix
from harness.report.runs.read import read_run
from harness.run.annexes import FaultLines

_BUDGET_S = 600.0
"""As `ep-harness run --triage`."""


def fault_lines(matrix: Matrix, suites: Mapping[str, Suite], run: Path) -> Iterator[str]:
    """Triage a run, and yield the lines that show its faults, each as soon as it is known."""
    try:
        data = read_run(run)
        planned = set(data.planned or ())  # only these: a record of another cell may name libraries to load
        records = tuple(record for record in data.records if record.cell in planned)
        settings = TriageSettings(jobs=processors(), budget_s=_BUDGET_S)
        work = Triage(matrix, suites, records, run / TRIAGE_FOLDER, settings, lambda _: None)
        for fault in work.run():
            yield visible(f"{fault.id}  {fault.sentence}")
            yield from (visible(f"    {cell}") for cell in fault.cells)
    except UsageError as error:
        yield visible(str(error))


_: FaultLines = fault_lines

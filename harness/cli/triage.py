"""`ep-harness triage`: from the failing cells of a run to faults with minimal models."""

import functools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import rich.progress
from rich.console import Console
from rich.markup import escape

from harness.cli.judge import matrix_of
from harness.cli.output import notify, wrapped
from harness.core.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK, UsageError
from harness.core.fault import FAULTS_FILE, TRIAGE_FOLDER, Fault
from harness.core.record import Record
from harness.core.text import visible
from harness.core.writing import write_aside, writing
from harness.engine.admission import processors
from harness.engine.prepare import open_suites
from harness.fuzz.histories import HISTORIES, earlier_of_all
from harness.plan.matrix import Matrix
from harness.report.figures import plural
from harness.report.read import read_run
from harness.triage.expect_entries import expect_entries
from harness.triage.triage import Note, Triage, TriageSettings, read_faults

SHOWN_CELLS = 3


class Wanted(TypedDict):
    """Arguments of the command that are settings of the triage, as ``TriageSettings`` has them."""

    cells: list[str]
    jobs: int | None
    budget_s: float | None
    keep_weights: bool


def triage(
    run: Path, *, out: Path | None, resume: bool, write_expect: Path | None, **settings: Unpack[Wanted]
) -> int:
    """Triage the failing cells of a run, and print each fault.

    Returns:
        0 if each failure is explained, 3 if one is not: time ran out, or it did not appear again.
    """
    data = read_run(run)
    for line in data.told:
        notify(line)
    folder = out or run / TRIAGE_FOLDER
    if (folder / FAULTS_FILE).exists() and not resume:
        what = "there is a triage in this folder already"
        raise UsageError.at(folder, what, "continue it: --resume; or give --out")
    wanted = TriageSettings(
        cells=tuple(settings["cells"]),
        jobs=settings["jobs"] or processors(),
        budget_s=settings["budget_s"],
        keep_weights=settings["keep_weights"],
    )
    code = triage_records(matrix_of(data.info, run), data.records, run, folder, wanted)
    if write_expect is not None:
        _write_expect(write_expect, folder, data.records)
    return code


def triage_folder(matrix: Matrix, run: Path, budget_s: float) -> None:
    """Triage the failing cells of a run that has just ended."""
    settings = TriageSettings(jobs=processors(), budget_s=budget_s)
    triage_records(matrix, read_run(run).records, run, run / TRIAGE_FOLDER, settings)


def triage_records(
    matrix: Matrix, records: Sequence[Record], run: Path, folder: Path, settings: TriageSettings
) -> int:
    """Triage failing cells of a run into a folder, print each fault, and return the command's exit code."""
    faults: list[Fault] = []
    shown = Display()
    earlier = functools.partial(earlier_of_all, run, records) if (run / HISTORIES).exists() else None
    with shown.bars:
        work = Triage(matrix, open_suites(matrix), records, folder, settings, shown.note, earlier)
        shown.say(f"triage   {plural(len(work.groups), 'group')} of failing cells")
        try:
            for fault in work.run():
                faults.append(fault)
                shown.fault(fault)
        except KeyboardInterrupt:
            shown.say(f"interrupted: {plural(len(faults), 'group')} done; continue with --resume")
            return EXIT_INTERRUPTED
        explained = [fault for fault in faults if not fault.inconclusive]
        found, cells = len({fault.id for fault in explained}), sum(len(fault.cells) for fault in explained)
        shown.say(f"faults   {folder / FAULTS_FILE}: {plural(found, 'fault')}, {plural(cells, 'cell')}")
        if left := len(work.groups) - len(faults):
            shown.say(f"time is up: {plural(left, 'group')} left; continue with --resume")
    return EXIT_OK if len(explained) == len(work.groups) else EXIT_INCOMPLETE


def _write_expect(path: Path, folder: Path, records: Sequence[Record]) -> None:
    """Write entries for the faults of a triage; they go to the end of a matrix file."""
    lines = tuple(expect_entries(read_faults(folder / FAULTS_FILE), records))
    with writing(path, hint="choose another file"):
        write_aside(path, "".join(f"{line}\n" for line in lines))
    notify(f"expect   {path}: entries: {lines.count('[[expect]]')}")


class Display:
    """Shows a triage: a line for each failure at work on a terminal, and what was learnt."""

    def __init__(self) -> None:
        self.console = Console(highlight=False, soft_wrap=True)
        self.bars = rich.progress.Progress(
            rich.progress.SpinnerColumn(),
            rich.progress.TextColumn("{task.description}"),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._lines: dict[str, rich.progress.TaskID] = {}
        self._lock = threading.Lock()

    def say(self, text: str) -> None:
        """Print one line."""
        self.console.print(visible(text), markup=False)

    def note(self, note: Note) -> None:
        """Show what was learnt; called from several threads."""
        with self._lock:
            text = visible(f"{note.about}: {note.text}")
            if note.about not in self._lines:
                self._lines[note.about] = self.bars.add_task("", total=None)
            self.bars.update(self._lines[note.about], description=escape(text))
            if not note.passing and not self.console.is_terminal:
                for line in wrapped(text, indent="  "):
                    self.say(line)

    def fault(self, fault: Fault) -> None:
        """Show a fault that is on disk."""
        with self._lock:
            line = self._lines.pop(fault.representative, None)
            if line is not None:
                self.bars.remove_task(line)
            more = len(fault.cells) - SHOWN_CELLS
            cells = ", ".join(fault.cells[:SHOWN_CELLS]) + (f" and {more:,} more" if more > 0 else "")
            for text in (
                *wrapped(f"{fault.id}  {fault.sentence}", indent="  "),
                *wrapped(cells, "  cells: "),
            ):
                self.say(text)

"""`ep-harness triage`: from the failing cells of a run to faults with minimal models."""

import functools
import threading
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import rich.progress
from rich.console import Console
from rich.markup import escape

from harness.annex.triage.expect_entries import expect_entries
from harness.annex.triage.histories import HISTORIES, earlier_of_all
from harness.annex.triage.run_triage import Note, Triage, TriageSettings, read_faults
from harness.cli.output import notify, wrapped
from harness.core.files.writing import write_aside, writing
from harness.core.records.fault import FAULTS_FILE, TRIAGE_FOLDER, Fault
from harness.core.records.record import Record
from harness.core.text.counted import plural
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK, UsageError, one_line
from harness.core.text.visible_text import visible
from harness.engine.prepare import open_suites, prepare
from harness.engine.workers.admission import processors
from harness.judge.judge_run import matrix_of
from harness.plan.matrix import Matrix
from harness.plan.target import Runtime, Target
from harness.report.runs.read import RunData, read_run
from harness.run.annexes import TriageFolder
from harness.run.own_runs import own_info
from harness.run.run_folder import PLAN

_SHOWN_CELLS = 3


class TriageOptions(TypedDict):
    """Arguments of the command that are settings of the triage, as ``TriageSettings`` has them."""

    cells: list[str]
    jobs: int | None
    budget_s: float | None
    keep_weights: bool


def triage(
    run: Path,
    *,
    matrix: Path | None,
    out: Path | None,
    resume: bool,
    write_expect: Path | None,
    **settings: Unpack[TriageOptions],
) -> int:
    """Triage the failing cells of a run, and print each fault.

    Targets are started as ``matrix`` has them. Without it they are those of the run, if this user made it.

    Returns:
        Return 0 if each failure is explained, 3 if one is not: time ran out, or it did not appear again.
    """
    data = read_run(run)
    for line in data.told:
        notify(line)
    trusted, records = trusted_matrix(data, matrix)
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
    code = triage_records(trusted, records, run, folder, wanted)
    if write_expect is not None:
        _write_expect(write_expect, folder, records)
    return code


def trusted_matrix(data: RunData, matrix: Path | None) -> tuple[Matrix, tuple[Record, ...]]:
    """Return the matrix whose targets may be started, and the records of its cells.

    It is the one that the user names, or that of a run which this user made here.

    Raises:
        UsageError: The run is a stranger's, or none of its cells is one of the matrix.
    """
    return _of_file(matrix, data) if matrix is not None else _of_own_run(data)


def _of_file(matrix: Path, data: RunData) -> tuple[Matrix, tuple[Record, ...]]:
    """Return a matrix that the user names, and the records of its cells."""
    plan, _ = prepare(matrix)
    records = _of_cells(data, {cell.id for cell in plan.cells}, matrix)
    if data.records and not records:
        what = f"none of the cells of {data.folder} is one of this matrix"
        raise UsageError.at(
            matrix, what, "its suites, folders, axes and names of targets have to be the same"
        )
    return plan.matrix, records


def _of_own_run(data: RunData) -> tuple[Matrix, tuple[Record, ...]]:
    """Return the matrix of a run that this user made here, and the records of its cells.

    Raises:
        UsageError: It is a stranger's, or was changed.
    """
    matrix = matrix_of(data.info, data.folder)
    if own_info(data.folder) == data.info:
        return matrix, _of_cells(data, set(data.planned or ()), data.folder / PLAN)
    told = "; ".join(f"{one_line(one.name, 40)} ({what})" for one in matrix.targets if (what := _starts(one)))
    what = (
        "you have not made this run with the cache of this machine, or it was changed since; "
        f"its targets are not started{told and f': {one_line(told, 200)}'}"
    )
    hint = f"name a matrix file of yours that has them: ep-harness triage {data.folder} --matrix MATRIX"
    raise UsageError.at(data.folder / "run.json", what, hint)


def _of_cells(data: RunData, cells: Collection[str], where: Path) -> tuple[Record, ...]:
    """Return the records of planned cells, and report how many others there are.

    Triage runs a cell by its axes, which may name libraries. Records whose axes differ from those of their id
    were left out when the run was read.
    """
    kept = tuple(record for record in data.records if record.cell in cells)
    if left := len(data.records) - len(kept):
        notify(f"{plural(left, 'record')} left out: of no cell of {where}")
    return kept


def _starts(target: Target) -> str:
    """Return what a target would start or load besides this Python's onnxruntime, for a message."""
    places = [] if target.places is None else ["places"]
    plugin = [] if target.plugin is None else [f"plugin {one_line(target.plugin, 60)}"]
    plain = Runtime()
    runtime = [
        name for name in Runtime.__struct_fields__ if getattr(target.runtime, name) != getattr(plain, name)
    ]
    env = [f"env {', '.join(target.env)}"] if target.env else []
    return ", ".join((*runtime, *places, *plugin, *env))


def triage_folder(matrix: Matrix, run: Path, budget_s: float) -> None:
    """Triage the failing cells of a run that has just ended.

    The run that it continues may be a stranger's.
    """
    settings = TriageSettings(jobs=processors(), budget_s=budget_s)
    data = read_run(run)
    records = _of_cells(data, set(data.planned or ()), run / PLAN)
    triage_records(matrix, records, run, run / TRIAGE_FOLDER, settings)


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
    """Write entries for the faults of a triage, for the end of a matrix file."""
    lines = tuple(expect_entries(read_faults(folder / FAULTS_FILE), records))
    with writing(path, hint="choose another file"):
        write_aside(path, "".join(f"{line}\n" for line in lines))
    notify(f"expect   {path}: entries: {lines.count('[[expect]]')}")


class Display:
    """Shows a triage: on a terminal a line for each failure in progress, and the findings."""

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
        """Show a finding; called from several threads."""
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
            more = len(fault.cells) - _SHOWN_CELLS
            cells = ", ".join(fault.cells[:_SHOWN_CELLS]) + (f" and {more:,} more" if more > 0 else "")
            for text in (
                *wrapped(f"{fault.id}  {fault.sentence}", indent="  "),
                *wrapped(cells, "  cells: "),
                *(wrapped(fault.fed, "  fed:   ") if fault.fed else ()),
            ):
                self.say(text)


_: TriageFolder = triage_folder

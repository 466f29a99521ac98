"""`ep-harness run`: plan, run, record, report."""

import atexit
import gc
import glob
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Unpack

from harness.cli.output import notify
from harness.cli.progress import Progress, progress
from harness.cli.selection import Selected, Selection
from harness.core.records.record import Record
from harness.core.text.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, HarnessError, one_line
from harness.core.verdicts.own_error import own_error
from harness.engine.tasks.events import Event, Noted, PlaceChanged, TargetReady, Warned
from harness.plan.matrix import Matrix
from harness.report.runs.read import RunData, read_run
from harness.run.annexes import find_triage_folder
from harness.run.interruption import Interruption
from harness.run.live_run import run_plan
from harness.run.run_folder import resume_command
from harness.run.tally import Tally


def run(
    matrix: Path,
    *,
    out: Path | None,
    resume: Path | None,
    with_report: bool,
    triage_budget_s: float | None = None,
    native_stack: bool = False,
    told: list[str] | None = None,
    **selection: Unpack[Selected],
) -> int:
    """Run a matrix, or the rest of an interrupted run, and write its run folder.

    Returns:
        Return the exit code, over all cells of the plan.

    With ``native_stack``, output of a crash ends with its native stack; the matrix of the run stays
    unchanged. ``told`` receives the lines that are printed; its owner does not continue an interrupted run.
    """
    atexit.register(gc.freeze)  # avoids a last collection at exit: 0.2 s after 7,500 cells
    chosen = Selection(**selection)
    plan = chosen.plan(matrix)
    before = None if resume is None else read_run(resume)
    for line in before.told if before is not None else ():
        notify(line)
    with (
        Interruption() as interruption,
        run_plan(plan, out=out, resume=before, native_stack=native_stack) as live,
    ):
        interruption.stops(live.stop)
        gc.freeze()  # these objects stay until the end; the collector need not visit them again
        tally = live.tally
        with progress(tally, told) as shown:
            if before is not None:
                shown.say(_resuming(before, tally))
            while (batch := live.next_batch()) is not None:
                _show(*batch, shown)
        shown.summary(tally)
    interrupted = interruption.came and not tally.complete
    code = tally.exit_code()
    if triage_budget_s is not None and not interrupted:
        _triage(plan.matrix, live.folder, triage_budget_s, shown)
    code = EXIT_INCOMPLETE if with_report and not _report(live.folder, shown) else code
    shown.say(f"records  {live.folder / 'records.jsonl'}")
    for command in _proposals(tally, live.folder, chosen.baseline) if tally.complete else ():
        shown.say(f"baseline {command}")
    if interrupted and told is None:
        shown.say(f"resume   {resume_command(plan, live.folder, *chosen.arguments())}")
    return EXIT_INTERRUPTED if interrupted else code


def _proposals(tally: Tally, run_folder: Path, given: Sequence[Path]) -> Iterator[str]:
    """Yield the commands that write missing baselines, or renew those whose failures no longer occur.

    An unexpected failure is no reason to renew a baseline, which would then accept it.
    """
    files: dict[Path, list[str]] = {}
    for row in tally.rows():
        if row.is_first:
            files.setdefault(given[0] if given[0].is_dir() else given[0].parent, []).append(row.target)
        elif row.fit is not None and row.fit.baseline is not None and row.mended and not row.unexpected:
            files.setdefault(Path(row.fit.baseline.file), [])
    every = len(tally.rows())
    for out, targets in files.items():
        only = [word for name in targets if len(targets) < every for word in ("--target", glob.escape(name))]
        yield shlex.join(["ep-harness", "baseline", "write", str(run_folder), *only, "--out", str(out)])


def _resuming(before: RunData, tally: Tally) -> str:
    torn = "; a torn last line is dropped" if before.torn else ""
    damaged = f"; {len(before.damaged):,} damaged lines are left out" if before.damaged else ""
    planned = sum(row.planned for row in tally.rows())
    return f"resuming     {tally.recorded:,} of {planned:,} cells have a record{torn}{damaged}"


def _show(events: Sequence[Event], records: Sequence[Record], shown: Progress) -> None:
    for event in events:
        if isinstance(event, TargetReady):
            shown.ready(event)
        elif isinstance(event, PlaceChanged):
            shown.place(event)
        elif isinstance(event, Warned):
            shown.say(f"warning: {event.message}")
        elif isinstance(event, Noted):
            shown.say(event.message)
    for record in records:
        try:
            shown.finished(record)
        except Exception as error:  # noqa: BLE001 - the record is written; only its line is missing
            shown.say(f"warning: {record.cell}: {own_error(error).reason}")


def _triage(matrix: Matrix, folder: Path, budget_s: float, shown: Progress) -> None:
    """Explain the failing cells, after the last one; whatever comes of it, the run keeps its exit code."""
    try:
        find_triage_folder()(matrix, folder, budget_s)
    except HarnessError as error:
        shown.say(f"triage   not done: {one_line(error)}")
    except Exception as error:  # noqa: BLE001 - the records are written; only their faults are missing
        shown.say(f"triage   not done: {own_error(error).reason}")


def _report(folder: Path, shown: Progress) -> bool:
    """Write the report; False if an exception of the harness prevents it."""
    from harness.report.report_files import write_report  # its templates take 0.05 s to import

    try:
        shown.say(f"report   {write_report([folder], folder / 'report')[0]}")
    except HarnessError:
        raise
    except Exception as error:  # noqa: BLE001 - the records are written; only their pages are missing
        shown.say(f"report   not written: {own_error(error).reason}")
        return False
    return True

"""`ep-harness run`: plan, run, record, report."""

import atexit
import datetime as dt
import gc
import glob
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

from harness.cli.output import notify
from harness.cli.progress import Progress, progress
from harness.cli.selection import Selection
from harness.core.errors import EXIT_INCOMPLETE, EXIT_INTERRUPTED, HarnessError, one_line
from harness.core.own_error import own_error
from harness.core.record import Record
from harness.core.verdict import Family
from harness.corpus.suites import Suite
from harness.engine.engine import Engine
from harness.engine.events import (
    Event,
    Finished,
    Noted,
    PlaceChanged,
    ProcessEnded,
    TargetReady,
    Warned,
)
from harness.engine.native_crash import with_native_stacks
from harness.engine.prepare import prepare
from harness.plan.matrix import Matrix
from harness.plan.plan import Plan
from harness.report.read import RunData, read_run
from harness.run.artifacts import keep_artifacts
from harness.run.durations import Durations
from harness.run.interruption import Interruption
from harness.run.resume import check_same_models
from harness.run.run_folder import RunFolder
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
    **selection: Any,
) -> int:
    """Run a matrix, or the rest of an interrupted run, and write its run folder.

    Returns:
        Return the exit code, over all cells of the plan.

    With ``native_stack``, output of a crash ends with its native stack; the matrix of the run stays
    unchanged. ``told`` receives the lines that are printed; its owner does not continue an interrupted run.
    """
    atexit.register(gc.freeze)  # avoids a last collection at exit: 0.2 s after 7,500 cells
    chosen = Selection(**selection)
    plan, suites = prepare(matrix)
    plan = chosen.of(plan)
    tally, durations = Tally(plan, named=bool(chosen.target)), Durations(matrix)
    before = None if resume is None else read_run(resume)
    for line in before.told if before is not None else ():
        notify(line)
    with Interruption() as interruption:
        if before is None:
            folder, done = RunFolder.create(out or default_folder(matrix), plan), tuple[Record, ...]()
        else:
            folder, done = _reopened(before, plan, suites)
        tally.add(*done)
        if before is not None:
            tally.resume(before.info)
        known = {record.cell for record in done}
        with progress(tally, told) as shown:
            if before is not None:
                shown.say(_resuming(before, len(done), len(plan.cells)))
            planned = with_native_stacks(plan) if native_stack else plan
            engine = Engine(planned, suites, durations_ms=durations.known_ms())
            try:
                interruption.stops(engine.stop)
                engine.submit(cell for cell in plan.cells if cell.id not in known)
                engine.drain()
                gc.freeze()  # these objects stay until the end; the collector need not visit them again
                for batch in engine.batches():
                    durations.note(_consume(batch, folder, tally, shown))
            finally:
                engine.close()
                durations.save()
                folder.finish()
        shown.summary(tally)
    interrupted = interruption.came and not tally.complete
    code = tally.exit_code()
    if triage_budget_s is not None and not interrupted:
        _triage(plan.matrix, folder.path, triage_budget_s, shown)
    code = EXIT_INCOMPLETE if with_report and not _report(folder.path, shown) else code
    shown.say(f"records  {folder.path / 'records.jsonl'}")
    for command in _proposals(tally, folder.path, chosen.baseline) if tally.complete else ():
        shown.say(f"baseline {command}")
    if interrupted and told is None:
        shown.say(f"resume   {folder.resume_command(*chosen.arguments())}")
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


def _reopened(
    before: RunData, plan: Plan, suites: Mapping[str, Suite]
) -> tuple[RunFolder, tuple[Record, ...]]:
    """Return the folder of an interrupted run, and its records that are kept.

    Cells without a verdict run again: a file changed meanwhile, or the harness itself failed.
    """
    again = {one.cell for one in before.records if one.family is Family.MISSING}
    done = tuple(record for record in before.records if record.cell not in again)
    folder = RunFolder.reopen(before.folder, plan, before.info, len(done), again)
    check_same_models(done, plan, suites, str(before.folder))
    return folder, done


def default_folder(matrix: PurePath) -> Path:
    """Return the run folder of a run without ``--out``: named in UTC, so that names sort."""
    now = dt.datetime.now(dt.UTC).strftime("%Y%m%d-%H%M%S")
    return Path("runs") / f"{matrix.stem}-{now}"


def _resuming(before: RunData, done: int, planned: int) -> str:
    torn = "; a torn last line is dropped" if before.torn else ""
    damaged = f"; {len(before.damaged):,} damaged lines are left out" if before.damaged else ""
    return f"resuming     {done:,} of {planned:,} cells have a record{torn}{damaged}"


def _consume(batch: list[Event], folder: RunFolder, tally: Tally, shown: Progress) -> tuple[Record, ...]:
    records = [
        keep_artifacts(folder.path, event, lambda text: shown.say(f"warning: {text}"))
        for event in batch
        if isinstance(event, Finished)
    ]
    for event in batch:
        if isinstance(event, TargetReady):
            folder.ready(event)
            tally.ready(event.target, event.fingerprint)
            shown.ready(event)
        elif isinstance(event, PlaceChanged):
            folder.place(event)
            shown.place(event)
        elif isinstance(event, ProcessEnded):
            folder.ended(event)
            tally.ended(event)
        elif isinstance(event, Warned):
            shown.say(f"warning: {event.message}")
        elif isinstance(event, Noted):
            shown.say(event.message)
    written = folder.add(*records)
    tally.add(*written)
    for record in written:
        try:
            shown.finished(record)
        except Exception as error:  # noqa: BLE001 - the record is written; only its line is missing
            shown.say(f"warning: {record.cell}: {own_error(error).reason}")
    return written


def _triage(matrix: Matrix, folder: Path, budget_s: float, shown: Progress) -> None:
    """Explain the failing cells after the last one; whatever the result, the run keeps its exit code."""
    from harness.cli.triage import triage_folder

    try:
        triage_folder(matrix, folder, budget_s)
    except HarnessError as error:
        shown.say(f"triage   not done: {one_line(error)}")
    except Exception as error:  # noqa: BLE001 - the records are written; only their faults are missing
        shown.say(f"triage   not done: {own_error(error).reason}")


def _report(folder: Path, shown: Progress) -> bool:
    """Write the report; False if an exception of the harness prevents it."""
    from harness.report.render import render  # its templates take 0.05 s to import

    try:
        shown.say(f"report   {render([folder], folder / 'report')}")
    except HarnessError:
        raise
    except Exception as error:  # noqa: BLE001 - the records are written; only their pages are missing
        shown.say(f"report   not written: {own_error(error).reason}")
        return False
    return True

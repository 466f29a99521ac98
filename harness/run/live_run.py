"""A run that goes on: a plan in, records out, each of which is in the run folder before it comes."""

import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from types import TracebackType
from typing import Protocol, Self

from harness.core.records.record import Record
from harness.core.records.run_info import RunInfo
from harness.core.records.verdict import Family
from harness.core.text.errors import UsageError
from harness.engine.engine import Engine
from harness.engine.prepare import RunnablePlan
from harness.engine.processes.native_crash import with_native_stacks
from harness.engine.tasks.events import Event, Finished, Warned
from harness.run.artifacts import keep_artifacts
from harness.run.news import News, RunResults
from harness.run.resume import check_same_models
from harness.run.run_folder import RunFolder, default_folder


class InterruptedRun(Protocol):
    """An interrupted run, as ``read_run`` returns it."""

    @property
    def folder(self) -> Path:
        """Its run folder."""

    @property
    def info(self) -> RunInfo:
        """Its ``run.json``."""

    @property
    def records(self) -> Sequence[Record]:
        """Its records."""


def run_plan(
    plan: RunnablePlan,
    *,
    out: Path | str | None = None,
    resume: InterruptedRun | None = None,
    native_stack: bool = False,
) -> "LiveRun":
    """Start to run a plan, or the rest of an interrupted run.

    Args:
        plan: What ``make_plan`` returns; of an interrupted run the same plan again.
        out: The run folder; by default ``runs/<matrix>-<time>``.
        resume: The interrupted run, as ``read_run`` returns it; it goes on in its own folder.
        native_stack: Whether the output of a crash ends with its native stack (Linux).

    Returns:
        An iterator of the records. If it is not used up, close it, or use it in a ``with`` statement.

    Raises:
        UsageError: There is a run in the folder already, it cannot be written, or the matrix, a model or the
            environment is not what it was when the run began.
    """
    if resume is None:
        path = default_folder(PurePath(plan.matrix.path)) if out is None else Path(out)
        results = RunResults(plan, RunFolder.create(path, plan), named=plan.named)
        return LiveRun(plan, results, native_stack=native_stack)
    if isinstance(resume, str | PurePath):
        raise UsageError.at("resume", f"got the path {str(resume)!r}", "valid: read_run of that path")
    # Cells without a verdict run again: a file changed meanwhile, or the harness itself failed.
    again = {one.cell for one in resume.records if one.family is Family.MISSING}
    done = tuple(record for record in resume.records if record.cell not in again)
    folder = RunFolder.reopen(resume.folder, plan, resume.info, len(done), again)
    results = RunResults(plan, folder, named=plan.named)
    try:
        check_same_models(done, plan, plan.suites, str(resume.folder))
    except BaseException:
        results.finish()
        raise
    results.tally.add(*done)
    results.tally.resume(resume.info)
    return LiveRun(plan, results, frozenset(record.cell for record in done), native_stack=native_stack)


class LiveRun(Iterator[Record]):
    """The records of a run, as they come.

    The run ends with its last record, when it is closed, when it is dropped, and with its process. After that
    its processes have ended, and its folder can be read, and resumed if cells are missing. An exception while
    it waits, such as Ctrl-C, closes it as well. It needs no event loop, and runs beside one.

    Attributes:
        folder: The run folder.
        tally: The totals so far, with the exit code of ``ep-harness run``.
    """

    def __init__(
        self,
        plan: RunnablePlan,
        results: RunResults[RunFolder],
        known: frozenset[str] = frozenset(),
        *,
        native_stack: bool = False,
    ) -> None:
        self.folder, self.tally = results.folder.path, results.tally
        self._results = results
        self._waiting: deque[Record] = deque()
        planned = with_native_stacks(plan) if native_stack else plan
        try:
            self._engine = Engine(planned, plan.suites, durations_ms=results.durations.known_ms())
        except BaseException:
            results.finish()
            raise
        # Also at the end of the process: no run stays open, whatever its owner does.
        self._end = weakref.finalize(self, _end, self._engine, results)
        self._engine.submit(cell for cell in plan.cells if cell.id not in known)
        self._engine.drain()

    def __next__(self) -> Record:
        while not self._waiting:
            if (batch := self.next_batch()) is None:
                raise StopIteration
            self._waiting += batch[1]
        return self._waiting.popleft()

    def next_batch(self) -> tuple[list[Event], tuple[Record, ...]] | None:
        """Wait; return the next events, and the records among them as they are written. None after the last.

        Raises:
            UsageError: The folder cannot be written, or the run began in another environment.
        """
        if not self._end.alive:
            return None
        try:
            # A new iterator each time: if one were kept, its frame would keep this object alive.
            events = next(self._engine.batches(), None)
            if events is not None:
                return events, self._results.add(self._news(events))
        except BaseException:
            self.close()
            raise
        self.close()
        return None

    def _news(self, events: list[Event]) -> News:
        news = News()
        for event in tuple(events):
            if isinstance(event, Finished):
                warn = lambda text: events.append(Warned(message=text))  # noqa: E731 - it is used once
                news.records.append(keep_artifacts(self.folder, event, warn))
            else:
                news.note(event)
        return news

    def stop(self) -> None:
        """Have every process killed, and the records end. Takes no lock: a signal's handler may call it."""
        self._engine.stop()

    def close(self) -> None:
        """End the processes, and close the folder; cells without a record are missing then.

        Raises:
            UsageError: The folder cannot be written.
        """
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _end(engine: Engine, results: RunResults[RunFolder]) -> None:
    try:
        engine.close()
    finally:
        results.finish()

"""The engines of a pytest session: cells are submitted ahead, and items wait for their results."""

import contextlib
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from harness.core.records.cell import Cell
from harness.core.text.errors import UncontainedError, UsageError
from harness.engine.engine import Engine
from harness.engine.prepare import RunnablePlan
from harness.engine.tasks.events import Event, Finished, NotRun, PlaceChanged, Warned
from harness.engine.workers.admission import processors
from harness.pytest_plugin.benchmarks import why_not_measured
from harness.pytest_plugin.item_outcome import excerpt
from harness.pytest_plugin.matrices import MATRICES
from harness.pytest_plugin.plans import plans_of
from harness.pytest_plugin.scheduler import ITEMS_TOGETHER
from harness.run.artifacts import keep_artifacts
from harness.run.durations import Durations
from harness.run.news import News

Settle = Callable[[Finished, Callable[[str], None]], Finished]


class EngineRun:
    """One engine with at most so many ``processes``, and its results so far.

    ``settle`` is called with each result, and with a function that takes a warning; its return value is kept
    until it is taken.
    """

    def __init__(
        self,
        plan: RunnablePlan,
        processes: int,
        settle: Settle,
        *,
        measures: bool,
        gives_outputs: bool = False,
    ) -> None:
        durations = Durations(Path(plan.matrix.path))
        self._engine = Engine(
            plan, plan.suites, processes, durations.known_ms(), measures=measures, gives_outputs=gives_outputs
        )
        self._arrived: deque[Event] = deque()
        """Events that have left the engine. Each stays until it is consumed, whatever is raised meanwhile."""
        self._settle = settle
        self._known: set[str] = set()
        """Cells that are queued, or whose result is not taken yet."""
        self._finished: dict[str, Finished] = {}
        self._not_run: dict[str, str] = {}
        self._news = News()
        self._warnings: list[str] = []

    def submit(self, cells: Iterable[Cell]) -> None:
        """Queue the cells that are not queued yet and have no result."""
        fresh = {cell_id: cell for cell in cells if (cell_id := cell.id) not in self._known}
        self._known.update(fresh)
        self._engine.submit(fresh.values())

    def warm_up(self) -> None:
        """Start processes before the first cells."""
        self._engine.warm_up()

    def take(self, cell: Cell) -> Finished:
        """Wait for a cell's result and return it; submit the cell if needed."""
        cell_id = cell.id
        if cell_id not in self._known:
            self.submit((cell,))
        while cell_id not in self._finished:
            if cell_id in self._not_run:
                pytest.fail(f"not_run: {self._not_run[cell_id]}", pytrace=False)
            if not self._arrived:
                self._arrived += self._next_batch()
            self._consume_arrived()
        self._known.discard(cell_id)
        return self._finished.pop(cell_id)

    def _next_batch(self) -> list[Event]:
        """Wait for the next events. What another plugin raises meanwhile, such as a timeout, goes through."""
        try:
            # A new iterator each time: an exception during the wait ends the iterator that it passes through.
            return next(self._engine.batches())
        except (Exception, UncontainedError) as error:
            if error is not self._engine.failure:
                raise
            if isinstance(error, UsageError):  # such as a library that was replaced during the run
                pytest.exit(str(error), pytest.ExitCode.USAGE_ERROR)
            # No more results will come: each further item would fail with the same traceback.
            trace = "".join(traceback.format_exception(error))
            pytest.exit(f"the engine failed, a fault of ep-harness:\n{trace}", pytest.ExitCode.INTERNAL_ERROR)

    def _consume_arrived(self) -> None:
        while self._arrived:
            self._consume(self._arrived[0])
            self._arrived.popleft()

    def _consume(self, event: Event) -> None:
        if isinstance(event, Finished):
            finished = self._settle(event, self._warnings.append)
            self._finished[finished.record.cell] = finished
            self._news.records.append(finished.record)
            return
        self._news.note(event)
        if isinstance(event, PlaceChanged) and event.state != "ready":
            told = f"place {event.place} of {event.target} {event.state}"
            self._warnings.append(f"{told}: {event.reason}" if event.reason else told)
        elif isinstance(event, NotRun):
            self._not_run[event.cell] = event.reason
        elif isinstance(event, Warned):
            self._warnings.append(event.message)

    @property
    def has_warnings(self) -> bool:
        """Whether a warning is pending."""
        return bool(self._warnings)

    def give_warnings(self) -> None:
        """Issue the pending warnings, outside of other work: pytest may turn them into errors.

        Raises:
            pytest.PytestWarning: Warnings are errors.
        """
        while self._warnings:
            warnings.warn(pytest.PytestWarning(self._warnings.pop(0)), stacklevel=2)

    def take_news(self) -> "News":
        """Return what is new since the last call, also results that are not taken yet."""
        news, self._news = self._news, News()
        return news

    def close(self) -> "News":
        """End the engine, and return what is new since the last call.

        Its processes end by themselves if every submitted cell has its result; otherwise they are killed.
        """
        self._consume_arrived()
        if self._known <= self._finished.keys() | self._not_run.keys():
            self._engine.drain()
            self._take_rest()
        self._engine.close()
        self._take_rest()
        self._consume_arrived()
        return self.take_news()

    def _take_rest(self) -> None:
        with contextlib.suppress(Exception, UncontainedError):  # a failure of the engine was reported before
            for batch in self._engine.batches():
                self._arrived += batch


class Matrices:
    """The matrices of a session, and their engines: one for items, one for the fixture's tests."""

    def __init__(self, config: pytest.Config) -> None:
        given = getattr(config, "workerinput", {})
        workers = 1 if given.get(ITEMS_TOGETHER) else given.get("workercount", 1)
        self._processes = max(1, processors() // workers)
        out = config.getoption("ep_out")
        self._out = None if out is None else Path(out)
        self._config = config
        self._item_runs: dict[Path, EngineRun] = {}
        self._test_runs: dict[Path, EngineRun] = {}

    def for_items(self, path: Path) -> EngineRun:
        """Return the engine for items; it keeps only what a report shows of a result."""
        if path not in self._item_runs:
            self._item_runs[path] = EngineRun(
                plans_of(self._config).plan(path),
                self._processes,
                self._keep_little,
                measures=not why_not_measured(self._config),
            )
        return self._item_runs[path]

    def warm_up(self, path: Path) -> None:
        """Start processes while items are collected; of several matrices only for the first."""
        if not self._item_runs:
            self.for_items(path).warm_up()

    def for_tests(self, path: Path) -> EngineRun:
        """Return the engine for tests written in Python, which get the outputs, too."""
        if path not in self._test_runs:
            # The cells of named matrices run ahead, and would disturb measurements.
            measures = not (self._config.stash[MATRICES] or why_not_measured(self._config))
            self._test_runs[path] = EngineRun(
                plans_of(self._config).plan(path),
                self._processes,
                lambda finished, _: finished,
                measures=measures,
                gives_outputs=True,
            )
        return self._test_runs[path]

    def done_with(self, path: Path) -> News:
        """Close the engine of a matrix after its last item, and return what is new."""
        run = self._item_runs.pop(path, None)
        return News() if run is None else run.close()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Close every engine, however the session ended."""
        for runs in (self._item_runs, self._test_runs):
            while runs:
                runs.popitem()[1].close()

    def pytest_unconfigure(self) -> None:
        """Close every engine if pytest did not finish the session."""
        self.pytest_sessionfinish()

    def _keep_little(self, finished: Finished, warn: Callable[[str], None]) -> Finished:
        record = finished.record if self._out is None else keep_artifacts(self._out, finished, warn)
        return Finished(record=record, printed=excerpt(finished.printed))


_MATRICES = pytest.StashKey[Matrices]()


def matrices_of(config: pytest.Config) -> Matrices:
    """Return the session's matrices; the first call creates and registers them."""
    if _MATRICES not in config.stash:
        config.stash[_MATRICES] = Matrices(config)
        config.pluginmanager.register(config.stash[_MATRICES], "ep_harness_matrices")
    return config.stash[_MATRICES]

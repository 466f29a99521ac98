"""The hooks that run a matrix: cells submitted in advance, and the way of records to the main process."""

from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from harness.core.records.cell import Cell
from harness.engine.processes.prestarted import target_tables
from harness.pytest_plugin.brief import Brevity
from harness.pytest_plugin.items import CellItem
from harness.pytest_plugin.ledger import Ledger, enclose, mark_ended_early
from harness.pytest_plugin.matrices import only_matrices
from harness.pytest_plugin.scheduler import ITEMS_TOGETHER, SHARE, Shares, worker_share
from harness.pytest_plugin.session import Matrices, matrices_of


def register(config: pytest.Config, matrices: tuple[Path, ...]) -> None:
    """Register the plugins of a session with matrices: for a worker, a controller, or both in one."""
    register = config.pluginmanager.register
    state = matrices_of(config)
    register(Conductor(config, state), "ep_harness_conductor")
    if hasattr(config, "workerinput"):
        return
    register(Ledger(config, state, matrices), "ep_harness_ledger")
    if only_matrices(config) and getattr(config.option, "dist", "no") == "load":
        register(Shares(together=any(map(has_places, matrices))), "ep_harness_shares")


def has_places(matrix: Path) -> bool:
    """Return whether a target of a matrix has places."""
    return any("places" in table for table in target_tables(matrix))


class Conductor:
    """Submits the cells of items in advance, in the process that runs the items."""

    def __init__(self, config: pytest.Config, matrices: Matrices) -> None:
        self._config = config
        self._input: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._matrices = matrices
        self._ahead: dict[Path, list[Cell]] = {}
        self._left: Counter[Path] = Counter()
        self._brevity: Brevity | None = None

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note the cells that this process will run, as far as it can know."""
        self._brevity = Brevity(self._config, self._complete)
        if self._input is None:
            mine = session.items
        elif SHARE in self._input:
            together = bool(self._input.get(ITEMS_TOGETHER))
            indices = worker_share(len(session.items), *self._input[SHARE], together=together)
            mine = session.items[indices.start : indices.stop]
        else:
            return
        for item in mine:
            if isinstance(item, CellItem):
                self._left[item.path] += 1
                # A mark may skip the item; that is only known when it runs.
                if not marked(item):
                    self._ahead.setdefault(item.path, []).append(item.cell)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Loop over the items as pytest does, but without its wrappers around each of them."""
        stopped = session.testsfailed and not self._config.option.continue_on_collection_errors
        if (
            stopped
            or self._config.option.collectonly
            or not (self._brevity and self._brevity.spares_protocol)
        ):
            return None
        for item, nextitem in zip(session.items, [*session.items[1:], None], strict=True):
            if not self._run_briefly(item, nextitem):
                self._config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Run a cell without its phases, if no plugin uses them."""
        return self._run_briefly(item, nextitem) or None

    def _run_briefly(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Submit all cells with the first item, and run this one if it can skip the phases."""
        if not isinstance(item, CellItem):
            return False
        path = item.path
        run = self._matrices.for_items(path)
        same_file = isinstance(nextitem, CellItem) and nextitem.path == path
        # If the share of this process is unknown, submit this item and the next.
        if path in self._ahead:
            run.submit(self._ahead.pop(path))
        elif not self._left[path]:
            run.submit(
                [item.cell, nextitem.cell] if isinstance(nextitem, CellItem) and same_file else [item.cell]
            )
        # The last item of a file needs pytest's teardown of its collectors; pending warnings need pytest's
        # own protocol, which shows them or turns them into errors.
        brevity = self._brevity
        if brevity is None or not (brevity.spares_phases and same_file) or run.has_warnings or marked(item):
            return False
        brevity.run(item)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put the record into the report, which carries it to the process that writes it."""
        report = yield
        if call.when == "call" and isinstance(item, CellItem):
            self._complete(item, report)
        return report

    def _complete(self, item: CellItem, report: pytest.TestReport) -> None:
        if item.finished is None:
            if report.failed and not item.has_failed:
                mark_ended_early(report)
            return
        record = item.finished.record
        if record.timings_ms:
            # The duration of the cell, not of the wait.
            report.duration = sum(record.timings_ms.values()) / 1000
        if report.skipped and isinstance(report.longrepr, tuple):
            # The matrix file, not the line of this package that skips.
            report.longrepr = (str(item.path), 1, report.longrepr[2])
        item.finished = None
        self._left[item.path] -= 1
        if self._left[item.path] == 0:  # the last report also carries how the processes ended
            news = self._matrices.done_with(item.path)
        else:
            news = self._matrices.for_items(item.path).take_news()
        enclose(report, item.path, news, travels=self._input is not None)


def marked(item: CellItem) -> bool:
    """Whether an item or one of its collectors has a mark."""
    node: pytest.Item | pytest.Collector | None = item
    while node is not None:
        if node.own_markers:
            return True
        node = node.parent
    return False

"""The hooks that run a matrix: what is submitted ahead, and how a result travels to whoever owns the run."""

import atexit
import gc
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from harness.core.cell import Cell
from harness.pytest_plugin.brief import Brevity
from harness.pytest_plugin.items import CellItem
from harness.pytest_plugin.ledger import Ledger, enclose
from harness.pytest_plugin.scheduler import SHARE, Shares, share
from harness.pytest_plugin.session import Matrices, matrices_of


def register(config: pytest.Config, matrices: tuple[Path, ...]) -> None:
    """Register what a session with matrices needs, by its part: worker, controller, or both in one."""
    register = config.pluginmanager.register
    state = matrices_of(config)
    only_matrices = len(config.args) == len(matrices)
    register(Conductor(config, state, only_matrices=only_matrices), "ep_harness_conductor")
    if hasattr(config, "workerinput"):
        return
    register(Ledger(config, state, matrices), "ep_harness_ledger")
    if only_matrices and getattr(config.option, "dist", "no") == "load":
        register(Shares(), "ep_harness_shares")


class Conductor:
    """Runs ahead of the items, in the process that runs them.

    Args:
        config: Of the session.
        matrices: Of the session.
        only_matrices: Whether nothing but matrices is collected.
    """

    def __init__(self, config: pytest.Config, matrices: Matrices, *, only_matrices: bool) -> None:
        self._config = config
        self._only_matrices = only_matrices
        self._input: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._matrices = matrices
        self._ahead: dict[Path, list[Cell]] = {}
        self._left: Counter[Path] = Counter()
        self._brevity: Brevity | None = None

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Leave the garbage collector out: it finds none while items are made, and looks at all of them.

        And pytest's manager of fixtures, which cells do not have: it sorted all items by them, in a third of
        the time.
        """
        fixtures = self._config.pluginmanager.get_plugin("funcmanage")
        if self._only_matrices and fixtures is not None:
            self._config.pluginmanager.unregister(fixtures)
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            return (yield)
        finally:
            if was_enabled:
                gc.enable()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what this process is going to be asked for, as far as it can know."""
        self._brevity = Brevity(self._config, self._complete)
        if self._input is None:
            mine = session.items
        elif SHARE in self._input:
            indices = share(len(session.items), *self._input[SHARE])
            mine = session.items[indices.start : indices.stop]
        else:
            return
        # What is there by now stays until the end, and the collector need not look at it time and again.
        gc.freeze()
        if self._only_matrices:
            atexit.register(gc.freeze)  # nor at the rest, once more, when Python ends: 0.2 s
        for item in mine:
            if isinstance(item, CellItem):
                self._left[item.path] += 1
                # A mark may say that it is to be skipped, which only its turn will tell.
                if not marked(item):
                    self._ahead.setdefault(item.path, []).append(item.cell)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Go from item to item as pytest does, but without what it wraps around each of them."""
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
        """Run a cell without its phases, where that is all the same to everybody."""
        return self._run_briefly(item, nextitem) or None

    def _run_briefly(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Submit everything with the first item, and run this one if it can be done briefly."""
        if not isinstance(item, CellItem):
            return False
        path = item.path
        run = self._matrices.for_items(path)
        same_file = isinstance(nextitem, CellItem) and nextitem.path == path
        # Where it is not known what else this process will be asked for, that is this item and the next.
        if path in self._ahead:
            run.submit(self._ahead.pop(path))
        elif not self._left[path]:
            run.submit(
                [item.cell, nextitem.cell] if isinstance(nextitem, CellItem) and same_file else [item.cell]
            )
        # The last one of a file leaves pytest's stack of collectors as the next item wants to find it; and
        # it takes pytest's own way to have a warning shown, or made an error.
        brevity = self._brevity
        if brevity is None or not (brevity.spares_phases and same_file) or run.has_warnings or marked(item):
            return False
        brevity.run(item)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the record travel in the report, whichever process will write it."""
        report = yield
        if call.when == "call" and isinstance(item, CellItem):
            self._complete(item, report)
        return report

    def _complete(self, item: CellItem, report: pytest.TestReport) -> None:
        if item.finished is None:
            return
        record = item.finished.record
        if record.timings_ms:
            # What the cell took, and not how long somebody waited for it here.
            report.duration = sum(record.timings_ms.values()) / 1000
        if report.skipped and isinstance(report.longrepr, tuple):
            # Not the line of this package that says so.
            report.longrepr = (str(item.path), 1, report.longrepr[2])
        news = self._matrices.for_items(item.path).take_news()
        enclose(report, item.path, news, travels=self._input is not None)
        item.finished = None
        self._left[item.path] -= 1
        if self._left[item.path] == 0:
            self._matrices.done_with(item.path)


def marked(item: CellItem) -> bool:
    """Whether somebody has put a mark on an item, of whatever meaning."""
    node: pytest.Item | pytest.Collector | None = item
    while node is not None:
        if node.own_markers:
            return True
        node = node.parent
    return False

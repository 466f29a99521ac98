"""The hooks that run a matrix: what is submitted ahead, and how a result travels to whoever owns the run."""

import gc
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any, Literal

import pluggy
import pytest

from harness.core.cell import Cell
from harness.pytest_plugin.items import CellItem
from harness.pytest_plugin.ledger import Ledger, enclose
from harness.pytest_plugin.scheduler import SHARE, Shares, share
from harness.pytest_plugin.session import Matrices, matrices_of


def register(config: pytest.Config, matrices: tuple[Path, ...]) -> None:
    """Register what a session with matrices needs, by its part: worker, controller, or both in one."""
    register = config.pluginmanager.register
    state = matrices_of(config)
    register(Conductor(config, state), "ep_harness_conductor")
    if hasattr(config, "workerinput"):
        return
    register(Ledger(config, state, matrices), "ep_harness_ledger")
    only_matrices = len(config.args) == len(matrices)
    if only_matrices and getattr(config.option, "dist", "no") == "load":
        register(Shares(), "ep_harness_shares")


INDIFFERENT = frozenset(
    {"_pytest", "_hypothesis_pytestplugin", "harness", "pytest_benchmark", "pytest_cov", "syrupy", "xdist"}
)
"""Packages whose hooks have nothing to do where an item is no Python function and a phase is empty."""


class Conductor:
    """Runs ahead of the items, in the process that runs them.

    Args:
        config: Of the session.
        matrices: Of the session.
    """

    def __init__(self, config: pytest.Config, matrices: Matrices) -> None:
        self._config = config
        self._input: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._matrices = matrices
        self._ahead: dict[Path, list[Cell]] = {}
        self._left: Counter[Path] = Counter()
        self._briefly = self._phases_matter = False

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what this process is going to be asked for, as far as it can know."""
        self._briefly = self._may_be_brief()
        self._phases_matter = self._config.getoption("xmlpath", None) is not None or not self._indifferent(
            self._config.hook.pytest_runtest_logreport.get_hookimpls()
        )
        if self._input is None:
            mine = session.items
        elif SHARE in self._input:
            indices = share(len(session.items), *self._input[SHARE])
            mine = session.items[indices.start : indices.stop]
        else:
            return
        # What is there by now stays until the end, and the collector need not look at it time and again.
        gc.freeze()
        for item in mine:
            if isinstance(item, CellItem):
                self._left[item.path] += 1
                # A mark may say that it is to be skipped, which only its turn will tell.
                if not marked(item):
                    self._ahead.setdefault(item.path, []).append(item.cell)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        """Submit everything with the first item; where that is not known, this item and the next."""
        if not isinstance(item, CellItem):
            return None
        same_file = isinstance(nextitem, CellItem) and nextitem.path == item.path
        if item.path in self._ahead:
            self._matrices.for_items(item.path).submit(self._ahead.pop(item.path))
        elif not self._left[item.path]:
            on_demand = (
                [item.cell, nextitem.cell] if isinstance(nextitem, CellItem) and same_file else [item.cell]
            )
            self._matrices.for_items(item.path).submit(on_demand)
        # The last one of a file leaves pytest's stack of collectors as the next item wants to find it.
        if not (self._briefly and same_file) or marked(item):
            return None
        run_briefly(item, all_phases=self._phases_matter)
        return True

    def _may_be_brief(self) -> bool:
        """Whether nobody but pytest itself looks at the phases of an item, or runs it in its own way."""
        hooks, option = self._config.hook, self._config.option
        phases = (hooks.pytest_runtest_setup, hooks.pytest_runtest_call, hooks.pytest_runtest_teardown)
        implementations = [impl for hook in phases for impl in hook.get_hookimpls()]
        # Those around the whole protocol are around the brief one, too.
        ways = hooks.pytest_runtest_protocol.get_hookimpls()
        implementations += [impl for impl in ways if not (impl.wrapper or impl.hookwrapper)]
        wants_to_see = option.usepdb or getattr(option, "setupshow", False)
        return self._indifferent(implementations) and not wants_to_see

    def _indifferent(self, implementations: "Iterable[pluggy.HookImpl]") -> bool:
        return {impl.function.__module__.partition(".")[0] for impl in implementations} <= INDIFFERENT

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the record travel in the report, whichever process will write it."""
        report = yield
        if call.when == "call" and isinstance(item, CellItem) and item.finished is not None:
            record = item.finished.record
            if record.timings_ms:
                # What the cell took, and not how long somebody waited for it here.
                report.duration = sum(record.timings_ms.values()) / 1000
            if report.skipped and isinstance(report.longrepr, tuple):
                # Not the line of this package that says so.
                report.longrepr = (str(item.path), 1, report.longrepr[2])
            if item.news is not None:
                enclose(report, item.path, item.news, travels=self._input is not None)
            item.finished, item.news = None, None
            self._left[item.path] -= 1
            if self._left[item.path] == 0:
                self._matrices.done_with(item.path)
        return report


def marked(item: CellItem) -> bool:
    """Whether somebody has put a mark on an item, of whatever meaning."""
    node: pytest.Item | pytest.Collector | None = item
    while node is not None:
        if node.own_markers:
            return True
        node = node.parent
    return False


def run_briefly(item: CellItem, *, all_phases: bool) -> None:
    """Report an item as pytest does, without going through phases in which a cell has nothing to do.

    The engine has set the cell up and torn it down. pytest's way through these phases, with its capturing
    and its stack of collectors, would take longer than many a cell.

    Args:
        item: A cell whose result is there or on its way.
        all_phases: Report setup and teardown, too: there is somebody who reads these reports.
    """
    # It has no marks, and the names of its collectors would be copied into its report, and kept.
    item.keywords = {}
    hook = item.ihook
    location = item.location
    hook.pytest_runtest_logstart(nodeid=item.nodeid, location=location)
    if all_phases:
        hook.pytest_runtest_logreport(report=_nothing_to_do(item, "setup"))
    call = pytest.CallInfo.from_call(
        item.runtest, when="call", reraise=(pytest.exit.Exception, KeyboardInterrupt)
    )
    report = hook.pytest_runtest_makereport(item=item, call=call)
    hook.pytest_runtest_logreport(report=report)
    if report.failed and call.excinfo is not None:
        hook.pytest_exception_interact(node=item, call=call, report=report)
    if all_phases:
        hook.pytest_runtest_logreport(report=_nothing_to_do(item, "teardown"))
    hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=location)


def _nothing_to_do(item: CellItem, when: Literal["setup", "teardown"]) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=item.nodeid,
        location=item.location,
        keywords={},
        outcome="passed",
        longrepr=None,
        when=when,
        user_properties=item.user_properties,
    )

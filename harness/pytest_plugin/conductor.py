"""The hooks that run a matrix: what is submitted ahead, and how a result travels to whoever owns the run."""

from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

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


class Conductor:
    """Runs ahead of the items, in the process that runs them.

    Args:
        config: Of the session.
        matrices: Of the session.
    """

    def __init__(self, config: pytest.Config, matrices: Matrices) -> None:
        self._input: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._matrices = matrices
        self._ahead: dict[Path, list[Cell]] = {}
        self._left: Counter[Path] = Counter()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what this process is going to be asked for, as far as it can know."""
        if self._input is None:
            mine = session.items
        elif SHARE in self._input:
            indices = share(len(session.items), *self._input[SHARE])
            mine = session.items[indices.start : indices.stop]
        else:
            return
        for item in mine:
            if isinstance(item, CellItem):
                self._ahead.setdefault(item.path, []).append(item.cell)
        self._left = Counter({path: len(cells) for path, cells in self._ahead.items()})

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """Submit everything with the first item; where that is not known, this item and the next."""
        if isinstance(item, CellItem):
            cells = self._ahead.pop(item.path, [])
            on_demand = (
                [item, nextitem] if isinstance(nextitem, CellItem) and nextitem.path == item.path else [item]
            )
            self._matrices.for_items(item.path).submit([*cells, *(each.cell for each in on_demand)])

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
            enclose(report, item.path, record, item.ready)
            item.finished, item.ready = None, ()
            self._left[item.path] -= 1
            if self._left[item.path] == 0:
                self._matrices.done_with(item.path)
        return report

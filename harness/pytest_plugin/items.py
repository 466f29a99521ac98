"""A matrix file as a collector, its cells as items. Collecting opens no model and imports no onnxruntime."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.core.records.cell import Cell
from harness.core.text.errors import UsageError
from harness.plan.plan import Plan
from harness.pytest_plugin.item_outcome import ItemOutcome, outcome_of
from harness.pytest_plugin.plans import plans_of

if TYPE_CHECKING:
    from harness.engine.tasks.events import Finished
    from harness.pytest_plugin.session import Matrices


class MatrixCollector(pytest.File):
    """A matrix file named on the command line."""

    plan: Plan

    def collect(self) -> Iterator["CellItem"]:
        """Yield one item for each cell, in the order of the plan."""
        try:
            self.plan = plans_of(self.config).plan(self.path)
        except UsageError as error:
            raise self.CollectError(str(error)) from None
        if not self.config.option.collectonly:
            _engines(self.config).warm_up(self.path)
        for cell in self.plan.cells:
            # Explicit, because --lf reads the id from its cache and splits it without the brackets.
            name = cell.id
            kind = CellItem if self.plan.latency(cell) is None else TimedCellItem
            yield kind.from_parent(self, name=name, nodeid=f"{self.nodeid}::{name}", cell=cell)


class CellItem(pytest.Item):
    """One cell. The engine usually runs it ahead; the item waits for its result.

    A plugin that repeats failed tests gets the same outcome again: a cell has one record, and the matrix
    says by ``retries`` how often it is tried.

    Attributes:
        finished: Its result, from the end of its run until its report.
    """

    def __init__(self, *, cell: Cell, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cell = cell
        self.finished: Finished | None = None
        self._failed: ItemOutcome | None = None

    @property
    def has_failed(self) -> bool:
        """Whether its record makes it fail."""
        return self._failed is not None

    def runtest(self) -> None:
        """Wait for the cell's record, issue pending warnings, and end as the record requires."""
        outcome = self._failed
        if outcome is None:
            outcome = self._wait()
            _engines(self.config).for_items(self.path).give_warnings()
        settle(outcome)

    def end(self) -> None:
        """Wait for the cell's record, and end as it requires."""
        settle(self._wait())

    def _wait(self) -> ItemOutcome:
        self.finished = _engines(self.config).for_items(self.path).take(self.cell)
        record = self.finished.record
        self.user_properties.append(("verdict", record.verdict.value))
        plan = self.getparent(MatrixCollector).plan  # type: ignore[union-attr]  # items have no other parent
        outcome = outcome_of(record, self.cell, plan)
        if outcome.kind == "failed" and self.finished.printed:
            self.add_report_section("call", "output of the process", self.finished.printed)
        if outcome.kind == "failed":
            self._failed = outcome
        return outcome

    def reportinfo(self) -> tuple[Path, int, str]:
        """Return the matrix file: a cell has no own line."""
        # If this ended like the node id, pytest would change its dots as in a Python name.
        return self.path, 0, f"cell {self.name}"

    @property
    def location(self) -> tuple[str, int | None, str]:
        """``reportinfo`` with the path relative to rootdir: the node id of the matrix."""
        return self.nodeid.removesuffix(f"::{self.name}"), 0, f"cell {self.name}"


class TimedCellItem(CellItem):
    """A cell whose latency is measured: a benchmark for ``--benchmark-only`` and ``--benchmark-skip``."""

    fixturenames = ("benchmark",)


def node_id(config: pytest.Config, path: Path) -> str:
    """Return the node id of a matrix file: its path, where pytest's own id may leave out the folder."""
    return Path(os.path.relpath(path, config.rootpath)).as_posix()


def _engines(config: pytest.Config) -> "Matrices":
    from harness.pytest_plugin.session import matrices_of  # half of the package, and numpy

    return matrices_of(config)


def settle(outcome: ItemOutcome) -> None:
    """End a test with an outcome: raise pytest's skip, xfail or fail, without a traceback, or pass."""
    if outcome.kind == "skipped":
        pytest.skip(outcome.text)
    if outcome.kind == "xfailed":
        pytest.xfail(outcome.text)
    if outcome.kind == "failed":
        pytest.fail(outcome.text, pytrace=False)

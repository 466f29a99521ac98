"""The fixture ``ep_cell``: cells for tests written in Python."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.records.cell import Cell
from harness.core.records.record import Record
from harness.core.records.verdict import Family
from harness.core.values.value import Map, Sequence, Tensor, Value
from harness.corpus.case import Case
from harness.pytest_plugin.item_outcome import outcome_of
from harness.pytest_plugin.items import settle
from harness.pytest_plugin.plans import plans_of
from harness.pytest_plugin.session import matrices_of


class CellResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a cell.

    Attributes:
        record: The record, as ``ep-harness run`` would write it.
        outputs: Output name -> ``numpy.ndarray`` (dtype object for strings), a list for a sequence, a dict
            for a map, None for an empty optional; of the first data set, empty if nothing ran.
        case: The model with its inputs and expected outputs; None if it could not be read.
    """

    record: Record
    outputs: dict[str, Any]
    case: Case | None


class EpCell:
    """One cell of the matrix file ``path``, for a test."""

    def __init__(self, cell: Cell, path: Path, config: pytest.Config) -> None:
        self.cell = cell
        self._path = path
        self._config = config
        self._result: CellResult | None = None

    def run(self) -> CellResult:
        """Run the cell, once: later calls return the same result. The test judges the verdict.

        If the target is unavailable, the test is skipped, or fails if the matrix requires the target.
        """
        if self._result is None:
            engine_run = matrices_of(self._config).for_tests(self._path)
            finished = engine_run.take(self.cell)
            engine_run.give_warnings()
            if finished.record.family is Family.SKIPPED:
                plan = plans_of(self._config).plan(self._path)
                settle(outcome_of(finished.record, self.cell, plan))
            outputs = {name: plain_value(value) for name, value in finished.outputs}
            self._result = CellResult(record=finished.record, outputs=outputs, case=finished.case)
        return self._result


def plain_value(value: Value) -> Any:
    """Return a value as arrays, lists and dicts."""
    if isinstance(value, Tensor):
        return value.array
    if isinstance(value, Sequence):
        return [plain_value(item) for item in value.items]
    if isinstance(value, Map):
        return dict(zip(value.keys.array.tolist(), value.values.array.tolist(), strict=True))
    return None


def open_cell(request: pytest.FixtureRequest) -> EpCell:
    """Return the cell of a parametrized test."""
    cell, path = request.param
    return EpCell(cell, path, request.config)

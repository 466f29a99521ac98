"""The fixture ``ep_cell``: cells for tests written in Python."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.core.cell import Cell
from harness.core.errors import UsageError, valid_names
from harness.core.record import Record
from harness.core.value import Map, Sequence, Tensor, Value
from harness.core.verdict import Family
from harness.corpus.case import Case
from harness.plan.plan import Plan
from harness.plan.selector import SelectorIndex, one_or_more, selector_from
from harness.plan.unmatched import nearest_names
from harness.pytest_plugin.item_outcome import outcome_of
from harness.pytest_plugin.items import settle
from harness.pytest_plugin.session import Matrices, matrices_of

_EXAMPLE = '@pytest.mark.ep_matrix("matrices/smoke.toml", target="cpu", model="onnx-node/test_a*")'


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

    def __init__(self, cell: Cell, path: Path, matrices: Matrices) -> None:
        self.cell = cell
        self._path = path
        self._matrices = matrices
        self._result: CellResult | None = None

    def run(self) -> CellResult:
        """Run the cell, once: later calls return the same result. The test judges the verdict.

        If the target is unavailable, the test is skipped, or fails if the matrix requires the target.
        """
        if self._result is None:
            engine_run = self._matrices.for_tests(self._path)
            finished = engine_run.take(self.cell)
            engine_run.give_warnings()
            if finished.record.family is Family.SKIPPED:
                plan = self._matrices.plan(self._path)
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


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Run a test once for each cell that its marker ``ep_matrix`` selects.

    Raises:
        pytest.Collector.CollectError: The marker is missing or wrong, or the matrix is.
    """
    marker = metafunc.definition.get_closest_marker("ep_matrix")
    where = metafunc.definition.nodeid
    if marker is None:
        raise _error(where, f"ep_cell needs a marker that names the matrix: {_EXAMPLE}")
    if len(marker.args) != 1 or not isinstance(marker.args[0], str):
        raise _error(where, f"ep_matrix takes the path of one matrix file, then selectors: {_EXAMPLE}")
    path = metafunc.config.rootpath / marker.args[0]
    try:
        plan = matrices_of(metafunc.config).plan(path)
    except UsageError as error:
        raise _error(where, str(error)) from None
    cells = _selected(plan, dict(marker.kwargs), where)
    params = [(cell, path) for cell in cells]
    metafunc.parametrize("ep_cell", params, indirect=True, ids=[cell.id for cell in cells])


def open_cell(request: pytest.FixtureRequest) -> EpCell:
    """Return the cell of a parametrized test."""
    cell, path = request.param
    return EpCell(cell, path, matrices_of(request.config))


def _selected(plan: Plan, table: dict[str, Any], where: str) -> tuple[Cell, ...]:
    axes = {axis: None for cell in plan.cells for axis, _ in cell.axes}
    valid = ("suite", "model", "target", "provider", *axes)
    for key, globs in table.items():
        if key not in valid:
            raise _error(where, f"ep_matrix: no selector {key!r}; {valid_names(key, valid)}")
        texts = globs if isinstance(globs, (list, tuple)) and globs else [globs]
        if not all(isinstance(text, str) for text in texts):
            raise _error(where, f"ep_matrix: {key} takes a glob or a list of globs, got {globs!r}")
    providers = plan.matrix.first_providers
    index = SelectorIndex([selector_from(table)], providers)
    selected = tuple(cell for cell in plan.cells if index.matching(cell))
    if selected:
        return selected
    for key, globs in table.items():
        alone = SelectorIndex([selector_from({key: globs})], providers)
        if not any(map(alone.matching, plan.cells)):
            hint = nearest_names(key, one_or_more(globs), plan.cells, providers)
            raise _error(where, f"ep_matrix: no {key} matches {globs!r}; {hint}")
    raise _error(where, "ep_matrix: each selector matches some cells, but no cell matches all selectors")


def _error(where: str, text: str) -> pytest.Collector.CollectError:
    return pytest.Collector.CollectError(f"{where}: {text}")

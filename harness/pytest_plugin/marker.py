"""The marker ``ep_matrix``: the cells for which a test written in Python is run."""

from typing import Any

import pytest

from harness.core.records.cell import Cell
from harness.core.text.errors import UsageError, valid_names
from harness.plan.plan import Plan
from harness.plan.selector import SelectorIndex, one_or_more, selector_from
from harness.plan.unmatched import nearest_names
from harness.pytest_plugin.plans import plans_of

_EXAMPLE = '@pytest.mark.ep_matrix("matrices/smoke.toml", target="cpu", model="onnx-node/test_a*")'


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
        plan = plans_of(metafunc.config).plan(path)
    except UsageError as error:
        raise _error(where, str(error)) from None
    cells = _selected(plan, dict(marker.kwargs), where)
    params = [(cell, path) for cell in cells]
    metafunc.parametrize("ep_cell", params, indirect=True, ids=[cell.id for cell in cells])


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

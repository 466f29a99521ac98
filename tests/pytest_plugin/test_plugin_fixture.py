from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.core.values.value import Map, Sequence, Tensor
from harness.pytest_plugin.fixture import plain_value
from tests.pytest_plugin.projects import write_project

Run = Callable[..., Any]

TESTS = """
import numpy
import pytest

@pytest.mark.ep_matrix("m.toml", target="cpu", model=["models/abs.onnx", "neg.onnx"])
def test_right(ep_cell):
    result = ep_cell.run()
    assert result.record.verdict == "pass"
    assert result.record.cell == ep_cell.cell.id
    given = dict(result.case.data_sets[0].inputs)["x"].array
    wanted = numpy.abs(given) if ep_cell.cell.model == "abs.onnx" else -given
    numpy.testing.assert_allclose(result.outputs["y"], wanted)
    assert ep_cell.run() is result

@pytest.mark.ep_matrix("m.toml", target="ghost", model="abs.onnx")
def test_unavailable(ep_cell):
    ep_cell.run()
    raise AssertionError("it was skipped before")

@pytest.mark.ep_matrix("m.toml", graph_optimization="all")
@pytest.mark.parametrize("number", [1, 2])
def test_that_runs_nothing(ep_cell, number):
    pass
"""

SAME = """
import pytest

@pytest.mark.ep_matrix("m.toml", target="cpu", model="abs.onnx")
def test_same(ep_cell):
    assert ep_cell.run().record.verdict == "pass"
"""


def test_a_test_runs_for_each_selected_cell(project: Path, run_warm: Run, mode: tuple[str, ...]) -> None:
    (project / "test_cells.py").write_text(TESTS, encoding="utf-8")
    done = run_warm(project, *mode, "-v", "-rs", "test_cells.py")
    assert "25 passed" not in done.out
    assert "24 passed, 1 skipped" in done.lines[-1], done.out
    assert "test_cells.py::test_right[models/abs.onnx[cpu]]" in done.out
    assert "unavailable: not_installed: plugin package" in done.out
    assert "execution providers:" not in done.out, "a table is for items"


def test_the_fixture_and_the_items_share_a_session(project: Path, run_warm: Run) -> None:
    (project / "test_same.py").write_text(SAME, encoding="utf-8")
    done = run_warm(project, "-p", "no:xdist", "-v", "m.toml", "test_same.py", "-k", "abs and cpu")
    assert "2 passed" in done.lines[-1], done.out


WRONG = {
    "": "ep_cell needs a marker that names the matrix: @pytest.mark.ep_matrix(",
    "@pytest.mark.ep_matrix": "ep_matrix takes the path of one matrix file",
    "@pytest.mark.ep_matrix()": "ep_matrix takes the path of one matrix file",
    '@pytest.mark.ep_matrix("n.toml")': "n.toml: no such file",
    '@pytest.mark.ep_matrix("m.toml", targt="cpu")': "no selector 'targt'; did you mean 'target'?",
    '@pytest.mark.ep_matrix("m.toml", target=1)': "target takes a glob or a list of globs, got 1",
    '@pytest.mark.ep_matrix("m.toml", target="cpx")': "no target matches 'cpx'; did you mean 'cpu'?",
    '@pytest.mark.ep_matrix("m.toml", target="abort", model="neg.onnx")': (
        "each selector matches some cells, but no cell matches all selectors"
    ),
}
"""Marker -> what is said about it."""


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory, run_warm: Run) -> Any:
    """One run of files with one wrong marker each."""
    project = write_project(tmp_path_factory.mktemp("wrong") / "project")
    for number, marker in enumerate(WRONG):
        text = f"import pytest\n\n{marker}\ndef test_it(ep_cell): pass\n"
        (project / f"test_wrong_{number}.py").write_text(text, encoding="utf-8")
    return run_warm(project, "-p", "no:xdist")


def test_a_wrong_marker_stops_the_session_without_a_traceback(refused: Any) -> None:
    assert refused.code == pytest.ExitCode.INTERRUPTED, refused.out
    assert f"{len(WRONG)} errors" in refused.lines[-1]
    assert "Traceback" not in refused.out + refused.err


@pytest.mark.parametrize(("number", "marker"), list(enumerate(WRONG)))
def test_a_wrong_marker_is_an_error_of_a_line_or_two(refused: Any, number: int, marker: str) -> None:
    (line,) = [line for line in refused.lines if line.startswith(f"test_wrong_{number}.py::test_it: ")]
    assert WRONG[marker] in line


def test_values_come_as_plain_python() -> None:
    numbers = Tensor(dtype="float32", array=np.array([1.0, 2.0], np.float32))
    keys = Tensor(dtype="int64", array=np.array([7, 8]))
    assert plain_value(numbers) is numbers.array
    assert plain_value(Sequence(items=(numbers, None))) == [numbers.array, None]
    assert plain_value(Map(keys=keys, values=numbers)) == {7: 1.0, 8: 2.0}

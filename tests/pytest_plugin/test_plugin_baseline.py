"""``--ep-baseline``: the same comparison as under the command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pytest_plugin.projects import run_pytest, write_project

Run = Callable[..., Any]


@pytest.mark.long
def test_a_first_run_with_xdist(tmp_path: Path) -> None:
    project = write_project(tmp_path / "project")
    (project / "base").mkdir()
    options = ("-p", "xdist", "-n", "2", "-v", "-k", "relu and not ghost or add", "--ep-baseline", "base")
    done = run_pytest(project, *options, "m.toml", "--ep-out", "run")
    # A pass that the matrix does not expect fails no run that is compared, and a crash any.
    assert {cell: word for cell, word in done.outcomes.items() if "ghost" not in cell} == {
        "models/add.onnx[cpu]": "PASSED",
        "models/relu.onnx[cpu]": "PASSED",
        "models/relu.onnx[abort]": "FAILED",
    }
    assert "crash: expected no crash and no hang (first run on this kind of machine" in done.out
    assert "first run: cpu: first run on this kind of machine: nothing to compare" in done.out
    assert json.loads((project / "run" / "run.json").read_text("utf-8"))["matrix"]["baselines"] == []


def test_without_a_matrix_it_is_a_mistake(tmp_path: Path, run_warm: Run) -> None:
    done = run_warm(tmp_path, "--ep-baseline", "base")
    assert done.code == pytest.ExitCode.USAGE_ERROR
    assert "--ep-baseline is about a matrix, and none is named: pytest MATRIX.toml" in done.err

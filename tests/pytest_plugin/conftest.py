"""A small project with models and a matrix, and pytest run on it as a user would."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import harness

ROOT = Path(harness.__file__).parent.parent

MATRIX = """\
schema = 1

[models]
folders = ["models"]

[[target]]
name = "cpu"
provider = "CPUExecutionProvider"

[[target]]
name = "hurried"
provider = "CPUExecutionProvider"
timeouts_s = { create = 1e-6 }

[[target]]
name = "ghost"
provider = "GhostExecutionProvider"
plugin = "no_such_plugin_package"

[[exclude]]
target = "hurried"
model = ["add.onnx", "broken.onnx", "neg.onnx"]

[[exclude]]
target = "ghost"
model = "broken.onnx"

[[expect]]
model = "relu.onnx"
target = "cpu"
verdict = "mismatch"
reason = "https://example.org/1"

[[expect]]
model = "abs.onnx"
target = "hurried"
verdict = "hang"
reason = "nobody is that fast"
"""

OUTCOMES = {
    "models/abs.onnx[cpu]": "PASSED",
    "models/add.onnx[cpu]": "PASSED",
    "models/broken.onnx[cpu]": "SKIPPED",
    "models/neg.onnx[cpu]": "PASSED",
    "models/relu.onnx[cpu]": "FAILED",
    "models/abs.onnx[hurried]": "XFAIL",
    "models/relu.onnx[hurried]": "FAILED",
    "models/abs.onnx[ghost]": "SKIPPED",
    "models/add.onnx[ghost]": "SKIPPED",
    "models/neg.onnx[ghost]": "SKIPPED",
    "models/relu.onnx[ghost]": "SKIPPED",
}
"""What pytest says about each cell of the matrix, in the order of the plan."""

MODES = {"alone": ("-p", "no:xdist"), "xdist": ("-p", "xdist", "-n", "2")}


class Ran(msgspec.Struct, frozen=True):
    """How a run of pytest ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def outcomes(self) -> dict[str, str]:
        """Cell -> outcome, of a run with ``-v``."""
        word = "PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR"
        alone = re.findall(rf"^\S+?::(\S+) ({word})\b", self.out, re.MULTILINE)
        xdist = re.findall(rf"^\[gw\d+\] \[ *\d+%\] ({word}) \S+?::(\S+)", self.out, re.MULTILINE)
        return dict(alone) | {cell: outcome for outcome, cell in xdist}


RunPytest = Callable[..., Ran]


def environment() -> dict[str, str]:
    """Only the plugins that a test names, whatever is installed; and this checkout."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST_", "COV_"))}
    return env | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "COLUMNS": "100"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-p", "harness.pytest_plugin.plugin", *arguments]


def run_pytest(folder: Path, *arguments: str) -> Ran:
    done = subprocess.run(
        command(*arguments),
        cwd=folder,
        env=environment(),
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=120,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def write_model(path: Path, *operators: str) -> None:
    """A chain of operators with one float32 input of shape (2, 3); ``Add`` adds a constant."""
    nodes, last = [], "x"
    for number, operator in enumerate(operators):
        inputs = [last, "c"] if operator == "Add" else [last]
        last = f"t{number}" if number < len(operators) - 1 else "y"
        nodes.append(helper.make_node(operator, inputs, [last]))
    constant = numpy_helper.from_array(np.full((3,), 0.5, np.float32), "c")
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [constant] if "Add" in operators else [],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def write_project(folder: Path, matrix: str = MATRIX) -> Path:
    """Write the models and the matrix ``m.toml``."""
    models = folder / "models"
    models.mkdir(parents=True)
    for operator in ("Abs", "Neg", "Relu", "Add"):
        write_model(models / f"{operator.lower()}.onnx", operator)
    (models / "broken.onnx").write_bytes(b"not a model")
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "m.toml").write_text(matrix, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def harness_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _own_cache(harness_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EP_HARNESS_CACHE", str(harness_cache))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project")

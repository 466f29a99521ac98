"""A small project with models and a matrix, and pytest run on it as a user would."""

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import onnx
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
name = "abort"
provider = "CPUExecutionProvider"
env = { PYTHONPATH = "@FAULTS@" }

[[target]]
name = "ghost"
provider = "GhostExecutionProvider"
plugin = "no_such_plugin_package"

[[exclude]]
target = "abort"
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
target = "abort"
verdict = "crash"
reason = "it does"
"""

FAULTY = """\
import os
import onnxruntime

def die(*arguments, **options):
    os.write(2, b"last words")
    os.abort()

onnxruntime.InferenceSession.run = onnxruntime.InferenceSession.run_with_ort_values = die
"""
"""Every Python runs this at its start, if it finds it: one whose models crash."""

OUTCOMES = {
    "models/abs.onnx[cpu]": "PASSED",
    "models/add.onnx[cpu]": "PASSED",
    "models/broken.onnx[cpu]": "SKIPPED",
    "models/neg.onnx[cpu]": "PASSED",
    "models/relu.onnx[cpu]": "FAILED",
    "models/abs.onnx[abort]": "XFAIL",
    "models/relu.onnx[abort]": "FAILED",
    "models/abs.onnx[ghost]": "SKIPPED",
    "models/add.onnx[ghost]": "SKIPPED",
    "models/neg.onnx[ghost]": "SKIPPED",
    "models/relu.onnx[ghost]": "SKIPPED",
}
"""What pytest says about each cell of the matrix, in the order of the plan."""

LIMIT_S = 300
"""Seconds for a run of pytest; on a machine with nothing else to do it takes one to ten."""

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


def environment() -> dict[str, str]:
    """Only the plugins that a test names, whatever is installed; and this checkout.

    Below tox, pytest would keep what failed last in one place for all tests.
    """
    outer = ("PYTEST_", "COV_", "TOX_")
    env = {key: value for key, value in os.environ.items() if not key.startswith(outer)}
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
        timeout=LIMIT_S,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


WARM = """
import json, os, sys
import onnx, pytest
import harness.engine.engine, harness.pytest_plugin.conductor, harness.pytest_plugin.session

while line := sys.stdin.readline():
    asked = json.loads(line)
    if (child := os.fork()) == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
os.chdir(asked["folder"])
os.environ.clear()
os.environ.update(asked["env"])
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for name, descriptor in (("out", 1), ("err", 2)):
    os.dup2(os.open(asked[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
sys.exit(pytest.main(asked["arguments"]))
"""
"""A process that has imported what a session takes, and has a fork of itself run each."""


def run_python(folder: Path, program: str, given: str) -> str:
    """Return what a Python program prints that is given a text on standard input."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment(),
        input=given,
        capture_output=True,
        check=True,
        encoding="utf-8",
        timeout=LIMIT_S,
    )
    return done.stdout


def start_pytest(folder: Path, *arguments: str, **env: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*arguments),
        cwd=folder,
        env=environment() | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        start_new_session=True,
    )


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
    (folder / "faults").mkdir()
    (folder / "faults" / "sitecustomize.py").write_text(FAULTY, encoding="utf-8")
    text = matrix.replace("@FAULTS@", (folder / "faults").as_posix())
    (folder / "m.toml").write_text(text, encoding="utf-8")
    return folder

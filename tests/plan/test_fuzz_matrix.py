"""Any table in the place of a matrix file is a plan or a UsageError."""

import tomllib
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.core.text.errors import UsageError
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from, read_matrix
from tests.mutations import each_replaced, mutated

FEW = settings(max_examples=200, derandomize=True, deadline=None, database=None)

MATRIX = """
schema = 1

[models]
suites = ["onnx-node"]
folders = ["models"]
exclude = ["onnx-node/test_*_expanded"]
dimensions = { batch = 2 }

[axes]
precision = ["fp32", "fp16"]
graph_optimization = ["all", "disabled"]
scenario = ["plain", "concurrent"]

[scenarios.concurrent]
threads = 2

[[model]]
model = "models/*"
dimensions = { batch = 3 }
inputs.x = { shape = [1, 2], low = 0, high = 5 }

[[target]]
name = "a"
provider = "XnnpackExecutionProvider"
options = { key = "value" }
env = { KEY = "value" }
device = { type = "CPU" }
runtime = { packages = ["onnxruntime==1.31.1"] }
workers = 2
unchecked_options = true
retries = 1
timeouts_s = { run = 300 }
axes = { "option.num_streams" = ["1", "2"] }

[[target]]
name = "b"
provider = ["OpenVINOExecutionProvider", "CPUExecutionProvider"]
plugin = "onnxruntime_ep_openvino"
required = true

[[exclude]]
target = "b"
precision = "fp16"

[[tolerance]]
precision = "fp16"
rtol = 1e-3
atol = 2.5e-3

[[tolerance]]
target = ["a"]
noise = { rms = 3.0, max = 32.0 }

[[expect]]
model = "models/one*"
target = "a"
verdict = "crash"
reason = "https://example.org"

[[latency]]
model = "models/*"
repeats = 10

[[repeat]]
target = "a"
runs = 3
"""

MODELS = {"onnx-node": ("test_abs", "test_abs_expanded"), "models": ("one", "two")}


def check(error: UsageError) -> None:
    assert error.problems
    assert str(error)


def planned(table: Any) -> int:
    """How many cells a table comes to."""
    return len(expand(matrix_from(table, Path("m.toml")), MODELS).cells)


def test_the_matrix_that_is_mutated_is_valid() -> None:
    assert planned(tomllib.loads(MATRIX)) > 10


@FEW
@given(st.data())
def test_any_table_is_a_plan_or_an_error_of_use(data: st.DataObject) -> None:
    table = data.draw(mutated(tomllib.loads(MATRIX)).filter(lambda made: isinstance(made, dict)))
    try:
        planned(table)
    except UsageError as error:
        check(error)


def test_each_part_of_a_table_may_be_another_thing() -> None:
    for table in each_replaced(tomllib.loads(MATRIX), 29):
        if isinstance(table, dict):
            try:
                planned(table)
            except UsageError as error:
                check(error)


@FEW
@given(st.integers(0, len(MATRIX.encode())), st.binary(max_size=12), st.integers(0, 40))
@example(0, b"\xff\xfe", 0)
def test_any_file_is_a_matrix_or_an_error_of_use(
    tmp_path_factory: Any, at: int, written: bytes, erased: int
) -> None:
    path = Path(tmp_path_factory.getbasetemp()) / "fuzz.toml"
    content = MATRIX.encode()
    path.write_bytes(content[:at] + written + content[at + erased :])
    try:
        expand(read_matrix(path), MODELS)
    except UsageError as error:
        check(error)


def test_a_table_that_is_nested_too_deep_is_an_error_of_use(tmp_path: Path) -> None:
    for text in ("a = " + "[" * 100_000, "a = " + "{ a = " * 100_000, "x" * 3 + " = " + "9" * 10_000):
        (tmp_path / "m.toml").write_text(text, encoding="utf-8")
        try:
            read_matrix(tmp_path / "m.toml")
        except UsageError as error:
            check(error)

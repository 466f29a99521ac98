"""Which inputs choose a branch, and what a record tells of the branch that no data set takes."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.records.run_work import Unchecked
from harness.corpus.model.branch_inputs import branch_inputs
from tests.kit import of_folder, records_of, run_matrix

BRANCHES = """<then_branch = t () => (float[N] a) { a = Relu (x) },
else_branch = e () => (float[N] b) { b = Neg (x) }>"""
MIXED = "s = ReduceSum <keepdims = 0> (x) p = Cast <to = 9> (s) b = And (p, flag)"


def model_of(flag: str, body: str) -> onnx.ModelProto:
    text = f"""<ir_version: 10, opset_import: ["" : 21]>
    g ({flag} flag, float[N] x) => (float[N] y) <int64[1] first = {{0}}, bool set = {{1}}> {{ {body} }}"""
    return onnx.parser.parse_model(text)


@pytest.mark.parametrize(
    ("flag", "body", "found"),
    [
        ("bool", f"y = If (flag) {BRANCHES}", ("flag",)),
        ("bool[1]", f"s = Squeeze (flag, first) n = Not (s) y = If (n) {BRANCHES}", ("flag",)),
        ("int64", f"c = Cast <to = 9> (flag) y = If (c) {BRANCHES}", ("flag",)),
        ("bool", f"y = If (set) {BRANCHES}", ()),
        ("bool", f"{MIXED} y = If (b) {BRANCHES}", ()),
        ("bool", f"z = If (flag) {BRANCHES} y = Where (flag, x, z)", ("flag",)),
    ],
)
def test_an_input_that_alone_decides_is_found(flag: str, body: str, found: tuple[str, ...]) -> None:
    assert branch_inputs(model_of(flag, body).graph) == found


def test_a_cycle_ends() -> None:
    graph = model_of("bool", f"p = Not (q) q = Not (p) y = If (p) {BRANCHES}").graph
    assert branch_inputs(graph) == ()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ([True], "flag is true in every data set"),
        ([False], "flag is false in every data set"),
        ([True, False], ""),
    ],
)
def test_a_branch_that_no_data_set_takes_is_told(tmp_path: Path, flags: list[bool], told: str) -> None:
    folder = tmp_path / "models" / "m"
    folder.mkdir(parents=True)
    onnx.save(model_of("bool", f"y = If (flag) {BRANCHES}"), folder / "model.onnx")
    for index, flag in enumerate(flags):
        data = folder / f"test_data_set_{index}"
        data.mkdir()
        np.save(data / "input_0.npy", np.array(flag))
        np.save(data / "input_1.npy", np.array([-1, 2], np.float32))
    matrix = of_folder({"name": "t", "provider": "CPUExecutionProvider"})
    (record,) = records_of(run_matrix(tmp_path, matrix))
    wanted = (Unchecked(check="other branch", because=told),) if told else ()
    assert (record.verdict.value, record.unchecked) == ("pass", wanted)

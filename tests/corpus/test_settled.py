"""Outputs on which what ONNX leaves undefined has no influence, found by two values in its place."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.values.value import Tensor
from harness.corpus.case import Case
from harness.corpus.derived.settled import settled_case
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.undefined import Partial, can_be_settled
from harness.corpus.suites.suite import open_folder

ort: Any = pytest.importorskip("onnxruntime")
Run = dict[str, Any]


def runs(folder: Path, graph: str, fed: Run, opset: int = 18) -> tuple[Run, Run]:
    """The outputs of a graph with each of the two values."""
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> {graph}'
    (folder / "m.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    case = load_case(open_folder(folder), "m.onnx", {})
    found = []
    for high in (False, True):
        settled = settled_case(case, high=high)
        assert isinstance(settled, Case)
        session = ort.InferenceSession(settled.model_path, providers=["CPUExecutionProvider"])
        outputs = session.run(None, fed)
        found.append(dict(zip(settled.outputs, outputs, strict=True)))
    return found[0], found[1]


X = np.array([-np.inf, 1.5, np.nan, 3e9, -4.5], np.float32)


@pytest.mark.parametrize("opset", [13, 18])
def test_an_undefined_element_has_two_values_and_others_keep_theirs(tmp_path: Path, opset: int) -> None:
    low, high = runs(tmp_path, "g (float[5] x) => (int32[5] y) { y = Cast<to=6>(x) }", {"x": X}, opset)
    assert low["y"].tolist() == [0, 1, 0, 0, -4]
    assert high["y"].tolist() == [1, 1, 1, 1, -4]


def test_an_output_that_another_branch_decides_stays(tmp_path: Path) -> None:
    graph = """g (float[5] x) => (int64[5] y, int64[5] z) {
        limit = Constant<value_float=1.0>() whole = Cast<to=7>(x) small = Less(x, limit)
        none = Constant<value_int=-7>() y = Where(small, none, whole) z = Identity(whole) }"""
    low, high = runs(tmp_path, graph, {"x": np.array([-np.inf, 2, -np.inf, 3, 4], np.float32)})
    assert low["y"].tolist() == high["y"].tolist() == [-7, 2, -7, 3, 4]
    assert low["z"].tolist() != high["z"].tolist()


@pytest.mark.parametrize(
    ("graph", "fed", "low", "high"),
    [
        (
            "g (float[3] x, float[3] p) => (float[3] y) { y = Pow(x, p) }",
            {"x": np.array([-8, -2, 4], np.float32), "p": np.array([1.5, 2, 0.5], np.float32)},
            [1, 4, 2],
            [2, 4, 2],
        ),
        (
            "g (int32[3] x, int32[3] d) => (int32[3] y) { y = Div(x, d) }",
            {"x": np.array([7, 8, 9], np.int32), "d": np.array([0, 2, 0], np.int32)},
            [0, 4, 0],
            [1, 4, 1],
        ),
        (
            "g (int64[2] x, int64[2] d) => (int64[2] y) { y = Mod(x, d) }",
            {"x": np.array([7, 8]), "d": np.array([0, 3])},
            [0, 2],
            [1, 2],
        ),
        (
            'g (uint8[2] x, uint8[2] n) => (uint8[2] y) { y = BitShift<direction="LEFT">(x, n) }',
            {"x": np.array([3, 3], np.uint8), "n": np.array([8, 1], np.uint8)},
            [0, 6],
            [1, 6],
        ),
        (
            "g (float[2] x, float s, uint8 z) => (uint8[2] y) { y = QuantizeLinear(x, s, z) }",
            {
                "x": np.array([np.nan, 2], np.float32),
                "s": np.array(1, np.float32),
                "z": np.array(3, np.uint8),
            },
            [0, 5],
            [255, 5],
        ),
        (
            "g (float[4] d, int64[3] i, float[3] u) => (float[4] y) { y = ScatterElements(d, i, u) }",
            {"d": np.zeros(4, np.float32), "i": np.array([1, 1, 2]), "u": np.array([5, 6, 7], np.float32)},
            [0, 6, 7, 0],
            [0, 5, 7, 0],
        ),
        (
            """g (float[2, 2] d, int64[1, 3, 1] i, float[1, 3, 2] u) => (float[2, 2] y) {
                y = ScatterND(d, i, u) }""",
            {
                "d": np.zeros((2, 2), np.float32),
                "i": np.array([[[1], [1], [0]]]),
                "u": np.array([[[5, 5], [6, 6], [7, 7]]], np.float32),
            },
            [[7, 7], [6, 6]],
            [[7, 7], [5, 5]],
        ),
    ],
)  # fmt: skip
def test_each_operator(tmp_path: Path, graph: str, fed: Run, low: list[Any], high: list[Any]) -> None:
    one, other = runs(tmp_path, graph, fed)
    assert one["y"].tolist() == low
    assert other["y"].tolist() == high


def test_whole_numbers_are_left_alone(tmp_path: Path) -> None:
    graph = "g (float[4] x, int64[1] end) => (float[m] y) { wide = Cast<to=7>(end) y = Slice(x, zero, wide) }"
    graph = graph.replace("{ wide", "{ zero = Constant<value_ints=[0]>() wide")
    low, high = runs(tmp_path, graph, {"x": X[:4], "end": np.array([np.iinfo(np.int64).max])})
    assert len(low["y"]) == len(high["y"]) == 4


def test_a_division_of_floats_is_left_alone(tmp_path: Path) -> None:
    graph = "g (float[2] x, float[2] d) => (float[2] y) { y = Div(x, d) }"
    low, high = runs(tmp_path, graph, {"x": np.array([1, 2], np.float32), "d": np.array([0, 4], np.float32)})
    np.testing.assert_array_equal(low["y"], [np.inf, 0.5])
    np.testing.assert_array_equal(high["y"], [np.inf, 0.5])


def test_a_type_that_is_not_known_is_told(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 13, "other" : 1]> g (float[2] x) => (int64[2] y) {
        z = other.Unknown() y = Cast<to=7>(z) w = Identity(x) }"""
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    case = load_case(open_folder(tmp_path), "m.onnx", {})
    with pytest.raises(ModelError, match="the type of z is not known"):
        settled_case(case, high=True)


@pytest.mark.parametrize(
    ("node", "can"),
    [
        (Partial(op="Cast", inputs=("x",), to="int8"), True),
        (Partial(op="Cast", inputs=("x",), to="float8e8m0"), False),
        (Partial(op="CastLike", inputs=("x", "y")), False),
        (Partial(op="ScatterND", inputs=("x", "y", "z")), True),
    ],
)
def test_what_can_be_settled(node: Partial, *, can: bool) -> None:
    assert can_be_settled(node) is can


def test_data_sets_keep_their_inputs_without_expected_outputs(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (int64[2] y) { y = Cast<to=7>(x) }'
    (tmp_path / "m.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    case = load_case(open_folder(tmp_path), "m.onnx", {})
    settled = settled_case(case, high=True)
    assert isinstance(settled, Case)
    assert settled.digest != case.digest
    ((name, value),) = settled.data_sets[0].inputs
    assert name == "x"
    assert isinstance(value, Tensor)
    assert settled.data_sets[0].expected == ()


def test_the_engine_starts_without_onnx() -> None:
    code = "import sys, harness.engine.questions.inquiry; print('onnx' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"

"""The benchmark of rare forms: its faults, and the fake EP that has them."""

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from benchmarks.fuzzing.command import table
from benchmarks.fuzzing.faults import FAULTS
from benchmarks.fuzzing.run import Hit, Result
from benchmarks.fuzzing.spoil import Spoilt, spoilt

RUNTIME: Any = pytest.importorskip("onnxruntime")

Spoil = Callable[..., Spoilt | None]


def model_of(body: str) -> bytes:
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {body}')
    return bytes(model.SerializeToString())


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Spoil:
    """Spoil a model by one fault alone."""

    def run(content: bytes, feeds: dict[str, Any], fault: str, *, first: bool = True) -> Spoilt | None:
        monkeypatch.setattr("benchmarks.fuzzing.spoil.FAULTS", {fault: FAULTS[fault]})
        return spoilt(RUNTIME, RUNTIME.InferenceSession, content, feeds, first=first)

    return run


def test_there_are_sixty() -> None:
    assert len(FAULTS) == 60
    assert all(fault.ops for fault in FAULTS.values())


@pytest.mark.parametrize(
    ("fault", "body", "shape"),
    [
        ("Add, Mul: rank 5", "g (float[1,1,2,1,1] x) => (float[1,1,2,1,1] y) { y = Add (x, x) }",
         (1, 1, 2, 1, 1)),
        ("MatMul, Gemm: a sum of nothing",
         "g (float[2,0] x) => (float[2,2] y) { t = Transpose (x) y = MatMul (x, t) }", (2, 0)),
        ("Conv with a constant bias, Relu",
         """g (float[1,1,3] x) => (float[1,1,3] y) <float[1,1,1] w = {1}, float[1] b = {1}>
         { c = Conv (x, w, b) y = Relu (c) }""", (1, 1, 3)),
        ("CumSum: exclusive and reverse",
         """g (float[3] x) => (float[3] y) <int64 a = {0}>
         { y = CumSum <exclusive = 1, reverse = 1> (x, a) }""", (3,)),
    ],
)  # fmt: skip
def test_a_fault_befalls_its_form(spoil: Spoil, fault: str, body: str, shape: tuple[int, ...]) -> None:
    content, feeds = model_of(body), {"x": np.ones(shape, np.float32)}
    healthy = RUNTIME.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, feeds)
    found = spoil(content, feeds, fault)
    assert found is not None
    assert (found.fault, found.digest) == (fault, hashlib.sha256(content).hexdigest())
    (wrong,) = found.session.run(None, feeds)
    assert wrong.shape == healthy[0].shape
    assert not np.array_equal(wrong, healthy[0])


def test_saturation_of_int8_wraps(spoil: Spoil) -> None:
    content = model_of(
        "g (float[3] x) => (int8[3] y) <float s = {1}, int8 z = {0}> { y = QuantizeLinear (x, s, z) }"
    )
    found = spoil(content, {"x": np.array([1, 130, -1], np.float32)}, "QuantizeLinear: saturation of int8")
    assert found is not None
    (wrong,) = found.session.run(None, {"x": np.zeros(3, np.float32)})
    assert wrong.tolist() == [1, -126, -1]
    assert spoil(content, {"x": np.ones(3, np.float32)}, "QuantizeLinear: saturation of int8") is None


def test_other_forms_stay_right(spoil: Spoil) -> None:
    content = model_of("g (float[2,2] x) => (float[2,2] y) { y = Add (x, x) }")
    assert spoil(content, {"x": np.ones((2, 2), np.float32)}, "Add, Mul: rank 5") is None


def test_a_fault_of_a_second_run_leaves_the_first_alone(spoil: Spoil) -> None:
    content = model_of(
        "g (float[1,2,3] x) => (float[1,2,3] y) <float[2,1,1] w = {1, 2}> { y = Conv <group = 2> (x, w) }"
    )
    feeds = {"x": np.ones((1, 2, 3), np.float32)}
    assert spoil(content, feeds, "Conv in groups") is None
    assert spoil(content, feeds, "Conv in groups", first=False) is not None


def test_the_table_counts_kinds_and_time() -> None:
    hits = (
        Hit(fault="Add, Mul: rank 5", model="a", seconds=2.0),
        Hit(fault="Transpose: rank 5", model="b", seconds=90.0),
        Hit(fault="Transpose: rank 5", model="c", seconds=95.0),
    )
    result = Result(suite="s", models=3, befallen={}, hits=hits, healthy_failures=(), seconds=95.0)
    rows = table({"s": result}).splitlines()
    assert rows[0] == "| kind | faults | s |"
    assert rows[2] == "| rank | 11 | 2 |"
    assert rows[-2:] == ["| all, within a minute | 60 | 1 |", "| all | 60 | 2 |"]

"""Real references in a run: a bad golden fails nobody, and a bad provider finds no excuse."""

import os

import numpy as np
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.values.value import Tensor
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.engine.measuring.reference_check import TRUTHS
from harness.engine.tasks.task import QuestionKind
from harness.golden.golden_answer import Golden
from harness.golden.golden_cache import GoldenStore
from harness.golden.provenance import provenance
from tests.kit import by_model, fake_target, run_matrix, write_model

pytestmark = [
    pytest.mark.real_ep,
    pytest.mark.skipif(os.name != "posix", reason="the fake is for POSIX"),
]
# What this one computes rests on rounding, and ONNX's reference knows it as well as float64 does.
SOFT = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4] x) => (float[4] y) { e = Exp(x) s = ReduceSum<keepdims = 1>(e) y = Div(e, s) }"""
# No kernel of the CPU provider takes doubles here.
ERF = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4] x) => (float[4] y) { a = Sin(x) y = Erf(a) }"""
# Rounding of coordinates, which grow with the picture, decides about the last digits.
GRID = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[1, 1, 512, 512] p, float[1, 1, 4, 2] x) => (float[1, 1, 1, 4] y) {
    g = Tanh(x) y = GridSample(p, g) }"""
# Between its nodes there are real numbers; the steps of the quantization are ONNX's.
DYNAMIC = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4, 4] x) => (float[4, 4] y) {
    q, s, z = DynamicQuantizeLinear(x) p = MatMulInteger(q, q, z, z) c = Cast<to = 1>(p)
    t = Mul(s, s) y = Mul(c, t) }"""
# Operators of onnxruntime's own domain.
CONTRIB = """<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]>
agraph (float[2, 4] x) => (float[2, 4] y) { a = com.microsoft.FastGelu(x) y = com.microsoft.QuickGelu(a) }"""
PLANTED = {"soft": (4,), "erf": (4,), "grid": (1, 1, 1, 4), "dynamic": (4, 4), "contrib": (2, 4)}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    home = tmp_path_factory.mktemp("compared_references")
    for name in ("2_zeros", "2_off_by_one", "2_wrong_shape"):
        write_model(home / "faulty" / f"{name}.onnx")
    for name, text in {
        "soft": SOFT,
        "erf": ERF,
        "grid": GRID,
        "dynamic": DYNAMIC,
        "contrib": CONTRIB,
        "right": SOFT.replace("agraph", "right"),  # a model of its own, and so with a golden of its own
    }.items():
        write_model(home / "sound" / f"{name}.onnx", text)
    store, suite = GoldenStore(provenance()), open_folder(home / "sound")
    for name, shape in PLANTED.items():
        # As a bad optimization might have it.
        wrong = np.resize(np.array([0.5, 0.4, 0.3, 0.2], np.float32), shape)
        case = load_case(suite, f"{name}.onnx", {})
        store.save(case, Golden(status="ok", outputs=((("y", Tensor(dtype="float32", array=wrong)),),)))
    matrix = {
        "models": {"folders": ["faulty", "sound"]},
        "target": [fake_target("faulty"), {"name": "sound", "provider": "CPUExecutionProvider"}],
        "exclude": [{"target": "faulty", "suite": "sound"}, {"target": "sound", "suite": "faulty"}],
    }
    return by_model(run_matrix(home, matrix))


@pytest.mark.parametrize(
    ("model", "verdict", "output"),
    [
        ("2_zeros", Verdict.MISMATCH, "z"),
        ("2_off_by_one", Verdict.MISMATCH, "k"),
        ("2_wrong_shape", Verdict.SHAPE_MISMATCH, ""),
    ],
)
def test_a_faulty_provider_finds_no_excuse(
    records: dict[str, Record], model: str, verdict: Verdict, output: str
) -> None:
    record = records[model]
    assert record.verdict is verdict
    assert "agree" not in record.reason
    told = [(row.output, row.by, row.golden, row.nearer) for row in record.adjudication]
    assert told == ([(output, TRUTHS[QuestionKind.FLOAT64_EVALUATED], 0.0, "golden")] if output else [])


@pytest.mark.parametrize("model", PLANTED)
def test_a_bad_golden_fails_no_cell(records: dict[str, Record], model: str) -> None:
    record = records[model]
    assert record.verdict is Verdict.PASS
    assert record.reason.startswith("right by float64")
    assert "another result each time" in record.reason  # another process gives the right one
    (row,) = record.adjudication
    assert (row.output, row.by, row.nearer) == ("y", "float64, node by node", "ep")
    assert row.ep < 1e-4  # of the picture, the CPU EP loses a digit more
    assert record.reference_check is not None
    assert record.reference_check.no_float64 == ""
    assert row.golden > 1e-3


def test_a_result_equal_to_a_good_golden_asks_no_reference(records: dict[str, Record]) -> None:
    assert records["right"].verdict is Verdict.PASS
    assert records["right"].adjudication == ()

"""The precisions on the model's side, in runs on the CPU provider."""

import os
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from harness.core.comparison.output_metrics import PrecisionError
from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from tests.kit import of_folder, records_of, run_matrix, write_model

pytestmark = pytest.mark.real_ep

MLP = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[4, 32] x) => (float[4, 16] y) { h = MatMul(x, w) r = Relu(h) y = MatMul(r, v) }"""
PRECISIONS = ["fp32", "fp16", "bf16", "int8-static", "int8-dynamic", "int4-weights"]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Record]:
    """Model and precision -> record, on the CPU provider."""
    folder = tmp_path_factory.mktemp("converted")
    (folder / "models").mkdir()
    mlp = onnx.parser.parse_model(MLP)
    random = np.random.default_rng(1)
    for name, shape in (("w", (32, 64)), ("v", (64, 16))):
        values = (random.standard_normal(shape) / 8).astype(np.float32)
        mlp.graph.initializer.append(numpy_helper.from_array(values, name))
    onnx.save(mlp, folder / "models" / "mlp.onnx")
    head = '<ir_version: 8, opset_import: ["" : 17]> '
    for name, text in {
        "shape": "agraph (float[4, 8] x) => (int64[2] y) { y = Shape(x) }",
        "unknown": "agraph (float[4, 8] x) => (float[4, 8] y) { y = Nonsense(x) }",
    }.items():
        write_model(folder / "models" / f"{name}.onnx", head + text)
    target = {"name": "cpu", "provider": "CPUExecutionProvider"}
    matrix = of_folder(target, axes={"precision": PRECISIONS})
    found = records_of(run_matrix(folder, matrix))
    return {(record.model.removesuffix(".onnx"), record.axes["precision"]): record for record in found}


def error_of(record: Record) -> PrecisionError:
    (output,) = record.outputs
    assert output.precision_error is not None, record
    return output.precision_error


@pytest.mark.parametrize(
    ("precision", "least", "most"),
    [
        ("fp16", 1e-4, 1e-3),
        ("int8-static", 1e-3, 0.05),
        ("int8-dynamic", 1e-3, 0.05),
        ("int4-weights", 0.02, 0.3),
    ],
)
def test_a_cell_has_the_three_numbers(
    records: dict[tuple[str, str], Record], precision: str, least: float, most: float
) -> None:
    record = records["mlp", precision]
    assert record.verdict is Verdict.PASS, record
    error = error_of(record)
    assert error.cpu_error is not None
    # One rounding of the precision, or a few of them: not none, though the CPU EP computes in float32.
    assert least < error.cpu_error < most
    assert error.ratio == pytest.approx((error.error or 0) / error.cpu_error)
    assert error.within


def test_a_model_as_it_came_has_none(records: dict[tuple[str, str], Record]) -> None:
    record = records["mlp", "fp32"]
    assert record.verdict is Verdict.PASS
    assert [output.precision_error for output in record.outputs] == [None]


def test_bfloat16_has_no_kernels_on_the_cpu(records: dict[tuple[str, str], Record]) -> None:
    record = records["mlp", "bf16"]
    assert record.verdict is Verdict.UNSUPPORTED
    assert "NotImplemented" in record.reason


def test_what_does_not_apply_is_declared(records: dict[tuple[str, str], Record]) -> None:
    for precision in PRECISIONS[1:]:
        record = records["shape", precision]
        assert record.verdict is Verdict.DECLARED
        assert record.reason.startswith(f"{precision} does not apply: ")
        assert record.expected
    assert records["shape", "fp32"].verdict in {Verdict.PASS, Verdict.FOLDED}


def test_an_invalid_model_is_invalid_at_every_precision(records: dict[tuple[str, str], Record]) -> None:
    for precision in PRECISIONS:
        assert records["unknown", precision].verdict is Verdict.INVALID_MODEL


@pytest.mark.skipif(os.name != "posix", reason="expects the name of a signal")
def test_a_converter_that_crashes_costs_nobody_but_its_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(CRASHES, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    (tmp_path / "models").mkdir()
    text = '<ir_version: 8, opset_import: ["" : 17]> agraph (float[4, 8] x) => (float[4, 8] y) { y = Neg(x) }'
    write_model(tmp_path / "models" / "neg.onnx", text)
    target = {"name": "cpu", "provider": "CPUExecutionProvider"}
    axes = {"precision": ["fp32", "fp16", "int8-static"]}
    matrix = of_folder(target, axes=axes)

    def run() -> dict[str, Record]:
        events = run_matrix(tmp_path, matrix)
        return {record.axes["precision"]: record for record in records_of(events)}

    found = run()
    assert {name: record.verdict for name, record in found.items()} == {
        "fp32": Verdict.PASS,
        "fp16": Verdict.DECLARED,
        "int8-static": Verdict.PASS,
    }
    reason = "fp16 does not apply: the converter crashed: SIGABRT"
    assert found["fp16"].reason == reason
    assert run()["fp16"].reason == reason
    # What happens twice will happen again: nobody tries it a third time, though now it would work.
    monkeypatch.delenv("PYTHONPATH")
    assert run()["fp16"].reason == f"{reason}, and failed in an earlier run, too"


CRASHES = """
import os, sys, types
crashing = types.ModuleType("onnxruntime.transformers.float16")
crashing.convert_float_to_float16 = lambda *_, **__: os.abort()
sys.modules[crashing.__name__] = crashing
"""

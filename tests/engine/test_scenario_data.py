"""Scenarios that the harness makes itself, by other data or other files, run by the real CPU provider."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.records.record import Record
from harness.core.records.verdict import Verdict
from harness.core.text.errors import Problem, UsageError
from harness.engine.answers import cases
from tests.kit import of_folder, records_of, run_matrix, write_model

HEAD = '<ir_version: 9, opset_import: ["" : 17]> agraph '
MODELS = {
    "free": "(float[batch, seq] x) => (float[batch, seq] y) { y = Relu(x) }",
    "half": "(float[batch, width] x) => (float[batch, n] y) { y = MatMul(x, w) }",
    "fixed_by_weights": "(float[2, width] x) => (float[2, n] y) { y = MatMul(x, w) }",
    "fixed": "(float[2, 3] x) => (float[2, 3] y) { y = Neg(x) }",
    "no_empty_batch": "(float[batch, seq] x) => (int64[1, seq] y) { y = ArgMax<axis=0>(x) }",
}
SCENARIOS = ("plain", "dynamic_shapes", "zero_size", "external_data")


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Record]:
    home = tmp_path_factory.mktemp("scenarios")
    (home / "models").mkdir()
    for name, graph in MODELS.items():
        model = onnx.parser.parse_model(HEAD + graph)
        if "MatMul" in graph:
            weight = np.random.default_rng(0).standard_normal((8, 40)).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
        onnx.save(model, home / "models" / f"{name}.onnx")
    matrix = {
        "models": {"folders": ["models"], "dimensions": {"batch": 2, "seq": 6, "width": 8}},
        "axes": {"scenario": list(SCENARIOS)},
        "target": [{"name": "cpu", "provider": "CPUExecutionProvider"}],
    }
    found = records_of(run_matrix(home, matrix))
    return {(record.model.removesuffix(".onnx"), record.axes["scenario"]): record for record in found}


def test_every_cell_has_its_verdict(records: dict[tuple[str, str], Record]) -> None:
    others = {key: record.verdict for key, record in records.items() if record.verdict is not Verdict.PASS}
    assert len(records) == len(MODELS) * len(SCENARIOS)
    assert others == {
        ("fixed_by_weights", "dynamic_shapes"): Verdict.DECLARED,
        ("fixed_by_weights", "zero_size"): Verdict.DECLARED,
        ("fixed", "dynamic_shapes"): Verdict.DECLARED,
        ("fixed", "zero_size"): Verdict.DECLARED,
        ("no_empty_batch", "zero_size"): Verdict.NO_GOLDEN,
        ("free", "external_data"): Verdict.DECLARED,
        ("fixed", "external_data"): Verdict.DECLARED,
        ("no_empty_batch", "external_data"): Verdict.DECLARED,
    }


def test_one_session_runs_all_shapes(records: dict[tuple[str, str], Record]) -> None:
    free = records["free", "dynamic_shapes"]
    assert free.scenario["shapes"] == ("given", "batch=4", "seq=3", "given")
    assert [output.shape for output in free.outputs] == [(2, 6), (4, 6), (2, 3), (2, 6)]
    assert free.process is not None
    half = records["half", "dynamic_shapes"]
    assert half.scenario["shapes"] == ("given", "batch=4", "given")
    refused = half.scenario["refused"]
    assert isinstance(refused, tuple)
    (message,) = map(str, refused)
    assert message.startswith("with width=4: ")
    assert "dimension mismatch" in message


def test_an_empty_batch_gives_empty_outputs(records: dict[tuple[str, str], Record]) -> None:
    record = records["half", "zero_size"]
    assert record.scenario["shapes"] == ("batch=0", "given")
    assert [output.shape for output in record.outputs] == [(0, 40), (2, 40)]


def test_what_cannot_be_played_says_why(records: dict[tuple[str, str], Record]) -> None:
    reason = records["fixed_by_weights", "dynamic_shapes"].reason
    assert reason.startswith("the CPU EP runs no other shape than the given one: with width=4: ")
    assert records["fixed", "zero_size"].reason == "no input has a batch dimension that may vary"
    assert records["no_empty_batch", "zero_size"].reason.startswith("with batch=0: ")


def test_a_full_cache_ends_the_run_and_skips_no_cell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise UsageError(Problem(where="cache", what="cannot be written: No space left on device"))

    monkeypatch.setattr(cases, "scenario_case", full)
    (tmp_path / "models").mkdir()
    write_model(tmp_path / "models" / "m.onnx", HEAD + MODELS["fixed"])
    matrix = of_folder(
        {"name": "cpu", "provider": "CPUExecutionProvider"}, axes={"scenario": ["external_data"]}
    )
    with pytest.raises(UsageError, match="No space left"):
        run_matrix(tmp_path, matrix)

"""`ep-harness trace` as people call it: errors in one or two lines, the sentence, the file and the page."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.cli.main import main
from harness.core.records.trace import decode_traces
from tests.annex.trace.test_trace_study import MODEL

Capture = pytest.CaptureFixture[str]


def run(capsys: Capture, *arguments: str) -> tuple[int, str, str]:
    code = main(["trace", *arguments])
    told = capsys.readouterr()
    return code, told.out, told.err


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "m.onnx"
    onnx.save(onnx.parser.parse_model(MODEL), path)
    return str(path)


def test_a_trace_is_a_sentence_a_file_and_a_page(
    capsys: Capture, tmp_path: Path, own_cache: Path, model: str
) -> None:
    assert own_cache
    inputs, out = tmp_path / "in.npz", tmp_path / "out"
    np.savez(inputs, x=np.ones((8, 8), np.float32), w=np.eye(8, dtype=np.float32))
    told = ["--target", "CPUExecutionProvider", "--inputs", str(inputs), "--out", str(out)]
    code, text, err = run(capsys, model, *told)
    assert code == 0
    assert "No error but rounding" in text
    assert "some" not in text  # progress goes to the other stream
    assert "alone: 1 of 1" in err
    (trace,) = decode_traces((out / "trace.jsonl").read_bytes())
    assert (trace.model.inputs, trace.model.nodes) == ("file", 5)
    assert 'class="depth"' in (out / "trace.html").read_text("utf-8")
    code, text, _ = run(capsys, model, *told, "--resume", "--json")
    assert code == 0
    assert json.loads(text)["traces"][0]["targets"][0][0]["finding"] == "none"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "--target: a model needs at least one"),
        (("cell", "--target", "CPUExecutionProvider"), "cells need a run folder"),
        (("--target", "CPUExecutionProvder"), "did you mean 'CPUExecutionProvider'"),
        (("--target", "no.toml:cpu"), "no such file"),
        (("--target", "matrices/local.toml:cpuu"), "did you mean 'cpu'"),
        (("--target", "matrices/local.toml:cpu[precision"), "expected MATRIX.toml:NAME"),
        (("--target", "matrices/local.toml:cpu[precision]"), "expected AXIS=VALUE"),
        (("--target", "CPUExecutionProvider", "--inputs", "no.npz"), "no .npz file"),
    ],
)
def test_errors_of_use(capsys: Capture, model: str, arguments: tuple[str, ...], message: str) -> None:
    code, _, err = run(capsys, model, *arguments)
    assert code == 2
    assert message in err
    assert len(err.splitlines()) <= 3


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"z": np.ones((8, 8), np.float32)}, "the model has no such input"),
        ({"x": np.ones((8, 8))}, "element type float64, expected float32"),
        ({"x": np.ones(8, np.float32)}, "1 dimensions, expected 2"),
    ],
)
def test_inputs_that_do_not_fit(
    capsys: Capture, tmp_path: Path, model: str, arrays: dict[str, object], message: str
) -> None:
    path = tmp_path / "in.npz"
    np.savez(path, **arrays)  # type: ignore[arg-type]
    code, _, err = run(capsys, model, "--target", "CPUExecutionProvider", "--inputs", str(path))
    assert code == 2
    assert message in err


def test_a_cell_of_a_run_has_its_model_target_and_axes(
    capsys: Capture, tmp_path: Path, own_cache: Path, model: str
) -> None:
    assert own_cache
    (tmp_path / "models").mkdir()
    Path(model).rename(tmp_path / "models" / "m.onnx")
    matrix = tmp_path / "m.toml"
    matrix.write_text(
        'schema = 1\n[models]\nfolders = ["models"]\n'
        '[[target]]\nname = "cpu"\nprovider = "CPUExecutionProvider"\n'
        'axes = { graph_optimization = ["basic"] }\n'
    )
    folder = tmp_path / "run"
    assert main(["run", str(matrix), "--out", str(folder), "--no-report"]) == 0
    capsys.readouterr()
    cell = "models/m.onnx[cpu,graph_optimization=basic]"
    code, text, err = run(capsys, str(folder), cell)
    assert code == 0, err
    assert "cpu[graph_optimization=basic]: No error but rounding" in text.replace("\n  ", " ")
    (trace,) = decode_traces((folder / "trace" / "trace.jsonl").read_bytes())
    assert trace.model.model == "models/m.onnx"
    for arguments, message in (
        ([str(folder)], "which cells?"),
        ([str(folder), "models/n[cpu]"], "the run has no such cell"),
        ([str(folder), cell, "--target", "CPUExecutionProvider"], "a run has both"),
    ):
        code, _, err = run(capsys, *arguments)
        assert (code, message in err) == (2, True), err

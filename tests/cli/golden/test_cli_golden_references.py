"""`ep-harness golden`: cross-checks with references, shipped goldens, another release, pruning."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest

from harness.golden.provenance import provenance

Call = Callable[..., tuple[int, str, str]]
AsJson = Callable[..., tuple[int, dict[str, Any]]]
HEAD = '<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>'
SIGNATURE = "g (float[4] x) => (float[4] y, int32[4] k, float[4] z)"
MODEL = f"{HEAD} {SIGNATURE} {{ y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }}"
UNKNOWN = f"{HEAD} {SIGNATURE} {{ y = acme.Do(x) k = Cast<to=6>(x) z = Neg(x) }}"


@pytest.mark.real_ep
def test_prune_removes_unused_goldens(write_matrix: Callable[..., Path], call: Call, as_json: AsJson) -> None:
    matrix = write_matrix(a=MODEL, b=UNKNOWN)
    assert call("prune")[1] == "nothing to remove\n"
    assert call("record", matrix)[0] == 0
    assert as_json("prune") == (0, {"removed": 0, "nbytes": 0, "by": {}, "models": 0})
    code, out, _ = call("prune", "--all")
    assert code == 0
    # The golden of one model, two references of it, and the refusal of the other.
    assert sorted(out.splitlines()[:-1]) == [
        f"removed        1  onnx.reference {onnx.__version__}",
        f"removed        3  onnxruntime {provenance()['onnxruntime']}",
    ]
    assert call("verify", matrix)[0] == 2
    assert as_json("record", matrix)[1]["computed"] == 2


@pytest.mark.real_ep
def test_each_golden_is_compared_with_references(
    write_matrix: Callable[..., Path], call: Call, as_json: AsJson, tmp_path: Path
) -> None:
    matrix, out = write_matrix(a=MODEL, b=UNKNOWN), tmp_path / "recording"
    model = onnx.load(tmp_path / "models" / "a.onnx")
    data_set = tmp_path / "models" / "a" / "test_data_set_0"
    data_set.mkdir(parents=True)
    x = np.array([-1, 0, 1, 2], np.float32)
    for name, array in (("input_0", x), ("output_0", np.maximum(x, 0)), ("output_2", x)):
        tensor_proto = onnx.numpy_helper.from_array(array)
        (data_set / f"{name}.pb").write_bytes(tensor_proto.SerializeToString())
    assert model.graph.output[2].name == "z"
    (data_set / "output_1.pb").write_bytes(
        onnx.numpy_helper.from_array(x.astype(np.int32)).SerializeToString()
    )
    code, found = as_json("record", matrix, "--out", out)
    assert code == 0
    expected, reference, unoptimized = found["cross_checks"]["models/a.onnx"]
    assert (expected["by"], expected["result"]) == ("the expected data", "differs")
    assert expected["message"] == "3 of 4 elements of 'z', by 4 at most"
    assert reference == {"by": "onnx.reference", "result": "same", "headroom": 0.0, "message": ""}
    assert (unoptimized["by"], unoptimized["result"]) == ("the CPU EP without optimizations", "same")
    assert found["cross_checks"]["models/b.onnx"] == []
    kept = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["models"]
    assert kept[0]["cross_checks"] == found["cross_checks"]["models/a.onnx"]
    for what in (out, matrix):
        code, verified = as_json("verify", what)
        assert (code, verified["cross_checks"]["models/a.onnx"]) == (0, kept[0]["cross_checks"])
    text = call("verify", out)[1]
    assert "  the expected data differs: 1\n" in text
    assert "      models/a.onnx\n        3 of 4 elements of 'z', by 4 at most\n" in text


@pytest.mark.real_ep
def test_a_reference_without_an_answer_has_a_reason(
    write_matrix: Callable[..., Path], as_json: AsJson
) -> None:
    softmax = f"{HEAD.replace('17', '11')} g (float[2, 2] x) => (float[2, 2] y) {{ y = Softmax(x) }}"
    code, found = as_json("record", write_matrix(a=softmax))
    assert code == 0
    (reference, _) = found["cross_checks"]["models/a.onnx"]
    assert reference["result"] == "cannot"
    assert "Softmax of opset 11" in reference["message"]


@pytest.mark.real_ep
def test_the_goldens_that_are_shipped_are_computed_here_too(as_json: AsJson) -> None:
    code, found = as_json("verify")
    assert (found["altered"], found["unasked"], found["complete"]) == ([], [], True)
    assert len(found["checks"]) == 13
    # Release and processor decide which kernels compute; all results are within the tolerance.
    assert {check["outcome"] for check in found["checks"]} <= {"same", "moved"}
    moved = [movement for check in found["checks"] for movement in check["movements"]]
    assert [movement["message"] for movement in moved if movement["message"]] == []
    assert code == bool(moved)


@pytest.mark.compat
def test_another_release_computes(call: Call, as_json: AsJson, tmp_path: Path) -> None:
    matrix, out = tmp_path / "m.toml", tmp_path / "recording"
    matrix.write_text(
        'schema = 1\n[models]\nsuites = ["zoo"]\n[[target]]\nname = "t"\nprovider = "CPUExecutionProvider"\n',
        encoding="utf-8",
    )
    assert call("record", matrix, "--model", "zoo/mnist-small-op12", "--out", out)[0] == 0
    code, found = as_json("verify", out, "--packages", "onnxruntime==1.24.1")
    if code == 3:
        pytest.skip(found["unasked"][0]["message"])
    assert found["onnxruntime"] == "1.24.1"
    (check,) = found["checks"]
    # The processor decides whether this release uses other kernels than the recording one.
    assert (code, check["outcome"]) in {(0, "same"), (1, "moved")}
    assert [one["metrics"]["name"] for one in check["movements"]] == ["Plus214_Output_0"] * code

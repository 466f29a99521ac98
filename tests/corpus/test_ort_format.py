"""Files in ORT format: the same graph as ONNX, run like any model; broken ones are told."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.text.errors import UsageError
from harness.corpus.case import model_files_state
from harness.corpus.load_case import load_case
from harness.corpus.model.model_errors import ModelError
from harness.corpus.model.model_file import parse_model
from harness.corpus.model.ort_format.onnx_model import is_ort_format, onnx_model_of
from harness.corpus.suites.suite import open_file, open_folder
from harness.corpus.suites.suites import open_model

onnxruntime: Any = pytest.importorskip("onnxruntime")

GRAPH = """<ir_version: 9, opset_import: ["" : 17]>
agraph (bool c, float[N,2] x, string[1] t) => (float[N,3] y, string[1] u)
<float[2,3] w = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, float[1] scale = {0.5}> {
    p = If (c) <
        then_branch = one () => (float[N,2] a) { a = Mul (x, scale) },
        else_branch = two () => (float[N,2] b) { b = LeakyRelu <alpha = 0.3> (x) }
    >
    m = MatMul (p, w)
    y = Transpose <perm = [0, 1]> (m)
    u = Identity (t)
}"""
FEEDS = {
    "c": np.ones((), np.bool_),
    "x": np.array([[1, -2], [3, 4]], np.float32),
    "t": np.array(["é"], object),
}


def saved(folder: Path, level: str = "ORT_DISABLE_ALL") -> bytes:
    """The model above in ORT format."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(folder / "saved.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    options.log_severity_level = 4
    content = onnx.parser.parse_model(GRAPH).SerializeToString()
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    found = (folder / "saved.ort").read_bytes()
    (folder / "saved.ort").unlink()
    return found


@pytest.mark.parametrize("level", ["ORT_DISABLE_ALL", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"])
def test_the_same_graph_gives_the_same_answers(tmp_path: Path, level: str) -> None:
    content = saved(tmp_path, level)
    assert is_ort_format(content)
    model = parse_model(content)
    onnx.checker.check_model(model)
    outputs = []
    for each in (content, model.SerializeToString()):
        session = onnxruntime.InferenceSession(each, providers=["CPUExecutionProvider"])
        outputs.append(session.run(None, FEEDS))
    assert [one.tolist() for one in outputs[0]] == [one.tolist() for one in outputs[1]]
    assert [one.name for one in model.graph.input] == ["c", "x", "t"]
    assert model.graph.input[1].type.tensor_type.shape.dim[0].dim_param == "N"


@pytest.mark.usefixtures("own_cache")
def test_it_is_a_model_of_its_folder_unless_its_onnx_file_is_there(
    tmp_path: Path, write_model: Callable[..., Path]
) -> None:
    home = tmp_path / "m"
    home.mkdir()
    (home / "net.ort").write_bytes(saved(tmp_path))
    suite = open_folder(home)
    case = load_case(suite, "net.ort", {})
    assert [port.name for port in case.ports] == ["c", "x", "t"]
    assert onnx.load(case.model_path).graph.node
    assert case.source == home / "net.ort"
    assert case.state == model_files_state(case)
    (home / "test_data_set_0").mkdir()
    np.savez(home / "test_data_set_0" / "inputs.npz", c=FEEDS["c"], x=FEEDS["x"], t=np.array(["é"]))
    for opened in (open_folder(home), open_file(home / "net.ort"), open_model(str(home / "net.ort"))):
        assert load_case(opened, "net.ort", {}).data_sets[0].name == "test_data_set_0"
    write_model("m/net.onnx")
    assert open_folder(home).models() == ("net.onnx",)
    with pytest.raises(UsageError, match="ORT format"):
        open_model(str(Path(__file__)))


def test_a_broken_one_is_told_and_costs_no_time(tmp_path: Path) -> None:
    content = saved(tmp_path)
    for end in range(8, len(content), 37):
        with pytest.raises(ValueError, match="ORT format"):
            parse_model(content[:end])
    random = np.random.default_rng(0)
    told = 0
    for _ in range(300):
        changed = bytearray(content)
        for place in random.integers(8, len(content) - 4, 3):
            struct.pack_into("<I", changed, int(place), int(random.integers(0, 1 << 32)))
        try:
            onnx_model_of(bytes(changed))
        except (ValueError, TypeError):
            told += 1
    assert told > 30


def test_a_file_of_the_mark_alone_is_no_model(write_model: Callable[..., Path]) -> None:
    path = write_model("m/one.onnx")
    path.write_bytes(b"\x10\0\0\0ORTM")
    with pytest.raises(ModelError, match="a model in ORT format that cannot be read: the file ends"):
        load_case(open_folder(path.parent), "one.onnx", {})

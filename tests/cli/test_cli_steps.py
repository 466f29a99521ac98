"""A step of the quantization, from the matrix to the report: integer kernels against ONNX's floats."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.cli import main
from tests.kit import read_rows

pytestmark = pytest.mark.real_ep

MATRIX = """
schema = 1
models.folders = ["models"]
[[target]]
name = "strict"
provider = "CPUExecutionProvider"
[[target]]
name = "granted"
provider = "CPUExecutionProvider"
[[target]]
name = "floats"
provider = "CPUExecutionProvider"
axes = { graph_optimization = ["disabled"] }
[[tolerance]]
target = "strict"
steps = 0
table_only = true
"""


def write_model(path: Path) -> None:
    """A quantized product whose exact results often lie in the middle between two steps.

    By default the CPU provider computes it in integers, and rounds a good part of these the other way.
    """
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.integers(-20, 20, (64, 64)).astype(np.int8),
        "xs": np.float32(0.1),
        "ws": np.float32(0.05),
        "ys": np.float32(0.2),
        "zero": np.int8(0),
    }
    nodes = [
        ("QuantizeLinear", ["x", "xs", "zero"], "xq"),
        ("DequantizeLinear", ["xq", "xs", "zero"], "xd"),
        ("DequantizeLinear", ["w", "ws", "zero"], "wd"),
        ("MatMul", ["xd", "wd"], "m"),
        ("QuantizeLinear", ["m", "ys", "zero"], "q"),
        ("DequantizeLinear", ["q", "ys", "zero"], "y"),
    ]
    graph = helper.make_graph(
        [helper.make_node(op, inputs, [output]) for op, inputs, output in nodes],
        "g",
        [helper.make_tensor_value_info("x", 1, [64, 64])],
        [helper.make_tensor_value_info("y", 1, [64, 64])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items()],
    )
    path.parent.mkdir(parents=True)
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)
    given = (rng.integers(-30, 30, (64, 64)) * 0.1).astype(np.float32)
    data_set = path.parent / "test_data_set_0"
    data_set.mkdir()
    (data_set / "input_0.pb").write_bytes(numpy_helper.from_array(given, "x").SerializeToString())


def rows(run: Path) -> dict[str, dict[str, Any]]:
    return {row["target"]: row for row in read_rows(run)}


def test_a_step_is_granted_or_float64_decides(tmp_path: Path) -> None:
    """Half of a step is rounded up or down. Without a granted step float64 knows which is right: the EP's."""
    write_model(tmp_path / "models" / "quantized" / "model.onnx")
    (tmp_path / "m.toml").write_text(MATRIX, "utf-8")
    run, report = tmp_path / "run", tmp_path / "report"
    assert main(["run", str(tmp_path / "m.toml"), "--out", str(run), "--no-report"]) == 0
    found = rows(run)
    assert {row["verdict"] for row in found.values()} == {"pass"}
    assert found["strict"]["reason"].startswith("right by float64")
    assert "reason" not in found["granted"]
    (strict,), (granted,), (floats,) = (found[name]["outputs"] for name in ("strict", "granted", "floats"))
    assert strict["details"]["steps"] == granted["details"]["steps"] == 1.0
    assert strict["mismatched"] > 0
    assert (granted["mismatched"], granted["max_abs"]) == (0, pytest.approx(0.2, rel=1e-4))
    assert granted["headroom"] == pytest.approx(1.0, abs=0.01)
    assert (floats["details"], floats["max_abs"]) == (None, 0.0)
    assert main(["report", str(run), "--out", str(report), "--format", "html"]) == 0

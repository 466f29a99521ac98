"""Models for the tests of this floor, written in ONNX's text form."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.corpus.cache import ENVIRONMENT

RELU = "agraph (float[N] x) => (float[N] y) { y = Relu(x) }"


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str = "models/one.onnx", graph: str = RELU) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> {graph}')
        onnx.save(model, path)
        return path

    return write


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    return tmp_path / "cache"


Answers = Callable[[onnx.ModelProto, Mapping[str, Any], Sequence[str]], list[np.ndarray[Any, Any]]]


@pytest.fixture(scope="session")
def cpu_answers() -> Answers:
    """Run a model on the CPU EP without optimizations, and return the outputs of some names."""
    onnxruntime: Any = pytest.importorskip("onnxruntime")

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4

    def run(
        model: onnx.ModelProto, feeds: Mapping[str, Any], names: Sequence[str]
    ) -> list[np.ndarray[Any, Any]]:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found: list[np.ndarray[Any, Any]] = session.run(list(names), dict(feeds))
        return found

    return run

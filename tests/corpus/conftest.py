"""Models for the tests of this floor, written in ONNX's text form."""

from collections.abc import Callable
from pathlib import Path

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

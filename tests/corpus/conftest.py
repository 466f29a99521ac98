"""Models for the tests of this floor, written in ONNX's text form."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.corpus.caches.cache import ENVIRONMENT
from tests import kit

RELU = "agraph (float[N] x) => (float[N] y) { y = Relu(x) }"


@pytest.fixture
def write_model(tmp_path: Path) -> Callable[..., Path]:
    def write(name: str = "models/one.onnx", graph: str = RELU) -> Path:
        return kit.write_model(tmp_path / name, graph)

    return write


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    return tmp_path / "cache"

"""Runs of the real engine over small models, most of them with the onnxruntime that misbehaves on demand."""

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

from harness.engine.engine import Engine
from harness.engine.events import Event
from harness.engine.prepare import open_suites
from harness.plan.expand import expand
from harness.plan.matrix import matrix_from

FAKE = Path(__file__).parent / "fake_onnxruntime"
MODEL = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4] x) => (float[4] y, int32[4] k, float[4] z) { y = Relu(x) k = Cast<to=6>(x) z = Neg(x) }"""
SHAPED = """<ir_version: 9, opset_import: ["" : 17]>
agraph (float[4] x) => (float[4] y, int32[4] k, float[4] z) {
    y = Relu(x) k = Cast<to=6>(x) s = Shape(x) r = Reshape(x, s) z = Neg(r) }"""


@pytest.fixture(scope="session", autouse=True)
def _isolated(own_cache: Path) -> None:
    """Every test of this folder keeps its goldens apart."""


@pytest.fixture(scope="session")
def fake_env() -> dict[str, str]:
    """What makes a target's process see the fake onnxruntime."""
    return {"PYTHONPATH": str(FAKE), "PYTHONDONTWRITEBYTECODE": "1"}


@pytest.fixture(scope="session")
def write_model() -> Callable[..., None]:
    """Write the model that the fake computes, a variant of it, or another one in ONNX's text form."""
    texts = {"": MODEL, "shaped": SHAPED, "big": MODEL.replace("[4]", "[500000]")}

    def write(path: Path, text: str = "") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx.parser.parse_model(texts.get(text, text)), path)

    return write


@pytest.fixture(scope="session")
def start_engine() -> Iterator[Callable[..., Engine]]:
    """Start an engine on every cell of a matrix, given as TOML or as its tables."""
    engines = []

    def start(folder: Path, matrix: str | dict[str, Any], processes: int = 4) -> Engine:
        table = tomllib.loads(matrix) if isinstance(matrix, str) else matrix
        loaded = matrix_from({"schema": 1, **table}, folder / "m.toml")
        suites = open_suites(loaded)
        plan = expand(loaded, {name: suite.models() for name, suite in suites.items()})
        engine = Engine(plan, suites, processes=processes)
        engines.append(engine)
        engine.submit(plan.cells)
        engine.drain()
        return engine

    yield start
    for engine in engines:
        engine.close()


@pytest.fixture(scope="session")
def run_matrix(start_engine: Callable[..., Engine]) -> Callable[..., list[Event]]:
    """Run a matrix to its end; all its events."""

    def run(folder: Path, matrix: str | dict[str, Any], processes: int = 4) -> list[Event]:
        return list(start_engine(folder, matrix, processes).events())

    return run

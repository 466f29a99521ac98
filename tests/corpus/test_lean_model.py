"""Models whose large weights stay in their file."""

import hashlib
import io
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

from harness.corpus.model.lean_model import LARGE, WEIGHTS_FILE, lean_content
from harness.corpus.model.model_file import load_lean, load_model, read_lean

ROWS = 600
TEXT = f"""<ir_version: 8, opset_import: ["" : 17]>
agraph (float[2, {ROWS}] x) => (float[2, {ROWS}] y) {{
    a = MatMul(x, w) b = Add(a, small) y = MatMul(a, v) }}"""


@pytest.fixture
def weights() -> dict[str, np.ndarray]:
    random = np.random.default_rng(3)
    return {
        name: random.standard_normal(shape).astype("f")
        for name, shape in {"w": (ROWS, ROWS), "small": (ROWS,), "v": (ROWS, ROWS)}.items()
    }


@pytest.fixture
def model(weights: dict[str, np.ndarray]) -> onnx.ModelProto:
    made = onnx.parser.parse_model(TEXT)
    made.graph.initializer.extend(numpy_helper.from_array(one, name) for name, one in weights.items())
    return made


@pytest.fixture
def path(model: onnx.ModelProto, tmp_path: Path) -> Path:
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_only_the_elements_of_large_weights_are_left_out(model: onnx.ModelProto, path: Path) -> None:
    assert load_model(path) == model
    found = load_lean(path)
    assert [one.HasField("raw_data") for one in found.graph.initializer] == [False, True, False]
    for one, whole in zip(found.graph.initializer, model.graph.initializer, strict=True):
        one.raw_data = whole.raw_data
    assert found == model


def test_weights_are_read_from_a_copy_of_the_file(
    path: Path, weights: dict[str, np.ndarray], tmp_path: Path
) -> None:
    found = load_lean(path, beside=WEIGHTS_FILE)
    path.rename(tmp_path / WEIGHTS_FILE)
    onnx.load_external_data_for_model(found, str(tmp_path))
    for one in found.graph.initializer:
        assert np.array_equal(numpy_helper.to_array(one), weights[one.name])


def test_a_weight_may_stay(path: Path, weights: dict[str, np.ndarray]) -> None:
    asked = {}

    def is_kept(weight: onnx.TensorProto, first: bytes) -> bool:
        asked[weight.name] = np.frombuffer(first, "<f4")
        return weight.name == "w"

    found = load_lean(path, is_kept=is_kept)
    assert [one.name for one in found.graph.initializer if one.HasField("raw_data")] == ["w", "small"]
    assert asked.keys() == {"w", "v"}
    assert all(np.array_equal(one, weights[name].reshape(-1)[: len(one)]) for name, one in asked.items())


def test_a_model_is_read_in_little_memory(path: Path) -> None:
    read_lean(path)  # imports
    tracemalloc.start()
    found = read_lean(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.digest.hexdigest() == hashlib.sha256(path.read_bytes()).hexdigest()
    assert not found.in_ort_format
    assert path.stat().st_size > 2 * LARGE
    assert peak < 1.5 * LARGE


OLD = onnx.TensorProto(name="old", data_type=1, dims=[LARGE], float_data=np.zeros(LARGE, "f"))


@pytest.mark.parametrize("form", ["nothing large", "two graphs", "elements as fields", "cut", "other data"])
def test_other_files_are_read_as_they_are(form: str, model: onnx.ModelProto) -> None:
    whole = model.SerializeToString()
    content = {
        "nothing large": onnx.parser.parse_model(TEXT).SerializeToString(),
        "two graphs": whole + whole,
        "elements as fields": onnx.ModelProto(graph=onnx.GraphProto(initializer=[OLD])).SerializeToString(),
        "cut": whole[:-100],
        "other data": b"<html>" + bytes(range(256)) * 5000,
    }[form]
    assert lean_content(io.BufferedReader(io.BytesIO(content))) is None


@pytest.mark.parametrize("cut", [100, 2_000_000])
def test_a_damaged_model_is_refused_as_a_small_one_is(path: Path, cut: int) -> None:
    path.write_bytes(path.read_bytes()[:-cut])
    with pytest.raises(ValueError, match="corrupt"):
        read_lean(path)

"""Large tensors between an agent and a harness on the same machine."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.agent.tensor_files import FILE_FROM, MAP_FROM
from harness.core.values.value import Sequence, Tensor, Value, pack, tensor
from harness.engine.processes.mapped_tensors import Tensors
from tests.kit import parse

Serve = Callable[..., dict[str, Any]]

ELEMENTS = FILE_FROM // 4
X = tensor(np.linspace(-1, 1, ELEMENTS, dtype=np.float32))
RELU = "g (float[N] x) => (float[N] y) { y = Relu(x) }"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return tmp_path_factory.mktemp("memory"), tmp_path_factory.mktemp("disk")


@pytest.fixture(scope="module")
def exchange(start_agent: Callable[..., Serve], folders: tuple[Path, Path]) -> Serve:
    return start_agent([str(folder) for folder in folders])


@pytest.fixture
def tensors(folders: tuple[Path, Path]) -> Iterator[Tensors]:
    yield Tensors(folders)
    assert [path for folder in folders for path in folder.iterdir()] == []


def array_of(value: Value) -> Any:
    assert isinstance(value, Tensor)
    return value.array


@pytest.mark.parametrize(
    "elements", [ELEMENTS - 1, ELEMENTS, MAP_FROM // 4], ids=["message", "read", "mapped"]
)
def test_inputs_and_outputs_of_any_size(exchange: Serve, tensors: Tensors, elements: int) -> None:
    x = np.linspace(-1, 1, elements, dtype=np.float32)
    result = exchange(parse(RELU), {"x": tensor(x)}, {"x": tensor(-x)}, put=tensors.put)
    assert result["status"] == "ok", result
    assert "second" not in result
    for sign, ((wire,),) in zip((1, -1), zip(result["outputs"], strict=True), strict=True):
        assert ("file" in wire) is (elements >= ELEMENTS)
        assert np.array_equal(array_of(tensors.take(wire)), np.maximum(sign * x, 0))


def test_a_model_may_leave_its_large_inputs_as_they_are(exchange: Serve, tensors: Tensors) -> None:
    # Views of a file cannot be written to: here an operator that may work in place.
    model = parse("g (float[N] x) => (float[N] y, float[N] z) { y = Identity(x) z = Neg(x) }")
    result = exchange(model, {"x": X}, put=tensors.put)
    y, z = (array_of(tensors.take(wire)) for wire in result["outputs"][0])
    assert np.array_equal(y, X.array)
    assert np.array_equal(z, -X.array)


def test_a_second_run_that_differs_comes_in_files_too(exchange: Serve, tensors: Tensors) -> None:
    model = parse(f"g () => (float[{ELEMENTS}] y) {{ y = RandomNormal<shape = [{ELEMENTS}]>() }}", 17, 9)
    result = exchange(model, repeat={"runs": 2, "sessions": 1, "bit_equal": False})
    first, second = (tensors.take(wires[0]) for wires in (result["outputs"][0], result["second"]))
    assert not np.array_equal(array_of(first), array_of(second))


def test_types_that_numpy_lacks(exchange: Serve, tensors: Tensors) -> None:
    model = parse("g (bfloat16[N] x) => (bfloat16[N] y, int4[N] k) { y = Identity(x) k = Cast<to=22>(x) }")
    x = Tensor(dtype="bfloat16", array=np.arange(8 * ELEMENTS, dtype=np.float32).astype("bfloat16"))
    result = exchange(model, {"x": x}, put=tensors.put)
    assert result["status"] == "ok", result
    y, k = result["outputs"][0]
    assert {y["dtype"], k["dtype"]} == {"bfloat16", "int4"}
    assert "file" in y
    assert "file" in k
    arrived = tensors.take(y)
    assert isinstance(arrived, Tensor)
    assert pack(arrived) == pack(x)
    assert array_of(tensors.take(k)).shape == (8 * ELEMENTS,)


def test_sequences_of_large_tensors(exchange: Serve, tensors: Tensors) -> None:
    model = parse("g (seq(float[N]) s, int64 i) => (seq(float[N]) t) { t = SequenceErase(s, i) }", 17, 9)
    feeds = {"s": Sequence(items=(X, tensor(-X.array))), "i": tensor(np.array(0))}
    result = exchange(model, feeds, put=tensors.put)
    assert result["status"] == "ok", result
    value = tensors.take(result["outputs"][0][0])
    assert isinstance(value, Sequence)
    assert [np.array_equal(array_of(item), -X.array) for item in value.items] == [True]


@pytest.mark.parametrize("model", [b"no model", RELU])
def test_an_error_leaves_no_file(exchange: Serve, tensors: Tensors, model: bytes | str) -> None:
    kept = exchange(parse(RELU), {"x": X}, put=tensors.put)["outputs"][0][0]
    wrong = tensor(np.zeros((2, ELEMENTS), np.float32))
    content = model if isinstance(model, bytes) else parse(model)
    result = exchange(content, {"x": X}, {"x": wrong}, put=tensors.put)
    assert result["status"] == "error"
    # What the model before has sent may not have been read yet.
    assert np.array_equal(array_of(tensors.take(kept)), np.maximum(X.array, 0))


def test_a_missing_input_is_not_blamed_on_the_provider(exchange: Serve, tensors: Tensors) -> None:
    wire = {"dtype": "float32", "shape": [ELEMENTS], "file": "in-999"}
    result = exchange(parse(RELU), {"x": X}, put=lambda _: wire)
    assert (result["status"], result["message"]) == (
        "unfeedable",
        "a tensor's file cannot be read: there is no in-999",
    )
    assert exchange(parse(RELU), {"x": tensor(np.zeros(3, np.float32))}, put=tensors.put)["status"] == "ok"


def test_without_folders_everything_comes_in_the_message(
    start_agent: Callable[..., Serve], tmp_path: Path
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    serve = start_agent([str(gone)])
    shutil.rmtree(gone)
    for agent in (serve, start_agent()):
        (wire,) = agent(parse(RELU), {"x": X})["outputs"][0]
        assert wire["data"] == np.maximum(X.array, 0).tobytes()

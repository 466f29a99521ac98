"""Scenarios about memory of the caller, other models and adapters, played on the real CPU provider."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from harness.agent.adapter_names import ADAPTER_PREFIX
from harness.agent.onnx_bytes import companions, stored_weights, with_stored_weights
from harness.core.values.value import Tensor, Value, from_wire, tensor
from harness.corpus.derived.lora_copy import ADAPTER_INPUTS
from tests.kit import parse

Serve = Callable[..., dict[str, Any]]

X = {"x": tensor(np.random.default_rng(3).normal(size=(2, 4)).astype(np.float32))}
WEIGHTS = np.random.default_rng(4).normal(size=(4, 4)).astype(np.float32)
PRODUCT = "g (float[2,4] x) => (float[2,4] y) { a = MatMul(x, w) y = Relu(a) }"


def product(folder: Path, **saving: Any) -> str:
    """The path of a model with weights."""
    model = onnx.load_from_string(parse(PRODUCT))
    model.graph.initializer.append(numpy_helper.from_array(WEIGHTS, "w"))
    onnx.save(model, folder / "model.onnx", **saving)
    return str(folder / "model.onnx")


def facts(result: dict[str, Any]) -> dict[str, Any]:
    assert result["status"] == "ok", result
    found: dict[str, Any] = result["scenario"]
    return found


def array_of(wire: Any) -> Any:
    value: Value = from_wire(wire)
    assert isinstance(value, Tensor)
    return value.array


def test_companions_have_other_weights_and_activations(tmp_path: Path) -> None:
    content = Path(product(tmp_path)).read_bytes()
    models = {what: onnx.load_from_string(one) for what, one in companions(content).items()}
    weights, activations = models["with other weights"], models["with other activations"]
    assert np.array_equal(numpy_helper.to_array(weights.graph.initializer[0]).ravel(), WEIGHTS.ravel()[::-1])
    assert [node.op_type for node in weights.graph.node] == ["MatMul", "Relu"]
    assert np.array_equal(numpy_helper.to_array(activations.graph.initializer[0]), WEIGHTS)
    assert [node.op_type for node in activations.graph.node] == ["MatMul", "Sigmoid"]
    assert companions(parse("g (float[2] x) => (float[2] y) { y = Neg(x) }")) == {}


def test_weights_that_are_the_same_in_reverse_are_faded() -> None:
    model = onnx.load_from_string(parse("g (float[2,2] x) => (float[2,2] y) { y = MatMul(x, w) }"))
    model.graph.initializer.append(onnx.helper.make_tensor("w", 1, [2, 2], [1.0, 1, 1, 1]))
    (other,) = companions(model.SerializeToString()).values()
    (weights,) = onnx.load_from_string(other).graph.initializer
    assert numpy_helper.to_array(weights).tolist() == [[0.875] * 2] * 2


def test_weights_are_moved_into_a_file(tmp_path: Path) -> None:
    content = Path(product(tmp_path)).read_bytes()
    moved, weights = with_stored_weights(content, "moved.bin", smallest=64)
    (tmp_path / "moved.onnx").write_bytes(moved)
    (tmp_path / "moved.bin").write_bytes(weights)
    assert len(stored_weights(moved)) == 1
    (one,) = onnx.load(tmp_path / "moved.onnx").graph.initializer
    assert np.array_equal(numpy_helper.to_array(one), WEIGHTS)
    assert with_stored_weights(content, "moved.bin") == (content, b"")  # too small


def test_weights_in_files_are_found(tmp_path: Path) -> None:
    path = product(tmp_path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    (one,) = stored_weights(Path(path).read_bytes())
    assert (one.name, one.data_type, one.shape, one.file, one.nbytes) == ("w", 1, [4, 4], "weights.bin", 64)


@pytest.mark.parametrize("content", [b"\xff" * 9, b"\x3a\x7fabc", b"\x3b"])
def test_what_is_no_model_has_no_companions(content: bytes) -> None:
    with pytest.raises(ValueError, match="no message of protobuf"):
        companions(content)


def test_sessions_of_companions_are_open_beside_a_model(serve: Serve, tmp_path: Path) -> None:
    path: Any = product(tmp_path)
    found = facts(serve(path, X, scenario="interleaved", scenario_settings={}))
    assert found["companions"] == ["with other weights", "with other activations"]
    assert found["equal_to_alone"] is True
    assert "only" not in found


def test_buffers_are_used_again(serve: Serve, tmp_path: Path) -> None:
    path: Any = product(tmp_path)
    found = facts(serve(path, X, X, scenario="buffers", scenario_settings={}))
    assert found.pop("shared_with") == ["with other weights", "with other activations"]
    assert found == {"buffers_on": ["y: cpu"], "runs": 8, "equal_to_plain": True}


def test_weights_come_from_memory(serve: Serve, tmp_path: Path) -> None:
    path: Any = product(tmp_path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    result = serve(path, X, scenario="initializers", scenario_settings={})
    found = facts(result)
    assert (found["weights"], found["equal_to_file"], len(found["shared_mib"])) == (1, True, 2)
    assert found["ways"] + 2 * len(found.get("not_tried", ())) == 5
    right = np.maximum(X["x"].array @ WEIGHTS, 0)
    assert np.allclose(array_of(result["outputs"][0][0]), right)


def test_adapters_change_from_run_to_run(serve: Serve) -> None:
    """As the model of ``lora_copy``: the inputs of adapters have defaults, and come from files."""
    assert ADAPTER_PREFIX == ADAPTER_INPUTS
    name = f"{ADAPTER_PREFIX}0.A"
    model = onnx.load_from_string(
        parse("g (float[2,4] x, float[4,4] a) => (float[2,4] y) { y = MatMul(x, a) }")
    )
    model.graph.input[1].name = model.graph.node[0].input[1] = name
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((4, 4), np.float32), name))
    with_adapter = {**X, name: tensor(WEIGHTS)}
    result = serve(model.SerializeToString(), X, with_adapter, X, scenario="adapters", scenario_settings={})
    found = facts(result)
    assert found["adapters"] == [0, 1, 0]
    assert found["adapter_bytes"][0] == 0 < found["adapter_bytes"][1]
    for (wire,), weights in zip(result["outputs"], (0, 1, 0), strict=True):
        assert np.allclose(array_of(wire), X["x"].array @ WEIGHTS * weights)

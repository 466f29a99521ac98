"""The zoo's models: valid ONNX, and on the CPU EP they compute what they should."""

import functools
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from harness.annex.made.zoo.graph_builder import GraphBuilder
from harness.annex.made.zoo.roster import ZooModel, build, zoo_models

ort: Any = pytest.importorskip("onnxruntime")

MODELS = zoo_models()
SYMBOLIC = [name for name, model in MODELS.items() if model.architecture.symbolic and not model.fixed]


@functools.cache
def built(name: str) -> tuple[GraphBuilder, onnx.ModelProto]:
    g = build(MODELS[name])
    return g, g.model(name)


def session(model: onnx.ModelProto, level: Any = None) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    # Quantized operators are computed as ONNX defines them, not with the CPU EP's integer kernels.
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    if level is not None:
        options.graph_optimization_level = level
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


@functools.cache
def results(name: str) -> dict[str, Any]:
    g, model = built(name)
    made = session(model)
    names = [output.name for output in made.get_outputs()]
    return dict(zip(names, made.run(names, g.inputs), strict=True))


def same_function(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for output, value in one.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f":
            np.testing.assert_allclose(other[output], value, rtol=1e-3, atol=1e-4, err_msg=output)
        else:
            np.testing.assert_equal(other[output], value)


@pytest.mark.parametrize("name", MODELS)
def test_each_model_is_valid_onnx(name: str) -> None:
    g, model = built(name)
    assert list(g.inputs) == [port.name for port in model.graph.input]
    onnx.checker.check_model(model, full_check=True)
    symbols = {dim.dim_param for port in model.graph.input for dim in port.type.tensor_type.shape.dim}
    assert (symbols != {""}) == (name in SYMBOLIC)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.size == "small"])
def test_building_again_makes_the_same_bytes(name: str) -> None:
    g, model = built(name)
    again = build(MODELS[name])
    assert again.model(name).SerializeToString() == model.SerializeToString()
    for port, data in again.inputs.items():
        np.testing.assert_array_equal(data, g.inputs[port])


@pytest.mark.real_ep
@pytest.mark.parametrize("name", MODELS)
def test_all_exports_of_a_size_compute_one_function(name: str) -> None:
    model = MODELS[name]
    first = ZooModel(architecture=model.architecture, size=model.size, opset=model.architecture.opsets[0])
    same_function(results(first.name), results(name))


@pytest.mark.real_ep
@pytest.mark.parametrize(
    "name", [name for name, model in MODELS.items() if not model.fixed and model.opset < 20]
)
def test_activations_keep_their_scale_through_any_depth(name: str) -> None:
    g, model = built(name)
    inferred = onnx.shape_inference.infer_shapes(model)
    every = onnx.ModelProto()
    every.CopyFrom(inferred)
    known = {output.name for output in every.graph.output}
    floats = [
        info
        for info in inferred.graph.value_info
        if info.type.tensor_type.elem_type == onnx.TensorProto.FLOAT and info.name not in known
    ]
    every.graph.output.extend(floats)
    made = session(every, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    names = [info.name for info in floats]
    # Masks are very large numbers by design, probabilities small ones, and steps of training go to 1,000.
    spared = ("mask/", "Softmax", "time/")
    checked = 0
    for info, value in zip(floats, made.run(names, g.inputs), strict=True):
        assert np.isfinite(value).all(), info.name
        if not any(part in info.name for part in spared) and not (value < -1e30).any():
            scale = float(np.sqrt(np.mean(np.square(value, dtype=np.float64))))
            assert 1e-2 < scale < 100, (info.name, scale)
            checked += 1
    assert checked > 0


@pytest.mark.real_ep
@pytest.mark.parametrize(
    "name",
    # The rows of the detector are those of all images together.
    [name for name in SYMBOLIC if MODELS[name].size == "small" and not name.startswith("detector")],
)
def test_a_batch_of_any_size_gives_each_item_its_own_result(name: str) -> None:
    g, model = built(name)
    axes = {
        port.name: [dim.dim_param for dim in port.type.tensor_type.shape.dim].index("batch")
        for port in (*model.graph.input, *model.graph.output)
        if port.type.HasField("tensor_type")
    }
    whole, made = results(name), session(model)
    names = [output for output in whole if output in axes]
    for item in (0, 1):
        alone = made.run(names, {port: data.take([item], axes[port]) for port, data in g.inputs.items()})
        for output, value in zip(names, alone, strict=True):
            expected = whole[output].take([item], axes[output])
            if value.dtype.kind == "f":
                np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-4, err_msg=output)
            else:
                np.testing.assert_array_equal(value, expected)
    for output in names:
        if whole[output].dtype.kind == "f":
            one, other = (whole[output].take([item], axes[output]) for item in (0, 1))
            assert not np.allclose(one, other, atol=1e-3), f"{output} says the same of both items"


@pytest.mark.real_ep
def test_the_detector_finds_boxes_and_says_so_when_there_are_none() -> None:
    g, model = built("detector-small-op17")
    rows = results("detector-small-op17")["detections"]
    assert rows.shape[1] == 7
    assert len(rows) > 10
    assert set(rows[:, 0]) == {0.0, 1.0}
    assert set(rows[:, 1]) <= {0.0, 1.0, 2.0, 3.0}
    assert ((rows[:, 2] > 0.6) & (rows[:, 2] < 1)).all()
    # Providers round differently: no two scores are so close that their order is a matter of rounding.
    for item in (0, 1):
        for kind in range(4):
            scores = np.sort(rows[(rows[:, 0] == item) & (rows[:, 1] == kind), 2])
            assert (np.diff(scores) > 1e-5).all()
    (image,) = g.inputs
    empty = session(model).run(None, {image: np.full((1, 3, 64, 64), -50, np.float32)})[0]
    assert empty.shape[1] == 7
    nothing = session(model).run(None, {image: np.zeros((0, 3, 64, 64), np.float32)})[0]
    assert nothing.shape == (0, 7)


@pytest.mark.real_ep
def test_mnist_is_optimised_as_the_page_of_the_nnapi_provider_shows(tmp_path: Path) -> None:
    def operators(level: Any) -> list[str]:
        options = ort.SessionOptions()
        options.log_severity_level = 3
        options.graph_optimization_level = level
        options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
        model = built("mnist-small-op12")[1].SerializeToString()
        ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        nodes = onnx.load(tmp_path / "optimised.onnx").graph.node
        return sorted(node.op_type for node in nodes)

    levels = ort.GraphOptimizationLevel
    plain = ["Add", "Add", "Add", "Conv", "Conv", "MatMul", "MaxPool", "MaxPool", "Relu", "Relu"]
    assert operators(levels.ORT_DISABLE_ALL) == [*plain, "Reshape", "Reshape"]
    # Both additions of a bias went into Conv, the third with MatMul into Gemm, and one Reshape was folded.
    basic = ["Conv", "Conv", "Gemm", "MaxPool", "MaxPool", "Relu", "Relu", "Reshape"]
    assert operators(levels.ORT_ENABLE_BASIC) == basic
    extended = ["FusedConv", "FusedConv", "Gemm", "MaxPool", "MaxPool", "Reshape"]
    assert operators(levels.ORT_ENABLE_EXTENDED) == extended


@pytest.mark.real_ep
def test_quantized_activations_use_their_range() -> None:
    g, model = built("int8-cnn-small-op17")
    every = onnx.shape_inference.infer_shapes(model)
    levels = [node.output[0] for node in every.graph.node if node.op_type == "QuantizeLinear"]
    every.graph.output.extend(info for info in every.graph.value_info if info.name in levels)
    made = session(every, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    for name, value in zip(levels, made.run(levels, g.inputs), strict=True):
        assert np.mean(value == 255) < 0.03, name
        assert len(np.unique(value)) > 8, name

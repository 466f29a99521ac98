"""The builder of the zoo's models: names, seeds, dimensions, bodies."""

import numpy as np
import onnx
import pytest

from harness.annex.made.zoo.graph_builder import BATCH_DIM, GraphBuilder, MakeInput
from harness.annex.made.zoo.inputs import activations, digits, images, log_mel, padding_mask, token_ids
from harness.core.values.value import Array


def graph(*, seed: str = "a", fixed: bool = False) -> GraphBuilder:
    return GraphBuilder(seed=seed, opset=17, fixed=fixed)


def test_names_show_the_layer_and_are_unique() -> None:
    g = graph()
    with g.scope("layer0"), g.scope("mlp"):
        x = g.input("x", (BATCH_DIM, 4), activations)
        names = [g.op("Relu", x), g.op("Relu", x), *g.ops(2, "Split", x, axis=1), g.normal("weight", (4,), 1)]
    assert names == [
        "layer0/mlp/Relu",
        "layer0/mlp/Relu_1",
        "layer0/mlp/Split_0",
        "layer0/mlp/Split_1",
        "layer0/mlp/weight",
    ]
    with pytest.raises(ValueError, match="two weights are named 'layer0/mlp/weight'"), g.scope("layer0/mlp"):
        g.normal("weight", (4,), 1)


def test_random_numbers_derive_from_the_seed_and_the_name_alone() -> None:
    def weight(g: GraphBuilder, *before: str) -> Array:
        for name in before:
            g.normal(name, (3,), 1.0)
        g.normal("weight", (3,), 1.0)
        proto = g.model("m").graph.initializer[-1]
        return onnx.numpy_helper.to_array(proto)

    np.testing.assert_array_equal(weight(graph()), weight(graph(), "another"))
    assert not np.array_equal(weight(graph()), weight(graph(seed="b")))
    assert weight(graph()).dtype == np.float32


def test_constants_are_shared_by_type_shape_and_content() -> None:
    g = graph()
    assert g.ints(1, 2) == g.ints(1, 2)
    different = {g.ints(1), g.scalar(1), g.constant(np.array(1)), g.constant(np.array([1], np.int32))}
    assert len(different) == 4
    assert g.scalar(0.0) != g.scalar(-0.0)


def test_symbols_are_declared_by_name_or_by_size() -> None:
    for fixed, declared in ((False, "batch"), (True, 2)):
        g = graph(fixed=fixed)
        y = g.op("Relu", g.input("x", (BATCH_DIM, 3), activations))
        g.output("y", y, "float32", (BATCH_DIM, "found"))
        ports = (g.model("m").graph.input[0], g.model("m").graph.output[0])
        first, second = (port.type.tensor_type.shape.dim for port in ports)
        assert (first[0].dim_param or first[0].dim_value, first[1].dim_value) == (declared, 3)
        assert (second[0].dim_param or second[0].dim_value, second[1].dim_param) == (declared, "found")
        assert g.inputs["x"].shape == (2, 3)


def test_a_body_keeps_its_nodes_and_sees_names_from_outside() -> None:
    g = graph()
    x = g.input("x", (2,), activations)
    with g.body("then") as then:
        then.outputs.append(g.declare(g.op("Relu", x), "float32", (2,)))
    with g.body("else") as otherwise:
        otherwise.outputs.append(g.declare(g.op("Neg", x), "float32", (2,)))
    some = g.op("Greater", g.op("ReduceMax", x, keepdims=0), g.scalar(0))
    y = g.op("If", some, then_branch=then.graph, else_branch=otherwise.graph)
    g.output("y", y, "float32", (2,))
    model = g.model("m")
    onnx.checker.check_model(model, full_check=True)
    assert [node.op_type for node in model.graph.node] == ["ReduceMax", "Greater", "If"]
    assert then.graph is not None
    assert [node.name for node in then.graph.node] == ["then/Relu"]


def test_inputs_are_in_the_range_of_real_ones() -> None:
    def draw(maker: MakeInput, shape: tuple[int, ...]) -> Array:
        drawn = maker(np.random.default_rng(1), shape)
        assert drawn.shape == shape
        return drawn

    picture = draw(images, (2, 3, 30, 21))
    assert picture.dtype == np.float32
    assert -2 <= picture.min() < -1 < 1 < picture.max() <= 2
    digit = draw(digits, (2, 1, 28, 28))
    assert 0.5 < np.mean(digit == 0) < 0.95
    assert digit.max() <= 1
    ids = draw(token_ids(100), (4, 50))
    assert ids.dtype == np.int64
    assert 0 <= ids.min() < 10
    assert 90 < ids.max() < 100
    mask = draw(padding_mask, (3, 16))
    assert (mask[0] == 1).all()
    assert (np.diff(mask, axis=1) <= 0).all()
    assert 8 <= mask[1].sum() < 16
    sound = draw(log_mel, (2, 200, 8))
    assert np.mean(sound[:, 1:] * sound[:, :-1]) > 0.5

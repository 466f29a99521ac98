"""What computes the outputs of a network; models of single operators are none."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness.corpus.model.heads import heads_of
from harness.corpus.suites.suites import open_suite

WEIGHTS = {"w": (4, 8), "v": (8, 3), "b": (3,), "q": (4, 4)}


def heads(body: str, weights: tuple[str, ...] = tuple(WEIGHTS)) -> dict[str, str]:
    """Return the heads of a model in ONNX's text form, with weights of zeros."""
    text = f"""<ir_version: 9, opset_import: ["" : 17]>
    agraph (float[2,4] x) => (float[2,3] y) {{ {body} }}"""
    model = onnx.parser.parse_model(text)
    model.graph.initializer.extend(
        numpy_helper.from_array(np.zeros(WEIGHTS[name], np.float32), name) for name in weights
    )
    return dict(heads_of(model))


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("h = MatMul(x, w) r = Relu(h) y = Gemm(r, v, b)", "linear"),
        ("h = MatMul(x, w) r = Relu(h) m = MatMul(r, v) y = Add(m, b)", "linear"),
        ("h = MatMul(x, w) r = Relu(h) m = MatMul(r, v) y = Add(b, m)", "linear"),
        ("h = MatMul(x, w) m = MatMul(h, v) y = Softmax(m)", "softmax"),
        ("h = MatMul(x, w) m = MatMul(h, v) y = LogSoftmax(m)", "log_softmax"),
        ("h = MatMul(x, w) m = MatMul(h, v) s = Sigmoid(m) y = Identity(s)", "sigmoid"),
        ("h = MatMul(x, w) m = MatMul(h, v) y = Tanh(m)", ""),
        ("h = MatMul(x, w) m = MatMul(h, v) y = Add(m, m)", ""),
    ],
)
def test_the_head_of_a_network(body: str, head: str) -> None:
    assert heads(body) == {"y": head}


@pytest.mark.parametrize(
    "body",
    ["y = Softmax(x)", "y = MatMul(x, w)", "h = Relu(x) y = MatMul(h, w)", "h = Relu(x) y = Softmax(h)"],
)
def test_one_layer_alone_is_no_network(body: str) -> None:
    assert heads(body) == {}


def test_one_layer_before_a_softmax_is_a_network() -> None:
    assert heads("m = MatMul(x, w) y = Softmax(m)") == {"y": "softmax"}


def test_trees_have_their_weights_in_attributes() -> None:
    nodes = [
        helper.make_node("TreeEnsemble", ["x"], ["t"], domain="ai.onnx.ml"),
        helper.make_node("Softmax", ["t"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "g", [], [helper.make_tensor_value_info("y", 1, [2, 3])])
    assert heads_of(helper.make_model(graph)) == {"y": "softmax"}


def test_weights_may_be_constants_and_what_is_made_of_them() -> None:
    constant = "c = Constant<value = float[4,2] {1,2,3,4,5,6,7,8}>()"
    assert heads(f"{constant} d = Neg(c) m = MatMul(x, d) y = Softmax(m)", ()) == {"y": "softmax"}


def test_what_is_computed_from_inputs_alone_is_no_layer() -> None:
    assert heads("t = Transpose(x) m = MatMul(x, t) y = Softmax(m)", ()) == {}


def test_a_loop_of_names_ends() -> None:
    assert heads("h = MatMul(x, q) s = Softmax(h) y = Identity(y)") == {}


@pytest.mark.parametrize("suite", ["corners", "onnx-simple"])
def test_operator_suites_have_no_networks(suite: str) -> None:
    opened = open_suite(suite)
    models = [onnx.load(opened.model_path(model), load_external_data=False) for model in opened.models()]
    assert [model.graph.name for model in models if heads_of(model)] == []

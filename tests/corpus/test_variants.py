"""Variants of models: valid, and with the answer of their original."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.annex.made.forms.draw import ChoiceStream
from harness.annex.made.variants.draft import Draft, Edge, NewNodes
from harness.annex.made.variants.sequence import TRANSFORMATIONS, has_decisions, vary
from harness.annex.made.variants.transformation import Transformation
from harness.annex.made.zoo.roster import build, zoo_models
from harness.corpus.model.nodes import all_nodes
from tests.kit import run_on_cpu

Feeds = Mapping[str, np.ndarray[Any, Any]]

IMAGE = """
<ir_version: 10, opset_import: ["" : 21]>
image (float[2,3,6,4] x) => (float[2,4,6,4] y)
<float[4,3,3,1] w = {0.5, -0.25, 1, 0.5, -0.5, 2, 0.25, 0.5, -1, 0.5, -0.25, 1, 0.5, -0.5, 2, 0.25, 0.5, -1,
    0.5, -0.25, 1, 0.5, -0.5, 2, 0.25, 0.5, -1, 0.5, -0.25, 1, 0.5, -0.5, 2, 0.25, 0.5, -1},
 float[4] b = {0.5, -0.5, 0.25, 1}>
{
    c = Conv <pads = [1, 0, 1, 0], strides = [1, 1]> (x, w, b)
    r = Relu (c)
    s = Constant <value = float {0.5}> ()
    m = Mul (r, s)
    y = Sub (m, r)
}
"""
PRODUCT = """
<ir_version: 10, opset_import: ["" : 20]>
product (float[3,4] x, float[4,4] z) => (float[3,4] y)
<float[4,4] w = {0.5, -0.25, 1, 0.5, -0.5, 2, 0.25, 0.5, -1, 0.5, -0.25, 1, 0.5, -0.5, 2, 0.25},
 float[4,4] same = {0.5, -0.25, 1, 0.5, -0.5, 2, 0.25, 0.5, -1, 0.5, -0.25, 1, 0.5, -0.5, 2, 0.25}>
{
    p = MatMul (x, w)
    v = Add (z, same)
    q = MatMul (p, v)
    t = Transpose <perm = [1, 0]> (w)
    u = MatMul (q, t)
    a = Add (u, q)
    d = Add (a, p)
    g = Gelu (d)
    y = Softmax (g)
}
"""
SEQUENCE = """
<ir_version: 8, opset_import: ["" : 17]>
sequence (float[2,3,8] x) => (float[2,4,4] y)
<float[4,3,2] w = {0.5, -0.25, 1, 0.5, -0.5, 2, 0.25, 0.5, -1, 0.5, -0.25, 1, 0.5, -0.5, 2, 0.25, 0.5, -1,
    0.5, -0.25, 1, 0.5, -0.5, 2}>
{
    c = Conv <strides = [2]> (x, w)
    y = Tanh (c)
}
"""
FLAGS = """
<ir_version: 8, opset_import: ["" : 13]>
flags (int64[2,6] x, int64[6] z) => (bool[2,6] y)
{
    g = Greater (x, z)
    e = Equal (x, z)
    n = Not (e)
    y = And (g, n)
}
"""
MODELS = {"image": IMAGE, "product": PRODUCT, "sequence": SEQUENCE, "flags": FLAGS}


def model_named(name: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(MODELS[name])


def feeds_of(model: onnx.ModelProto) -> Feeds:
    weights = {one.name for one in model.graph.initializer}
    feeds = {}
    for number, port in enumerate(port for port in model.graph.input if port.name not in weights):
        shape = [dim.dim_value for dim in port.type.tensor_type.shape.dim]
        drawn = ChoiceStream(7, number).whole(shape, -64, 64)
        whole = port.type.tensor_type.elem_type == onnx.TensorProto.INT64
        feeds[port.name] = drawn // 32 if whole else (drawn / 32).astype(np.float32)
    return feeds


Check = Callable[..., None]


@pytest.fixture
def check_answer() -> Check:
    """Compare bits where a transformation keeps them, else within 2 ** -16 of the largest."""

    def check(original: onnx.ModelProto, variant: onnx.ModelProto, feeds: Feeds, *, exact: bool) -> None:
        onnx.checker.check_model(variant, full_check=True)
        names = [port.name for port in original.graph.output]
        right = run_on_cpu(original, feeds, names, optimized=False)
        for one, found in zip(right, run_on_cpu(variant, feeds, names, optimized=False), strict=True):
            assert (found.dtype, found.shape) == (one.dtype, one.shape)
            if exact or one.dtype.kind != "f":
                np.testing.assert_array_equal(found, one)
            else:
                np.testing.assert_allclose(found, one, rtol=0, atol=2.0**-16 * float(np.abs(one).max()))

    return check


@pytest.mark.parametrize("name", TRANSFORMATIONS)
def test_each_transformation_keeps_the_answer(name: str, check_answer: Check) -> None:
    applied = 0
    for number, text in enumerate(MODELS):
        original = model_named(text)
        for seed in range(3):
            variant = vary(original, ChoiceStream(seed, number), 1, [name])
            if variant is None:
                continue
            applied += 1
            assert variant.exact == TRANSFORMATIONS[name].exact
            assert [step.name for step in variant.steps] == [name]
            assert variant.model != original
            check_answer(original, variant.model, feeds_of(original), exact=variant.exact)
    assert applied, f"{name} has no place in any of the models"


@pytest.mark.parametrize("text", MODELS)
def test_sequences_keep_the_answer(text: str, check_answer: Check) -> None:
    original = model_named(text)
    for seed in range(20):
        variant = vary(original, ChoiceStream(seed), 8)
        assert variant is not None
        check_answer(original, variant.model, feeds_of(original), exact=variant.exact)


@pytest.mark.parametrize(
    "name", ["mnist-small-op22", "gpt-small-fixed-op22", "int8-cnn-small-op22", "speech-lstm-small-op17"]
)
def test_models_of_the_zoo_keep_the_answer(name: str, check_answer: Check) -> None:
    graph = build(zoo_models()[name])
    original = graph.model(name)
    for seed in range(3):
        variant = vary(original, ChoiceStream(seed), 6)
        assert variant is not None
        check_answer(original, variant.model, graph.inputs, exact=variant.exact)


def test_the_check_finds_a_transformation_that_changes_the_answer(
    monkeypatch: pytest.MonkeyPatch, check_answer: Check
) -> None:
    def wrong(draft: Draft) -> str:
        part = NewNodes(draft)
        draft.reroute(Edge(None, 0), part, part.op("Neg", draft.name_at(Edge(None, 0))))
        return "y"

    monkeypatch.setitem(TRANSFORMATIONS, "wrong", Transformation(name="wrong", apply=wrong))
    original = model_named("image")
    variant = vary(original, ChoiceStream(0), 1, ["wrong"])
    assert variant is not None
    with pytest.raises(AssertionError):
        check_answer(original, variant.model, feeds_of(original), exact=False)


def test_the_same_choices_give_the_same_bytes() -> None:
    original = model_named("image")
    before = original.SerializeToString(deterministic=True)
    first, second = (vary(original, ChoiceStream(5), 8) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.model.SerializeToString(deterministic=True) == second.model.SerializeToString(
        deterministic=True
    )
    assert first.steps == second.steps
    assert original.SerializeToString(deterministic=True) == before


def test_where_a_result_jumps_only_exact_transformations_are_applied() -> None:
    original = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        jumps (float[4,4] x, float[4,4] w) => (int64[4] y)
        {
            p = MatMul (x, w)
            s = Add (p, x)
            t = Add (s, w)
            y = ArgMax <axis = 1, keepdims = 0> (t)
        }
    """)
    assert has_decisions(original, {})
    for seed in range(20):
        variant = vary(original, ChoiceStream(seed), 6)
        assert variant is not None
        assert variant.exact


@pytest.mark.parametrize(
    "text",
    [
        '<ir_version: 7, opset_import: ["" : 12]> old (float[2] x) => (float[2] y) { y = Relu (x) }',
        """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
        classical (float[2,2] x) => (float[2,2] y) { y = ai.onnx.ml.Scaler <scale = [2.0]> (x) }""",
    ],
    ids=["opset 12", "ai.onnx.ml"],
)
def test_models_that_are_left_alone(text: str) -> None:
    assert vary(onnx.parser.parse_model(text), ChoiceStream(0), 3) is None


def test_defaults_are_written_out_before_a_function_is_opened(check_answer: Check) -> None:
    """onnx's inliner forgets them: the mean would be of other axes."""
    original = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 17]>
        mean (float[2,3,2,2] x) => (float[2,3,2,2] y) { y = MeanVarianceNormalization (x) }
    """)
    variant = vary(original, ChoiceStream(0), 1, ["opened"])
    assert variant is not None
    assert "ReduceMean" in {node.op_type for node in all_nodes(variant.model.graph.node)}
    check_answer(original, variant.model, feeds_of(original), exact=False)


def test_each_transformation_says_what_it_does() -> None:
    assert all(one.apply.__doc__ for one in TRANSFORMATIONS.values())

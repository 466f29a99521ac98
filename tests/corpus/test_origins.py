"""The origins of graph outputs that decide how they are judged."""

from pathlib import Path

import numpy as np
import onnx.helper
import onnx.numpy_helper
import onnx.parser
import pytest

from harness.core.values.value import Tensor, tensor
from harness.corpus.caches.cache import ENVIRONMENT
from harness.corpus.case import Case
from harness.corpus.derived.inner_outputs import hidden_tensors, revealed_case
from harness.corpus.derived.scenario_case import Inapplicable
from harness.corpus.load_case import load_case
from harness.corpus.model.origins import (
    ChosenFrom,
    CopiedFrom,
    DrawnBy,
    Origin,
    Origins,
    QuantizedWith,
    UnorderedWith,
    origins_of,
)
from harness.corpus.model.protos import tensor_proto
from harness.corpus.suites.suite import open_folder
from tests.kit import answers_on_cpu

HEAD = '<ir_version: 9, opset_import: ["" : 20, "com.microsoft" : 1]>\n'


def read(graph: str) -> Origins:
    return origins_of(onnx.parser.parse_model(HEAD + graph))


@pytest.mark.parametrize(
    ("graph", "origin"),
    [
        (
            "g (float[2,3] x) => (int64[2,1] y) { y = ArgMax<axis=1>(x) }",
            ChosenFrom(op="ArgMax", data="x", computed=False, axis=1),
        ),
        (
            (
                "g (float[2,3] x) => (int32[2] y) { h = Neg(x) k = ArgMin<axis=-1, keepdims=0>(h) "
                "c = Cast<to=6>(k) y = Identity(c) }"
            ),
            ChosenFrom(op="ArgMin", data="h", computed=True, axis=-1),
        ),
        (
            "g (float[2,3] x) => (int64[2,1] y) <int64[1] k = {1}> { v, y = TopK(x, k) }",
            ChosenFrom(op="TopK", data="x", computed=False, axis=-1),
        ),
        (
            "g (float[2,3] x) => (int64[2,1] y) <int64[1] k = {1}> { v, y = TopK<sorted=0>(x, k) }",
            ChosenFrom(op="TopK", data="x", computed=False, axis=-1, unordered=True),
        ),
        (
            "g (float[2,3] x) => (float[2,1] y) <int64[1] k = {1}> { y, i = TopK<axis=1, sorted=0>(x, k) }",
            UnorderedWith(axis=1),
        ),
        (
            "g (float[1,4,4] b, float[1,2,4] s) => (int64[N,3] y) { y = NonMaxSuppression(b, s) }",
            ChosenFrom(op="NonMaxSuppression", data="s", computed=False, axis=0),
        ),
        (
            "g (float[1,1,4,4] x) => (int64[1,1,2,2] y) { p, y = MaxPool<kernel_shape=[3,3]>(x) }",
            ChosenFrom(op="MaxPool", data="x", computed=False, axis=0),
        ),
        (
            "g (float[4] x) => (uint8[4] y) <float s = {0.5}> { y = QuantizeLinear(x, s) }",
            QuantizedWith(),
        ),
        (
            (
                "g (uint8[4] x) => (float[2,2] y) <float s = {0.5}, int64[2] k = {2, 2}> "
                "{ d = DequantizeLinear(x, s) y = Reshape(d, k) }"
            ),
            QuantizedWith(values=(0.5,)),
        ),
        (
            "g (uint8[2,2] x, float[2] s) => (float[2,2] y) { y = DequantizeLinear<axis=0>(x, s) }",
            QuantizedWith(scale="s", axis=0),
        ),
        (
            (
                "g (uint8[4] x) => (uint8[4] y) <float s = {0.5}> "
                "{ d = DequantizeLinear(x, s) e = Exp(d) y = QuantizeLinear(e, s) }"
            ),
            QuantizedWith(in_integers=True),
        ),
        (
            (
                "g (float[4] x) => (float[4] y) <float s = {0.5}, uint8[4] w = {1, 2, 3, 4}> "
                "{ d = DequantizeLinear(w, s) m = Mul(x, d) q = QuantizeLinear(m, s) "
                "y = DequantizeLinear(q, s) }"
            ),
            QuantizedWith(values=(0.5,)),
        ),
        (
            (
                "g (uint8[2,2] x, uint8[2,2] w) => (uint8[2,2] y) <float s = {0.5}> "
                "{ i = MatMulInteger(x, w) f = Cast<to=1>(i) y = QuantizeLinear(f, s) }"
            ),
            QuantizedWith(in_integers=True),
        ),
        (
            "g (float[4] x) => (float[4] y) { y = RandomNormalLike<scale=2.0>(x) }",
            DrawnBy(op="RandomNormalLike", parameters={"mean": 0.0, "scale": 2.0}),
        ),
        (
            (
                "g () => (float[2,2] y) <int64[2] k = {2, 2}> { z = RandomUniform<shape=[4], low=-1.0>() "
                "y = Reshape(z, k) }"
            ),
            DrawnBy(op="RandomUniform", parameters={"low": -1.0, "high": 1.0}),
        ),
        ("g (float[4] x) => (float[4] y) { y = Bernoulli(x) }", DrawnBy(op="Bernoulli", data="x")),
        (
            "g (float[4] x, bool t) => (float[4] y) <float r = {0.25}> { y = Dropout(x, r, t) }",
            DrawnBy(op="Dropout", parameters={"ratio": 0.25}, data="x", inputs={"training": "t"}),
        ),
        (
            "g (float[4] x) => (bool[4] y) <bool t = {1}> { z, y = Dropout(x, , t) }",
            DrawnBy(op="Dropout", parameters={"ratio": 0.5, "training": 1.0}, data="x", mask=True),
        ),
        ("g (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", CopiedFrom()),
        ("g (float[2,3] x) => (float[2,1] y) <int64[1] k = {1}> { y, i = TopK(x, k) }", CopiedFrom()),
        (
            (
                "g (float[2,3] x, bool[3] c) => (float[3,2] y) "
                "{ n = Neg(x) m = Where(c, n, x) y = Transpose(m) }"
            ),
            CopiedFrom(),
        ),
        ("g (float[4] x) => (float16[4] y) { y = Cast<to=10>(x) }", CopiedFrom(rounding=("Cast",))),
        ("g (float16[4] x) => (float[4] y) { y = Cast<to=1>(x) }", CopiedFrom()),
        (
            "g (float[4] x, bfloat16 t) => (float[4] y) { b = CastLike(x, t) y = Cast<to=1>(b) }",
            CopiedFrom(rounding=("CastLike",)),
        ),
    ],
)
def test_outputs_whose_values_are_more_than_numbers(graph: str, origin: Origin) -> None:
    found = read(graph)
    assert found.known == {"y": origin}
    assert found.by_chance == ()


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[2,3] x) => (float[2,3] y) { y = Sigmoid(x) }",
        # Two roundings, where a provider has no float64; and a number that is computed.
        "g (double[4] x) => (float16[4] y) { y = Cast<to=10>(x) }",
        "g (float[4] x) => (float16[4] y) { z = Exp(x) y = Cast<to=10>(z) }",
        "g (float[4] x, int64[4] i) => (float[4] y) { c = Cast<to=1>(i) y = Max(x, c) }",
        "g (float[4] x) => (float[4] x) { y = Relu(x) }",
        (
            "g (float[2,3] x) => (int64[2] y) <int64[1] k = {1}, int64[1] a = {1}> "
            "{ v, i = TopK<sorted=0>(x, k) y = Squeeze(i, a) }"
        ),
        "g (float[2,3] x) => (int64[2,1] y) { k = ArgMax<axis=1>(x) y = Add(k, k) }",
        "g () => (int64[1] y) <float[3] w = {1, 2, 3}> { y = ArgMax<axis=0>(w) }",
        "g (float[4] x) => (float y) { z, y, p = DynamicQuantizeLinear(x) }",
        "g (float8e4m3fn[4] x) => (float[4] y) <float s = {0.5}> { y = DequantizeLinear(x, s) }",
        "g (float[4] x) => (float[4] y) { y = Dropout(x) }",
        "g (float[4] x) => (float[4] y) <bool t = {0}, float r = {0.5}> { y = Dropout(x, r, t) }",
    ],
)
def test_outputs_that_are_just_numbers(graph: str) -> None:
    assert read(graph) == Origins()


@pytest.mark.parametrize(
    ("graph", "operators"),
    [
        ("g (float[4] x) => (float[4] y) { z = RandomNormalLike(x) y = Add(x, z) }", ("RandomNormalLike",)),
        ("g (float[4] x) => (float[4] y) { p = Sigmoid(x) y = Bernoulli(p) }", ("Bernoulli",)),
        (
            "g (float[4] x) => (int32[4] y) { z = RandomUniformLike(x) y = Cast<to=6>(z) }",
            ("RandomUniformLike",),
        ),
        (
            "g (float[4] x) => (float[4] y) <bool t = {1}> { d = Dropout(x, , t) y = Relu(d) }",
            ("Dropout",),
        ),
        (
            (
                "g (float[4] x, bool c) => (float[4] y) { y = If(c) <then_branch = a () => (float[4] p) "
                "{ p = RandomNormalLike(x) }, else_branch = b () => (float[4] q) { q = Neg(x) }> }"
            ),
            ("RandomNormalLike",),
        ),
    ],
)
def test_what_is_computed_from_drawn_numbers_cannot_be_judged(graph: str, operators: tuple[str, ...]) -> None:
    assert read(graph).by_chance == operators


def test_an_output_beside_a_drawn_one_is_judged_by_its_values() -> None:
    found = read("g (float[4] x) => (float[4] y, float[4] z) { y = RandomNormalLike(x) z = Exp(x) }")
    assert found.known.keys() == {"y"}
    assert found.by_chance == ()


def test_outputs_that_drawn_numbers_enter_are_named() -> None:
    found = read(
        "g (float[4] x) => (float[4] y, float[4] z) { n = RandomNormalLike(x) y = Add(x, n) z = Exp(x) }"
    )
    assert (found.by_chance, found.drawn) == (("RandomNormalLike",), ("y",))


def test_a_function_that_draws_is_seen() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 20, "own" : 1]> g (float[4] x) => (float[4] y) '
        '{ y = own.outer(x) } <domain: "own", opset_import: ["" : 20, "own" : 1]> outer (a) => (b) '
        '{ b = own.noise(a) } <domain: "own", opset_import: ["" : 20]> noise (a) => (b) '
        "{ b = RandomNormalLike(a) }"
    )
    assert origins_of(model).by_chance == ("RandomNormalLike",)


CIRCLES = [
    "g (float[4] x) => (float[4] y) { z = Identity(y) y = Identity(z) }",
    "g (float[4] x) => (float[4] y) { y = Add(x, y) }",
    (
        "g (float[4] x) => (float[4] y) { y = own.one(x) } "
        '<domain: "own", opset_import: ["" : 20, "own" : 1]> one (a) => (b) { b = own.two(a) } '
        '<domain: "own", opset_import: ["" : 20, "own" : 1]> two (a) => (b) { b = own.one(a) }'
    ),
]


@pytest.mark.parametrize("graph", CIRCLES)
def test_broken_models_that_go_in_circles_come_to_an_end(graph: str) -> None:
    model = onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20, "own" : 1]> ' + graph)
    assert origins_of(model) == Origins()


def load(tmp_path: Path, graph: str, monkeypatch: pytest.MonkeyPatch) -> Case:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    folder = tmp_path / "models"
    folder.mkdir()
    model = onnx.parser.parse_model(HEAD + graph)
    onnx.save(model, folder / "m.onnx")
    data_set = folder / "test_data_set_0"
    data_set.mkdir()
    value = tensor(np.array([[1, 5, 2], [4, 0, 4]], np.float32))
    (data_set / "input_0.pb").write_bytes(tensor_proto(value).SerializeToString())
    return load_case(open_folder(folder), "m.onnx", {})


def test_what_positions_were_chosen_by_becomes_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = "g (float[2,3] x) => (int64[2,1] y, float[2,3] b) { a = Neg(x) b = Exp(x) y = ArgMax<axis=1>(a) }"
    case = load(tmp_path, graph, monkeypatch)
    assert hidden_tensors(case) == ("a",)
    found = revealed_case(case, hidden_tensors(case))
    assert isinstance(found, Case)
    assert found.outputs == ("y", "b", "a")
    assert found.digest != case.digest
    assert found.data_sets[0].inputs == case.data_sets[0].inputs
    assert revealed_case(case, hidden_tensors(case)) == found
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(found.model_path), providers=["CPUExecutionProvider"])
    x = case.data_sets[0].inputs[0][1].array  # type: ignore[union-attr]
    np.testing.assert_array_equal(session.run(["a"], {"x": x})[0], -x)


@pytest.mark.parametrize(
    "graph",
    [
        "g (float[2,3] x) => (int64[2,1] y) { y = ArgMax<axis=1>(x) }",
        "g (float[2,3] x) => (float[2,3] a, int64[2,1] y) { a = Neg(x) y = ArgMax<axis=1>(a) }",
        "g (float[2,3] x) => (float[2,3] y) { y = Neg(x) }",
    ],
)
def test_nothing_is_hidden_where_it_is_an_input_or_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, graph: str
) -> None:
    case = load(tmp_path, graph, monkeypatch)
    assert hidden_tensors(case) == ()
    assert isinstance(revealed_case(case, hidden_tensors(case)), Inapplicable)


def test_the_weights_of_a_large_model_stay_in_a_copy_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENVIRONMENT, str(tmp_path / "cache"))
    graph = "g (float[4,600] x) => (int64[4] y) { h = MatMul(x, w) y = ArgMax<axis=1, keepdims=0>(h) }"
    model = onnx.parser.parse_model(HEAD + graph)
    weight = np.random.default_rng(1).standard_normal((600, 600)).astype(np.float32)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    path = tmp_path / "models" / "m.onnx"
    path.parent.mkdir()
    onnx.save(model, path)
    case = load_case(open_folder(path.parent), path.name, {})
    revealed = revealed_case(case, ("h",))
    assert isinstance(revealed, Case)
    assert revealed.model_path.stat().st_size < weight.nbytes // 2
    assert [file.read_bytes() for file in revealed.external] == [path.read_bytes()]
    ((_, chosen), (_, values)) = answers_on_cpu(revealed)[0]
    assert isinstance(chosen, Tensor)
    assert isinstance(values, Tensor)
    np.testing.assert_array_equal(values.array.argmax(axis=1), chosen.array)
    ((_, given),) = case.data_sets[0].inputs
    assert isinstance(given, Tensor)
    np.testing.assert_allclose(values.array, given.array @ weight, rtol=1e-3, atol=1e-3)

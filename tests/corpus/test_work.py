"""The estimate of a model's work, against models whose work is known."""

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from harness.core.records.run_work import NODE_OPERATIONS
from harness.core.values.value import NamedValues, Sequence, tensor
from harness.corpus.load_case import load_case
from harness.corpus.suites.suite import open_folder
from harness.corpus.suites.suites import open_suite
from harness.corpus.work.estimate import work_of

FLOAT = np.float32


def parsed(graph: str, opset: int = 20) -> onnx.ModelProto:
    head = f'<ir_version: 9, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    return onnx.parser.parse_model(f"{head} g {graph}")


def zeros(**shapes: tuple[int, ...]) -> NamedValues:
    return tuple((name, tensor(np.zeros(shape, FLOAT))) for name, shape in shapes.items())


@pytest.mark.parametrize(
    ("graph", "shapes", "multiply_adds"),
    [
        ("(float[N] x) => (float[N] y) { y = Relu(x) }", {"x": (50,)}, 50),
        (
            "(float[N,K] a, float[K,M] b) => (float[N,M] y) { y = MatMul(a, b) }",
            {"a": (5, 7), "b": (7, 3)},
            105,
        ),
        (
            "(float[B,N,K] a, float[B,K,M] b) => (float[B,N,M] y) { y = MatMul(a, b) }",
            {"a": (4, 5, 7), "b": (4, 7, 3)},
            420,
        ),
        (
            "(float[N,K] a, float[M,K] b) => (float[N,M] y) { y = Gemm<transB=1>(a, b) }",
            {"a": (5, 7), "b": (3, 7)},
            105,
        ),
        (
            (
                "(float[1,3,H,W] x, float[8,3,3,3] w) => (float[1,8,P,Q] y) "
                "{ y = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w) }"
            ),
            {"x": (1, 3, 16, 16), "w": (8, 3, 3, 3)},
            8 * 8 * 8 * 27,
        ),
        (
            (
                "(float[1,4,H,W] x, float[4,1,3,3] w) => (float[1,4,P,Q] y) "
                '{ y = Conv<auto_pad="SAME_UPPER", group=4>(x, w) }'
            ),
            {"x": (1, 4, 10, 10), "w": (4, 1, 3, 3)},
            4 * 100 * 9,
        ),
        (
            "(float[1,4,H,W] x, float[4,2,3,3] w) => (float[1,2,P,Q] y) { y = ConvTranspose(x, w) }",
            {"x": (1, 4, 10, 10), "w": (4, 2, 3, 3)},
            400 * 18,
        ),
        (
            (
                "(float[S,B,I] x, float[1,40,I] w, float[1,40,10] r) => (float[S,1,B,10] y) "
                "{ y = LSTM<hidden_size=10>(x, w, r) }"
            ),
            {"x": (6, 2, 5), "w": (1, 40, 5), "r": (1, 40, 10)},
            6 * 2 * (200 + 400),
        ),
        (
            '(float[I,J] a, float[J,K] b) => (float[I,K] y) { y = Einsum<equation="ij,jk->ik">(a, b) }',
            {"a": (5, 7), "b": (7, 3)},
            105,
        ),
        (
            "(float[N,C,H,W] x) => (float[N,C,P,Q] y) { y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) }",
            {"x": (1, 2, 8, 8)},
            2 * 16 * 4,
        ),
    ],
)
def test_operators(graph: str, shapes: dict[str, tuple[int, ...]], multiply_adds: int) -> None:
    work, _ = work_of(parsed(graph), zeros(**shapes))
    assert work.multiply_adds == multiply_adds
    assert work.nodes == 1
    assert work.operations >= multiply_adds + NODE_OPERATIONS


def test_bytes_are_those_of_operands_and_results() -> None:
    work, _ = work_of(parsed("(float[N] x) => (float[N] y) { y = Relu(x) }"), zeros(x=(50,)))
    assert work.nbytes == 400


def test_sizes_go_through_a_graph_without_any_that_is_declared() -> None:
    graph = """(float[N,3,H,W] x) => (float[N,10] y)
    <float[8,3,3,3] w, float[8,10] m, int64[2] s = {0, -1}> {
        c = Conv<pads=[1,1,1,1]>(x, w)  r = Relu(c)  p = GlobalAveragePool(r)
        f = Reshape(p, s)  y = MatMul(f, m)
    }"""
    model = parsed(graph)
    for name, dims in (("w", (8, 3, 3, 3)), ("m", (8, 10))):
        weight = next((one for one in model.graph.initializer if one.name == name), None)
        if weight is not None:
            model.graph.initializer.remove(weight)
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(dims, FLOAT), name))
    pixels = 2 * 16 * 16
    expected = pixels * 8 * 27 + pixels * 8 + 16 + 2 * 10 * 8
    assert work_of(model, zeros(x=(2, 3, 16, 16)))[0].multiply_adds == pytest.approx(expected, rel=0.01)


def test_a_loop_counts_its_turns() -> None:
    graph = """(float[N] x) => (float[N] y) <int64 count = {100}, bool true = {1}> {
        y = Loop <body = body (int64 i, bool go, float[N] v) => (bool on, float[N] next) {
            on = Identity(go)  next = Sqrt(v)
        }> (count, true, x)
    }"""
    assert work_of(parsed(graph), zeros(x=(50,)))[0].multiply_adds == pytest.approx(100 * 50, rel=0.05)


def test_what_is_not_known_is_guessed() -> None:
    graph = "(float[N] x) => (float[N] y) { z = com.microsoft.NoSuch(x)  y = Relu(z) }"
    assert work_of(parsed(graph), zeros(x=(50,)))[0].multiply_adds == 100
    sequence = parsed("(seq(float[N]) x) => (int64 y) { y = SequenceLength(x) }")
    values = Sequence(items=(tensor(np.zeros(4, FLOAT)),))
    assert work_of(sequence, (("x", values),))[0].nodes == 1


@pytest.mark.parametrize(
    "graph",
    [
        "(float[N] x) => (float[N] y) { y = Conv(x) }",
        "(float[N] x) => (float[N] y) { y = MatMul(x, x) }",
        "(float[N] x) => (float[N] y) { y = Transpose<perm=[5,9]>(x) }",
        "(float[N] x) => (float[N] y) { y = Concat<axis=7>(x, x) }",
        "(float[N] x) => (float[N] y) { y = Expand(x, nothing) }",
        "(float[N] x) => (float[N] y) { y = Gather<axis=3>(x, x) }",
        "(float[N] x) => (float[N] y) { y = LSTM(x, x, x) }",
        "(float[N] x) => (float[N] y) { y = Resize(x) }",
        "(float[N] x) => (float[N] y) { y = AveragePool(x) }",
        '(float[N] x) => (float[N] y) { y = Einsum<equation="ij,jk->ik">(x) }',
    ],
)
def test_a_broken_model_has_an_estimate_too(graph: str) -> None:
    assert 0 < work_of(parsed(graph), zeros(x=(50,)))[0].operations < 1e9


def test_a_case_keeps_its_work(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    onnx.save(parsed("(float[4,8] x) => (float[4,8] y) { y = Relu(x) }"), tmp_path / "models" / "m.onnx")
    suite = open_folder(tmp_path / "models")
    once, again = (load_case(suite, "m.onnx", {}) for _ in range(2))
    assert once.work == again.work
    assert once.work.multiply_adds == 32


@pytest.mark.parametrize(
    ("suite", "model", "low", "high"),
    [
        ("onnx-node", "test_abs", 1e4, 2e4),
        ("onnx-light", "light_resnet50", 4e9, 6e9),  # 4.1e9 multiply-adds
        ("onnx-light", "light_vgg19", 1.9e10, 2.3e10),  # 1.96e10
    ],
)
def test_known_models(suite: str, model: str, low: float, high: float) -> None:
    assert low < load_case(open_suite(suite), model, {}).work.operations < high

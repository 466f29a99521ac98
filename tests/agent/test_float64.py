"""A model in float64, node by node, inside the agent."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from harness import agent
from harness.agent.float64.array_budget import ArrayBudget
from harness.core.values.value import Sequence, Tensor, Value, tensor
from harness.golden.trust import shipped_trust
from tests.kit import parse

Run = Callable[..., dict[str, Value]]
TRUSTED = [f"{name}-{since}" for name, found in shipped_trust().float64.items() for since in found]
HOME = str(Path(agent.__file__).parent)
ASKED = {"trusted": TRUSTED, "bytes": 1 << 30, "agent": HOME}
X = np.array([0.1, -0.7, 2.5, 1e-3], np.float32)


def array(values: dict[str, Value], name: str) -> np.ndarray[Any, Any]:
    value = values[name]
    assert isinstance(value, Tensor)
    found: np.ndarray[Any, Any] = value.array
    return found


def with_weights(model: bytes, **weights: Any) -> bytes:
    proto = onnx.load_from_string(model)
    proto.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(one), name) for name, one in weights.items()
    )
    content: bytes = proto.SerializeToString()
    return content


@pytest.fixture
def in_float64(outputs_of: Run) -> Callable[..., dict[str, Value]]:
    def run(graph: str, opset: int = 21, given: Any = X, **weights: Any) -> dict[str, Value]:
        model = with_weights(parse(graph, opset=opset, ir=10), **weights)
        value = given if isinstance(given, Sequence) else tensor(np.asarray(given))
        return outputs_of(model, {"x": value}, evaluate=ASKED)

    return run


def test_nothing_is_rounded_between_nodes(in_float64: Run) -> None:
    y = array(
        in_float64("g (float[4] x) => (float[4] y) { e = Exp(x) s = Add(e, w) y = Mul(s, s) }", w=X), "y"
    )
    assert y.dtype == np.float64
    wide = X.astype(np.float64)
    np.testing.assert_allclose(y, (np.exp(wide) + wide) ** 2, rtol=1e-15)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_narrower_models_are_double_too(outputs_of: Run, kind: str) -> None:
    number = {"float16": 10, "bfloat16": 16}[kind]
    model = parse(
        f"g ({kind}[4] x) => ({kind}[4] y) {{ c = Cast<to = {number}>(x) y = Exp(c) }}", opset=21, ir=10
    )
    given = Tensor(dtype=kind, array=numpy_helper.to_array(numpy_helper.from_array(X)).astype("float32"))
    given = Tensor(dtype=kind, array=given.array.astype(helper.tensor_dtype_to_np_dtype(number)))
    y = array(outputs_of(model, {"x": given}, evaluate=ASKED), "y")
    np.testing.assert_allclose(y, np.exp(given.array.astype(np.float64)), rtol=1e-15)


def test_what_the_model_itself_rounds_stays_rounded(in_float64: Run) -> None:
    found = in_float64(
        """g (float[4] x) => (float[4] y, float[4] z, float[4] w) {
            e = Exp(x) h = Cast<to = 10>(e) y = Cast<to = 1>(h)
            s = Cast<to = 1>(e) z = Identity(s)
            big = Constant<value_ints = [16777217, 1, 2, 3]>() w = Cast<to = 1>(big) }"""
    )
    exact = np.exp(X.astype(np.float64))
    np.testing.assert_array_equal(array(found, "y"), exact.astype(np.float16).astype(np.float64))
    np.testing.assert_allclose(array(found, "z"), exact, rtol=1e-15)
    assert array(found, "w")[0] == 16777216.0


def test_branches_loops_and_functions_are_double(in_float64: Run, outputs_of: Run) -> None:
    found = in_float64(
        """g (float[4] x) => (float[4] y, float[N, 4] rows) {
            c = Constant<value_int = 1>() yes = Cast<to = 9>(c) trips = Constant<value_int = 3>()
            t = If (yes) <then_branch = a () => (float[4] u) { u = Exp(x) },
                          else_branch = b () => (float[4] v) { v = Neg(x) }>
            y, rows = Loop (trips, yes, t) <
                body = l (int64 i, bool ok, float[4] s) => (bool go, float[4] r, float[4] k) {
                go = Identity(ok) r = Mul(s, x) k = Sqrt(r) }> }"""
    )
    wide = X.astype(np.float64)
    np.testing.assert_allclose(array(found, "y"), np.exp(wide) * wide**3, rtol=1e-14)
    assert array(found, "rows").shape == (3, 4)
    function = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
        g (float[4] x) => (float[4] y) { y = own.Twice<by = 3.0>(x) }
        <domain: "own", opset_import: ["" : 21]>
        Twice <by> (a) => (b) { f = Constant<value_float: float = @by>() b = Mul(a, f) }"""
    model = onnx.parser.parse_model(function).SerializeToString()
    y = array(outputs_of(model, {"x": tensor(X)}, evaluate=ASKED), "y")
    np.testing.assert_array_equal(y, wide * 3)


def test_scans_and_sequences_are_double(in_float64: Run) -> None:
    found = in_float64(
        """g (float[4] x) => (float y, float[4] z, float[4] w) {
            zero = Constant<value_float = 0.0>()
            y, z = Scan<num_scan_inputs = 1, body = b (float s, float e) => (float t, float o) {
                t = Add(s, e) o = Exp(t) }>(zero, x)
            q = SequenceConstruct(x, z) at = Constant<value_int = -1>() w = SequenceAt(q, at) }"""
    )
    sums = np.cumsum(X.astype(np.float64))
    np.testing.assert_allclose(array(found, "y"), sums[-1], rtol=1e-15)
    np.testing.assert_allclose(array(found, "w"), np.exp(sums), rtol=1e-15)


def test_quantization_rounds_and_nothing_else(in_float64: Run) -> None:
    found = in_float64(
        """g (float[4] x) => (uint8[4] q, float s, uint8 z, float[4] y) {
            q, s, z = DynamicQuantizeLinear(x) y = DequantizeLinear(q, s, z) }"""
    )
    wide = X.astype(np.float64)
    scale = (wide.max() - wide.min()) / 255
    zero = np.rint(-wide.min() / scale)
    assert array(found, "s") == scale
    np.testing.assert_array_equal(array(found, "q"), np.rint(wide / scale) + zero)
    np.testing.assert_allclose(array(found, "y"), (np.rint(wide / scale)) * scale, rtol=1e-14)


@pytest.mark.parametrize(
    ("graph", "says"),
    [
        ("y = acme.Do(x)", "nothing that is known to be right computes acme.Do"),
        ("y = com.microsoft.Nothing(x)", "nothing that is known to be right computes com.microsoft.Nothing"),
        ("y, m = Dropout(x, r, t)", "draws random numbers"),
        (
            's = Constant<value_floats = [0.5]>() y = Resize<mode = "linear", antialias = 1>(x, , s)',
            "antialias",
        ),
    ],
)
def test_what_nothing_computes_rightly_is_refused(
    serve: Callable[..., dict[str, Any]], graph: str, says: str
) -> None:
    model = parse(f"g (float[4] x) => (float[4] y) {{ {graph} }}", opset=21, ir=10)
    model = with_weights(model, r=np.float32(0.5), t=np.bool_(1))
    result = serve(model, {"x": tensor(X)}, evaluate=ASKED)
    assert (result["status"], says in result["message"]) == ("unsupported", True), result


def test_an_operator_that_is_not_trusted_runs_on_the_cpu_ep_or_not_at_all(
    serve: Callable[..., dict[str, Any]],
) -> None:
    model = parse("g (float[4] x) => (float[4] y) { y = Sqrt(x) }", opset=21, ir=10)
    result = serve(model, {"x": tensor(X)}, evaluate=ASKED | {"trusted": []})
    assert result["status"] == "ok", result
    model = parse("g (float[4] x) => (float[4] y) { y = Tan(x) }", opset=21, ir=10)  # no kernel for doubles
    result = serve(model, {"x": tensor(X)}, evaluate=ASKED | {"trusted": []})
    assert result["status"] == "unsupported"


def test_more_memory_than_the_bound_is_refused_with_the_size(serve: Callable[..., dict[str, Any]]) -> None:
    model = parse(
        "g (float[N] x) => (float[N, N] y) { a = Exp(x) k = Unsqueeze(a, one) y = MatMul(k, b) }",
        opset=21,
        ir=10,
    )
    model = with_weights(model, one=np.array([1]), b=np.ones((1, 4096), np.float32))
    result = serve(model, {"x": tensor(np.ones(4096, np.float32))}, evaluate=ASKED | {"bytes": 1 << 20})
    assert result["status"] == "unsupported"
    assert "GiB in float64, more than" in result["message"]


def test_views_count_once_and_what_is_dropped_no_more() -> None:
    budget = ArrayBudget(1000)
    whole = np.zeros(100)
    budget.hold(whole)
    budget.hold([whole[:50], whole.reshape(10, 10)])
    assert budget.held == 800
    with pytest.raises(MemoryError, match="it needs"):
        budget.hold(np.zeros(50))
    budget = ArrayBudget(1000)
    budget.hold(whole)
    budget.hold(whole[1:])
    budget.drop(whole)
    assert budget.held == 800
    budget.drop(whole[1:])
    assert budget.held == 0

"""ONNX's reference implementation as a reference, inside the agent."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper

from harness.agent.evaluate import play
from harness.agent.target_errors import UnsupportedError
from harness.core.values.value import DTYPES, STRING, Map, Sequence, Tensor, Value, tensor, to_wire
from harness.corpus.model.element_types import NUMBERS
from harness.engine.processes.mapped_tensors import Tensors
from harness.engine.processes.messages import RunResult
from harness.engine.tasks.outcome import Ran, from_result
from tests.kit import parse

Run = Callable[..., dict[str, Value]]


def identity(dtype: str) -> bytes:
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", NUMBERS[dtype], [None])],
        [helper.make_tensor_value_info("y", NUMBERS[dtype], [None])],
    )
    content: bytes = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)]).SerializeToString()
    return content


@pytest.mark.parametrize("dtype", [*sorted(DTYPES), STRING])
def test_every_element_type_passes_through(outputs_of: Run, dtype: str) -> None:
    given = (
        tensor(np.array(["", "ä€😀", "b"], dtype=object))
        if dtype == STRING
        else Tensor(dtype=dtype, array=np.array([1, 0, 1], np.float32).astype(DTYPES[dtype]))
    )
    (result,) = outputs_of(identity(dtype), {"x": given}, evaluate=True).values()
    assert to_wire(result) == to_wire(given)


def test_sequences_and_empty_optionals_pass_through(outputs_of: Run) -> None:
    items = Sequence(items=(tensor(np.ones(2, np.float32)), tensor(np.zeros(3, np.float32))))
    model = parse("g (seq(float[N]) s) => (seq(float[N]) t) { t = Identity(s) }")
    (result,) = outputs_of(model, {"s": items}, evaluate=True).values()
    assert to_wire(result) == to_wire(items)
    model = parse("g (optional(float[N]) s) => (bool t) { t = OptionalHasElement(s) }")
    (result,) = outputs_of(model, {"s": None}, evaluate=True).values()
    assert isinstance(result, Tensor)
    assert not result.array


def test_a_result_has_the_form_of_a_session_s(serve: Callable[..., dict[str, Any]]) -> None:
    model = parse("g (float[N] x) => (float[N] y, int64[1] n) { a = Relu(x) y = Neg(a) n = Shape(x) }")
    sets = [{"x": tensor(np.array(given, np.float32))} for given in ([-1, 2], [3, 4, 5])]
    answer = {**serve(model, *sets, evaluate=True), "output": ""}
    outcome = from_result(msgspec.convert(answer, RunResult), Tensors())
    assert isinstance(outcome, Ran)
    assert [[to_wire(value)["shape"] for _, value in one] for one in outcome.outputs] == [
        [[2], [1]],
        [[3], [1]],
    ]
    assert outcome.placement.ep_ops == {"Relu": 1, "Neg": 1, "Shape": 1}
    assert outcome.providers_changed == ""
    assert {"create", "first_run"} <= outcome.timings_ms.keys()


def test_inputs_may_be_written_to_and_external_data_is_read(
    serve: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    graph = helper.make_graph(
        [helper.make_node("ScatterElements", ["x", "i", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, [3]), helper.make_tensor_value_info("i", 7, [1])],
        [helper.make_tensor_value_info("y", 1, [3])],
        [onnx.numpy_helper.from_array(np.array([7], np.float32), "w")],
    )
    path = tmp_path / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    feeds = {"x": tensor(np.arange(3, dtype=np.float32)), "i": tensor(np.array([1]))}
    result = serve(str(path), feeds, evaluate=True)
    assert result["status"] == "ok", result
    assert result["outputs"][0][0]["data"] == np.array([0, 7, 2], np.float32).tobytes()


def test_an_error_of_the_evaluator_is_an_error(serve: Callable[..., dict[str, Any]]) -> None:
    model = parse("g (float[N] x) => (float[N] y) { y = Nothing(x) }")
    result = serve(model, {"x": tensor(np.ones(2, np.float32))}, evaluate=True)
    assert (result["status"], result["phase"]) == ("error", "create")
    # And the next job is served as ever.
    model = parse("g (float[N] x) => (float[N] y) { y = Relu(x) }")
    assert serve(model, {"x": tensor(np.ones(2, np.float32))})["status"] == "ok"


@pytest.mark.parametrize(
    ("graph", "opset", "says"),
    [
        ("{ y = Softmax(x) }", 11, "Softmax of opset 11 as that of opset 13"),
        ("{ y = Add(x, x) }", 6, "every opset before 7 as that one"),
        ("{ y, h = GRU<hidden_size = 1>(x, w, r, , lengths) }", 22, "GRU without the lengths of sequences"),
        ("{ y, h = LSTM<hidden_size = 1, clip = 1.0>(x, w, r) }", 22, "LSTM without its attribute clip"),
        (
            """{ y = If (c) <then_branch = a () => (float u) { u = Hardmax(x) },
                else_branch = b () => (float v) { v = Neg(x) }> }""",
            12,
            "Hardmax of opset 12",
        ),
    ],
)
def test_results_that_differ_from_the_standard_are_refused(
    serve: Callable[..., dict[str, Any]], graph: str, opset: int, says: str
) -> None:
    model = parse(f"g (float[2, 1, 1] x) => (float[N] y) {graph}", opset=opset, ir=7)
    result = serve(model, {"x": tensor(np.ones((2, 1, 1), np.float32))}, evaluate=True)
    assert result["status"] == "unsupported"
    assert says in result["message"]


def test_maps_are_taken(outputs_of: Run) -> None:
    keys, values = tensor(np.array([1, 3])), tensor(np.array([0.5, 2], np.float32))
    model = parse(
        """g (map(int64, float) m) => (float[N] y) {
            y = ai.onnx.ml.DictVectorizer<int64_vocabulary = [1, 2, 3]>(m) }"""
    )
    (result,) = outputs_of(model, {"m": Map(keys=keys, values=values)}, evaluate=True).values()
    assert isinstance(result, Tensor)
    assert sorted(result.array.ravel().tolist()) in ([0.0, 0.5, 2.0], [0.5, 2.0])


def test_without_onnx_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    turn: Any = None  # nothing of it is looked at before
    with pytest.raises(UnsupportedError, match="onnx cannot be imported here"):
        play(turn)

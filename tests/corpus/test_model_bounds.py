"""What reading a model may cost: steps are counted, since a busy machine takes any time."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.helper as oh
import pytest

from harness.corpus.inputs.domain_walk import domains_of
from harness.corpus.load_case import load_case
from harness.corpus.model.model_bounds import MOST_NODES, check_bounds
from harness.corpus.model.model_errors import BoundError, ModelError
from harness.corpus.model.model_facts import model_facts
from harness.corpus.noise.flat import NotFlatError, flattened
from harness.corpus.suites.suite import open_folder
from harness.corpus.work.estimate import work_of

FLOAT = onnx.TensorProto.FLOAT
X = oh.make_tensor_value_info("x", FLOAT, [2, 3])


def steps(call: Callable[[], object], most: int = 2_000_000) -> int:
    """Return how many calls of functions a call takes; more than ``most`` fail before they take for ever."""
    count = 0

    def note(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in {"call", "c_call"}
        if count > most:
            sys.setprofile(None)
            raise AssertionError(f"more than {most} steps")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def read(model: onnx.ModelProto) -> None:
    """Walk a model as reading a case does."""
    check_bounds(model)
    model_facts(model)
    domains_of(model)
    work_of(model, ())


def model_of(nodes: list[onnx.NodeProto], outputs: list[str], **more: Any) -> onnx.ModelProto:
    ports = [oh.make_tensor_value_info(name, FLOAT, [2, 3]) for name in outputs]
    graph = oh.make_graph(nodes, "g", [X], ports, more.pop("weights", ()))
    opsets = [oh.make_opsetid("", 17), oh.make_opsetid("own", 1)]
    return oh.make_model(graph, opset_imports=opsets, ir_version=9, **more)


def calling(levels: int, calls: int, op: str = "Relu") -> onnx.ModelProto:
    """Return a model whose functions call each other: it has ``calls ** levels`` nodes."""
    functions = []
    for level in range(levels):
        names = ["a", *(f"t{index}" for index in range(calls - 1)), "b"]
        one = (op, "") if not level else (f"F{level - 1}", "own")
        nodes = [oh.make_node(one[0], [names[at]], [names[at + 1]], domain=one[1]) for at in range(calls)]
        opsets = [oh.make_opsetid("", 17), oh.make_opsetid("own", 1)]
        functions.append(oh.make_function("own", f"F{level}", ["a"], ["b"], nodes, opsets))
    call = oh.make_node(f"F{levels - 1}", ["x"], ["y"], domain="own")
    return model_of([call], ["y"], functions=functions)


@pytest.mark.parametrize("op", ["Relu", "Identity", "Squeeze"])
def test_functions_that_call_each_other_are_walked_once_each(op: str) -> None:
    model = calling(14, 10, op)
    assert steps(lambda: (domains_of(model), model_facts(model), work_of(model, ()))) < 100_000


def test_what_functions_come_to_is_bounded_before_the_model_is_walked(tmp_path: Path) -> None:
    model = calling(14, 10)
    assert model.ByteSize() < 4000
    (tmp_path / "calls.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(BoundError, match=f"more than {MOST_NODES:,} nodes"):
        load_case(open_folder(tmp_path), "calls.onnx", {})
    check_bounds(calling(5, 10))


def test_a_large_function_counts_by_its_bytes() -> None:
    large = oh.make_node(
        "Constant", [], ["b"], value=oh.make_tensor("t", FLOAT, [1 << 18], bytes(1 << 20), raw=True)
    )
    function = oh.make_function("own", "F", [], ["b"], [large], [oh.make_opsetid("", 17)])
    calls = [oh.make_node("F", [], [f"y{index}"], domain="own") for index in range(300)]
    with pytest.raises(ValueError, match="256 MiB"):
        check_bounds(model_of(calls, ["y0"], functions=[function]))
    check_bounds(model_of(calls[:200], ["y0"], functions=[function]))


@pytest.mark.parametrize("version", [-(2**63), -1, 2**31, 2**63 - 1])
def test_a_version_that_does_not_exist_is_the_models_fault(version: int, tmp_path: Path) -> None:
    model = model_of([oh.make_node("Relu", ["x"], ["y"])], ["y"])
    model.opset_import[0].version = version
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match=f"imports version {version} of ai.onnx"):
        load_case(open_folder(tmp_path), "m.onnx", {})


def test_a_function_that_calls_itself_is_the_models_fault() -> None:
    call = oh.make_node("F", ["a"], ["b"], domain="own")
    opsets = [oh.make_opsetid("own", 1)]
    function = oh.make_function("own", "F", ["a"], ["b"], [call], opsets)
    with pytest.raises(ValueError, match="calls itself"):
        check_bounds(model_of([oh.make_node("F", ["x"], ["y"], domain="own")], ["y"], functions=[function]))
    other = oh.make_function(
        "own", "G", ["a"], ["b"], [oh.make_node("F", ["a"], ["b"], domain="own")], opsets
    )
    function.node[0].op_type = "G"
    with pytest.raises(ValueError, match="calls itself"):
        check_bounds(
            model_of([oh.make_node("F", ["x"], ["y"], domain="own")], ["y"], functions=[function, other])
        )


def test_types_nested_deep_are_the_models_fault(tmp_path: Path) -> None:
    declared = onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=1)).SerializeToString()
    for _ in range(300):
        item = b"\x0a" + varint(len(declared)) + declared
        declared = b"\x22" + varint(len(item)) + item  # a sequence of these
    port = b"\x0a\x01x\x12" + varint(len(declared)) + declared
    graph = b"\x5a" + varint(len(port)) + port
    (tmp_path / "deep.onnx").write_bytes(b"\x3a" + varint(len(graph)) + graph)
    with pytest.raises(ModelError, match="corrupt"):
        load_case(open_folder(tmp_path), "deep.onnx", {})


def varint(number: int) -> bytes:
    """Return a number as protobuf writes it."""
    low, rest = number & 0x7F, number >> 7
    return bytes([low | 0x80]) + varint(rest) if rest else bytes([low])


def test_more_bodies_than_can_be_copied_get_no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert flattened(branches(10))
    monkeypatch.setattr("harness.corpus.noise.flat._MOST_SEEN", 100)
    with pytest.raises(NotFlatError, match="20 branches and bodies, and 31 nodes"):
        flattened(branches(10))


def test_a_chain_of_many_functions_is_no_recursion() -> None:
    check_bounds(calling(5000, 1))


def chain(count: int, op: str, first: str = "Relu") -> onnx.ModelProto:
    """Return a chain whose every tensor is an output."""
    names = ["t0", *(f"t{index}" for index in range(1, count))]
    nodes = [oh.make_node(first, ["x"], ["t0"])]
    nodes += [oh.make_node(op, [names[at]], [names[at + 1]]) for at in range(count - 1)]
    return model_of(nodes, names)


def branches(count: int) -> onnx.ModelProto:
    nodes = [
        oh.make_node("Constant", [], ["c"], value=oh.make_tensor("t", onnx.TensorProto.BOOL, [], [True]))
    ]
    for at in range(count):
        out = oh.make_tensor_value_info(f"b{at}", FLOAT, [2, 3])
        body = oh.make_graph([oh.make_node("Neg", ["x"], [f"b{at}"])], "b", [], [out])
        nodes.append(oh.make_node("If", ["c"], [f"i{at}"], then_branch=body, else_branch=body))
    return model_of(nodes, ["i0"])


def powers(count: int) -> onnx.ModelProto:
    names = ["x", *(f"t{index}" for index in range(count))]
    nodes = [oh.make_node("Pow", [names[at], "x"], [names[at + 1]]) for at in range(count)]
    return model_of(nodes, names[1:])


def chosen(count: int) -> onnx.ModelProto:
    k = oh.make_tensor("k", onnx.TensorProto.INT64, [1], [2])
    nodes = [oh.make_node("TopK", ["x", "k"], [f"v{at}", f"p{at}"], sorted=0) for at in range(count)]
    return model_of(nodes, [f"{one}{at}" for at in range(count) for one in "vp"], weights=[k])


def quantized(count: int) -> onnx.ModelProto:
    nodes, last = [], "x"
    for at in range(count):
        nodes.append(oh.make_node("QuantizeLinear", [last, "s"], [f"q{at}"]))
        nodes.append(oh.make_node("DequantizeLinear", [f"q{at}", "s"], [last := f"d{at}"]))
    scale = oh.make_tensor("s", FLOAT, [], [0.1])
    return model_of(nodes, [f"d{at}" for at in range(count)], weights=[scale])


SHAPES: dict[str, Callable[[int], onnx.ModelProto]] = {
    "identity": lambda count: chain(count, "Identity"),
    "moved": lambda count: chain(count, "Flatten"),
    "behind a random node": lambda count: chain(count, "Identity", "RandomNormalLike"),
    "computed from a random node": lambda count: chain(count, "Sin", "RandomNormalLike"),
    "behind a layer": lambda count: chain(count, "Relu", "Softmax"),
    "branches": branches,
    "undefined powers": powers,
    "positions": chosen,
    "quantized": quantized,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_reading_is_linear_in_nodes_and_outputs(shape: str) -> None:
    few, many = (SHAPES[shape](count) for count in (100, 400))
    read(few)  # what is read once for all, such as schemas
    assert steps(lambda: read(many)) < 5 * steps(lambda: read(few))
